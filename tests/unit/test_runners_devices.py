"""Devices that are no browser: found by their address, and refused where a bundle does not fit."""

import json
import signal
import socket
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import linux_bundle
import pytest
import tiny_bundle

from edgekit import parity
from edgekit.cli import main
from edgekit.errors import MissingToolError, ParityError, UsageError
from edgekit.files import json_bytes
from edgekit.parity import ParityOptions
from edgekit.records import run_record
from edgekit.runners import arm64_cpus, arm64_root, device_record, devices, emulated, programs, ssh, ssh_copy
from edgekit.runners.page import Ask


def test_the_scheme_of_an_address_finds_its_module() -> None:
    assert devices.find("ssh://pi@host:22") is ssh
    assert devices.find("emulated") is emulated is devices.named("emulated")
    assert devices.named("chromium") is None and devices.named("no-such") is None


@pytest.mark.parametrize("address", ["", "shs://pi", "chromium", "../ssh", "page://x", "devices"])
def test_an_address_of_no_device_is_refused_with_what_there_is(address: str) -> None:
    with pytest.raises(UsageError) as caught:
        devices.find(address)
    assert "ssh://[USER@]HOST[:PORT]" in (caught.value.hint or "")


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A bundle that each scheme takes, so that nothing but the address can be refused."""
    folder = tmp_path_factory.mktemp("bundles")
    page = tiny_bundle.make(folder / "page", {"page.js": tiny_bundle.script()}).folder
    linux = linux_bundle.make(folder / "linux").folder
    return {"adb": page, "ssh": linux, "emulated": linux}


@pytest.mark.parametrize(
    "address",
    ["emulated:", "emulated:/", "emulated://bookworm", "emulated:no-such", "emulated:-x", "emulated:../..",
     "emulated:bookworm\n", "ssh", "ssh:", "ssh://", "ssh:host", "ssh://-oProxyCommand=x", "ssh://pi@-x", "ssh://-l@host",
     "ssh://@host", "ssh://pi@", "ssh://pi:secret@host", "ssh://us er@host", "ssh://host:", "ssh://host:0",
     "ssh://host:70000", "ssh://host:words", "ssh://host/path", "ssh://a b", "ssh://pi@ho;st", "ssh://pi@host\n",
     "ssh://[]", "ssh://[::1", "ssh://[-x]", "adb:", "adb:R58N", "adb://a b", "adb://-s", "adb://%2Ds", "adb://:5555",
     "adb://a/b", "adb://%00"],
)  # fmt: skip
def test_what_is_no_address_is_a_mistake_of_usage_before_anything_is_asked(
    address: str, bundles: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in (subprocess, socket):
        for name in ("Popen", "create_connection"):
            monkeypatch.setattr(module, name, _not_asked, raising=False)
    bundle = bundles[address.partition(":")[0]]
    assert main.run(["parity", str(bundle), "--device", address]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and "hint: " in said


def _not_asked(*words: object, **options: object) -> None:
    raise AssertionError(f"it was asked: {words}")


def test_a_password_in_an_address_is_refused_and_keys_are_named() -> None:
    with pytest.raises(UsageError) as caught, ssh.reached("ssh://pi:secret@host"):
        raise AssertionError
    assert "key" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "address", ["ssh://host", "ssh://pi@host:2222", "ssh://pi@[fe80::1%eth0]:22", "ssh://10.0.0.7/"]
)
def test_an_address_becomes_words_that_no_option_can_hide_in(address: str) -> None:
    with ssh.reached(address) as place:
        words = place.ssh("uname -m")
        assert words[-3] == "--" and words[-1] == "uname -m"
        assert {"BatchMode=yes", "StrictHostKeyChecking=yes", "PasswordAuthentication=no"} <= set(words)
        assert place.sftp(Path("batch"))[-2] == "--"
        # To sftp and rsync a colon would end the host.
        assert ":" not in place.copied_to.replace("[fe80::1%eth0]", "")


@pytest.mark.parametrize(
    ("ending", "said"),
    [("echo 'Connection closed'; exit 255", "sh could not copy the bundle.\n  Connection closed"),
     ("kill -9 $$", "sh could not copy the bundle (it was ended by signal 9).")],
)  # fmt: skip
def test_what_broke_off_says_why_and_not_what_was_to_be_copied(ending: str, said: str) -> None:
    with pytest.raises(ParityError) as caught:
        ssh_copy._run(["sh", "-c", f'for k in 1 2 3 4 5 6 7 8 9; do echo "sftp> put -p $k"; done; {ending}'])
    assert caught.value.message == said


def test_a_web_bundle_does_not_run_on_a_device_and_a_linux_bundle_in_no_browser(tmp_path: Path) -> None:
    page = tiny_bundle.make(tmp_path / "page", {"page.js": tiny_bundle.script()}).folder
    with pytest.raises(UsageError, match="kind 'web' does not run there"):
        parity.verify(page, ParityOptions(device="ssh://pi@host"))
    bundle = linux_bundle.make(tmp_path / "linux").folder
    with pytest.raises(UsageError, match="no page that a browser could open"):
        parity.verify(bundle, ParityOptions(runner="chromium"))
    with pytest.raises(UsageError, match="no page that a browser could open"):
        parity.verify(bundle, ParityOptions(cdp="http://127.0.0.1:1"))
    with pytest.raises(UsageError, match="--cdp and --device cannot be used together"):
        parity.verify(bundle, ParityOptions(cdp="http://127.0.0.1:1", device="emulated"))


@pytest.mark.parametrize("command", ["serve", "diagnose", "repair"])
def test_commands_that_need_a_page_say_so(tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = linux_bundle.make(tmp_path).folder
    assert main.run([command, str(bundle)]) == 2
    assert f"'edgekit {command}' works on bundles of kind 'web'" in capsys.readouterr().err


@pytest.mark.parametrize("more", [["--browser", "firefox"], ["--threads", "1,2"], ["--browser-path", "/x"]])
def test_a_device_takes_no_options_of_browsers(
    tmp_path: Path, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["parity", str(tmp_path), "--device", "emulated", *more]) == 2
    said = capsys.readouterr().err
    assert "--device names a device that is no browser" in said or "--device and --browser" in said


def test_a_release_of_debian_that_is_not_known_is_refused() -> None:
    with pytest.raises(UsageError, match="no arm64 root of 'potato'"):
        arm64_root.ensure("potato")


def test_without_the_tools_the_error_says_what_installs_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arm64_root, "which", lambda tool: None)
    with pytest.raises(MissingToolError, match="no proot") as caught:
        arm64_root.ensure()
    assert "qemu-user-static" in (caught.value.hint or "") and "--device ssh" in (caught.value.hint or "")


def test_a_processor_is_described_as_linux_does(own_cache: Path) -> None:
    places = {there: here for here, there in arm64_cpus.files("cortex-a76").items()}
    assert "asimddp" in places["/proc/cpuinfo"].read_text()
    assert (places["/sys/devices/system/cpu"] / "possible").read_text() == "0-3\n"
    least = {there: here for here, there in arm64_cpus.files("unheard-of").items()}["/proc/cpuinfo"].read_text()
    assert "asimddp" not in least and least.count("processor") == arm64_cpus.CORES


def written(folder: Path, run: str = "abc") -> Path:
    record = replace(tiny_bundle.record(tiny_bundle.make(folder / "tiny")), run=run)
    document, tensors = run_record.to_files(record)
    (folder / "record.json").write_bytes(json_bytes(document))
    (folder / "record.safetensors").write_bytes(tensors)
    return folder


def test_a_record_of_this_run_is_read(tmp_path: Path) -> None:
    assert device_record.read_record(written(tmp_path), "abc", 0, "").run == "abc"


def test_a_record_of_another_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParityError, match="another run"):
        device_record.read_record(written(tmp_path), "def", 0, "")


@pytest.mark.parametrize(
    ("code", "said"),
    [(1, "ended with 1"), (-signal.SIGILL, "SIGILL"), (132, "SIGILL"), (137, "SIGKILL"), (255, "ended with 255")],
)
def test_no_record_says_how_the_runner_ended(tmp_path: Path, code: int, said: str) -> None:
    with pytest.raises(ParityError) as caught:
        device_record.read_record(tmp_path, "abc", code, "Error in cpuinfo\nlast words\n")
    assert said in caught.value.message and "last words" in caught.value.message
    assert "cpuinfo" not in caught.value.message
    assert ("instruction" in (caught.value.hint or "")) == ("SIGILL" in said)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", json.dumps({"format": 9}), "[" * 100_000])
def test_a_malformed_record_is_refused(tmp_path: Path, text: str) -> None:
    (written(tmp_path) / "record.json").write_text(text)
    with pytest.raises(ParityError, match="cannot be read"):
        device_record.read_record(tmp_path, "abc", 0, "")


def test_what_is_asked_of_the_page_is_asked_of_the_runner() -> None:
    words, run = device_record.arguments(Ask(cases=("a", "b"), threads=2, repeats=3, soak=4))
    assert words[:7] == ["parity", "--run", run, "--repeats", "3", "--soak", "4"]
    assert words[7:] == ["--threads", "2", "--case", "a", "--case", "b"]


def test_a_program_that_takes_too_long_is_ended_with_what_it_started(tmp_path: Path) -> None:
    script = tmp_path / "slow.sh"
    script.write_text(f"(sleep 1.5; touch {tmp_path}/mark) &\nsleep 30\n")
    with pytest.raises(TimeoutError):
        programs.run(["/bin/sh", str(script)], seconds=0.5)
    time.sleep(1.5)
    assert not (tmp_path / "mark").exists()
