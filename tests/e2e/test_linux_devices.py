"""Linux bundles on an arm64 Debian that this machine plays: from the model to the verdict, over ssh, as a package.

The root folder is made once and kept in edgekit's cache. Where the tools are not here the tests are skipped, and say
so; ``make test`` installs them.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import onnx.parser
import pi
import pytest
from models import real
from pi import Pi

from edgekit import parity, resources
from edgekit.bundle import deb
from edgekit.bundle.open import open_bundle
from edgekit.cli.main import run
from edgekit.errors import MissingToolError
from edgekit.parity import ParityOptions
from edgekit.runners import arm64_root, emulated, ssh, ssh_copy, toolsets
from edgekit.runners.arm64_root import Root
from edgekit.targets import load as targets
from edgekit.targets.options import LINUX

pytestmark = [pytest.mark.real_models, pytest.mark.xdist_group("arm64")]
needs_sshd = pytest.mark.skipif(
    shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None or os.geteuid() != 0,
    reason="OpenSSH's server is not here, or this is not root, who may start it on loopback",
)
ONE = ("--repeats", "1", "--threads", "1")


@pytest.fixture(scope="module")
def root() -> Root:
    missing = toolsets.by_id("emulated").missing
    if missing:
        pytest.skip(f"no arm64 Linux without {', '.join(missing)}: edgekit doctor --install --with emulated")
    try:
        made = arm64_root.ensure()
    except MissingToolError as error:
        if any(word in error.message.lower() for word in ("resolv", "connect", "retriev", "unreachable")):
            pytest.skip(f"the arm64 root is not in the cache, and cannot be fetched: {error.message}")
        raise
    done = subprocess.run(made.command(["/bin/true"]), capture_output=True, text=True, check=False)
    if "ptrace" in done.stderr and "not permitted" in done.stderr:
        pytest.skip(f"this system lets no program trace another, which PRoot does: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return made


def target_id() -> str:
    """The Linux target with the most cores; no test names one."""
    return max((name for name in targets.ids() if targets.load(name).kind == LINUX),
               key=lambda name: (len(targets.load(name).linux.cores), name))  # fmt: skip


@pytest.fixture(scope="module")
def digits(root: Root, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("arm64") / "digits"
    sample = resources.root("examples") / "digits"
    words = ["build", sample / "digits.onnx", "-t", target_id(), "-o", folder, "-s", sample / "samples.npz"]
    assert run([*map(str, words), "--no-strength", "--no-trim", "--json"]) == 0
    return folder


@pytest.fixture(autouse=True)
def quiet(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    """What commands print is read by the tests that look at it."""
    yield
    capsys.readouterr()


def test_the_sample_model_passes_on_an_emulated_device(
    digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in digits.rglob("*")}
    assert run(["parity", str(digits), "--device", "emulated", *ONE, "-o", str(tmp_path / "run"), "--json"]) == 0
    verdict = json.loads(capsys.readouterr().out)["verdict"]
    assert verdict["status"] == "passed" and verdict["compared"] == verdict["expected"] == 22
    environment = verdict["environment"]
    assert (environment["execution_provider"], environment["threads"], environment["emulated"]) == ("cpu", 1, True)
    assert "aarch64" in environment["device"] and environment["runtime"] == "onnxruntime"
    assert any("emulated" in warning for warning in verdict["warnings"])
    assert {path: path.stat().st_mtime_ns for path in digits.rglob("*")} == before, "the bundle was changed"


BFLOAT16 = """
<ir_version: 10, opset_import: ["" : 21]>
brain (bfloat16[2, 3] x) => (bfloat16[2, 3] y) { c = Cast <to = 1> (x)  d = Mul (c, c)  y = Cast <to = 16> (d) }
"""


@pytest.mark.sweep
def test_bfloat16_which_numpy_lacks_passes_on_an_emulated_device(root: Root, tmp_path: Path) -> None:
    (tmp_path / "brain.onnx").write_bytes(onnx.parser.parse_model(BFLOAT16).SerializeToString())
    words = ["build", tmp_path / "brain.onnx", "-t", target_id(), "-o", tmp_path / "brain", "--no-strength"]
    assert run([*map(str, words), "--json"]) == 0
    verdict = parity.verify(tmp_path / "brain", ParityOptions(device="emulated", repeats=0, threads=1)).verdict
    assert verdict.status == "passed" and verdict.compared == verdict.expected > 0


def test_a_bundle_that_was_changed_is_refused_before_anything_runs(digits: Path, tmp_path: Path) -> None:
    shutil.copytree(digits, tmp_path / "changed")
    (tmp_path / "changed" / "lib/edgekit/device/main.py").write_text("import os\n")
    assert run(["parity", str(tmp_path / "changed"), "--device", "emulated"]) == 2


def test_a_device_that_is_too_slow_is_not_run(digits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["parity", str(digits), "--device", "emulated", "--timeout", "1"]) == 6
    assert "did not finish within 1 s" in capsys.readouterr().out


@pytest.fixture(scope="module")
def device(root: Root, digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pi]:
    packages = emulated.site_packages(open_bundle(digits, verify=False), root.python)
    with pi.running(tmp_path_factory.mktemp("pi"), root, packages=packages) as started:
        yield started


def over_ssh(digits: Path, device: Pi, capsys: pytest.CaptureFixture[str]) -> Path:
    """Run parity there; return the folder that it made."""
    assert run(["parity", str(digits), "--device", device.address, *ONE, "--json"]) == 0
    verdict = json.loads(capsys.readouterr().out)["verdict"]
    assert verdict["status"] == "passed" and verdict["compared"] == 22
    assert verdict["environment"]["user_agent"].startswith("Debian GNU/Linux 12")
    (folder,) = (device.home / ".cache/edgekit").iterdir()
    assert not list(folder.glob("record-*")), "the record was left behind"
    assert {path.name.split("-cp")[1][:3] for path in (folder / "bundle/wheels").iterdir()} == {"311"}
    return folder


@needs_sshd
def test_over_ssh_it_is_copied_replayed_and_judged(
    digits: Path, root: Root, device: Pi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EDGEKIT_SSH_CONFIG", str(device.config))
    pi.install(device, digits, f".cache/edgekit/digits-{target_id()}", root.python)
    folder = over_ssh(digits, device, capsys)
    assert (folder / "env/venv/lib/python3.11/site-packages").is_symlink(), "it was up to date, and installed again"
    assert any("rsync --server" in line for line in device.asked)


@needs_sshd
@pytest.mark.sweep
def test_over_ssh_it_is_installed_where_it_was_not(
    digits: Path, root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pi.running(tmp_path / "fresh", root) as fresh:
        monkeypatch.setenv("EDGEKIT_SSH_CONFIG", str(fresh.config))
        folder = over_ssh(digits, fresh, capsys)
        assert (folder / "env/venv/lib/python3.11/site-packages/onnxruntime").is_dir()


@needs_sshd
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"known": ""}, "The host key of 127.0.0.1 is not known"),
        ({"known": "stranger"}, "is another one than before"),
        ({"key": "stranger"}, "does not let us in"),
    ],
)
def test_a_device_that_is_not_known_or_does_not_know_us_is_not_talked_to(
    digits: Path, device: Pi, change: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("EDGEKIT_SSH_CONFIG", str(pi.config(device.config.parent, device.port, **change)))
    before = len(device.asked)
    assert run(["parity", str(digits), "--device", device.address]) == 4
    assert said in capsys.readouterr().err
    assert len(device.asked) == before


@needs_sshd
def test_a_device_that_is_not_there_is_exit_code_4(digits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["parity", str(digits), "--device", "ssh://127.0.0.1:1"]) == 4
    assert "cannot be reached" in capsys.readouterr().err


@needs_sshd
def test_by_sftp_only_what_changed_is_sent_and_what_broke_off_goes_on(
    digits: Path, root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pi.running(tmp_path / "pi", root, rsync=False) as bare:
        monkeypatch.setenv("EDGEKIT_SSH_CONFIG", str(bare.config))
        there = bare.home / "copied" / "bundle"
        there.mkdir(parents=True)
        bundle = open_bundle(digits, verify=False)
        wheel = max((digits / "wheels").glob("*-cp311-*"), key=lambda path: path.stat().st_size)
        (there / "wheels").mkdir()
        whole = wheel.read_bytes()
        (there / "wheels" / wheel.name).write_bytes(whole[: len(whole) - 1000])  # it broke off here
        (there / "README.md").write_bytes(b"x" * 100_000)  # longer than ours, and another
        with ssh.reached(bare.address) as place:
            for _ in range(2):
                ssh_copy.copy(place, bundle, "copied", python="3.11", rsync=False, progress=lambda *_: None)
        sent = [line for line in bare.asked if "sftp" in line]
        assert len(sent) == 2, "once to append, once for what was not ours; the second copy sent nothing"
        for entry in bundle.manifest.files:
            if not entry.path.startswith("wheels/") or "-cp311-" in entry.path:
                assert (there / entry.path).read_bytes() == (digits / entry.path).read_bytes()


@pytest.mark.sweep
def test_the_package_installs_runs_and_leaves_nothing(digits: Path, root: Root, tmp_path: Path) -> None:
    target = targets.load(target_id())
    (tmp_path / "work").mkdir()
    package = deb.write(digits, target, "digits", tmp_path / "work", version="1")
    debs = tmp_path / "debs"
    debs.mkdir()
    package.rename(debs / package.name)
    own = tmp_path / "root"
    subprocess.run(["/bin/cp", "-a", str(root.folder), str(own)], check=True)
    device = replace(root, folder=own)

    def sh(line: str) -> "subprocess.CompletedProcess[str]":
        command = device.command(["/bin/sh", "-c", line], binds={debs: "/debs"}, cpu=target.linux.cpu, as_root=True)
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = sh(f"dpkg -i /debs/{package.name} 2>&1")
    assert done.returncode == 0 and "Setting up edgekit-digits" in done.stdout, done.stdout[-2000:]
    done = sh("edgekit-digits parity -o /root/record && cat /root/record/record.json")
    assert done.returncode == 0, done.stderr
    assert all(case["status"] == "done" for case in json.loads(done.stdout)["cases"])
    assert sh("dpkg --purge edgekit-digits 2>/dev/null").returncode == 0
    left = sh("ls -d /usr/lib/edgekit-digits /var/lib/edgekit-digits /etc/edgekit-digits.toml /usr/bin/edgekit-digits")
    assert left.stdout == ""


@pytest.mark.sweep
@pytest.mark.parametrize("key", ["silero_vad", "ppocr_cls"])
def test_real_models_pass_on_an_emulated_device(key: str, root: Root, tmp_path: Path) -> None:
    words = ["build", real.path(key), "-t", target_id(), "-o", tmp_path / key, "--no-strength"]
    assert run([*map(str, words), "--json"]) == 0
    verdict = parity.verify(tmp_path / key, ParityOptions(device="emulated", repeats=0, threads=1)).verdict
    assert verdict.status == "passed" and verdict.compared == verdict.expected > 0
