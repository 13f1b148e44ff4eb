"""The installer of Linux bundles, run on this machine with wheels that only look like wheels."""

import os
import shutil
import subprocess
from pathlib import Path

import linux_bundle
import pytest

from edgekit.bundle.open import Bundle


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return linux_bundle.make(tmp_path_factory.mktemp("installer"))


def sh(script: Path, *words: object, **variables: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "HOME": str(script.parent), **variables}
    return subprocess.run(
        ["/bin/sh", str(script), *map(str, words)], capture_output=True, text=True, check=False, env=environment
    )


def install(bundle: Bundle, prefix: Path, *words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    return sh(bundle.folder / "install.sh", "--prefix", prefix, *words, **variables)


def program(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)
    return folder


def test_it_installs_once_and_again_without_a_change(bundle: Bundle, tmp_path: Path) -> None:
    prefix = tmp_path / "opt" / "tiny"
    done = install(bundle, prefix, "--no-service")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert f"Installed in {prefix}." in done.stderr
    runner = (prefix / "bin" / "edgekit-run").read_text()
    assert f"--bundle '{prefix}/bundle'" in runner and f"--config '{prefix}/config.toml'" in runner
    packages = prefix / "venv" / "lib" / f"python{linux_bundle.THIS}" / "site-packages"
    assert (packages / "onnxruntime" / "__init__.py").is_file()
    assert not list(prefix.rglob("*.whl")), "the wheels are not kept twice"
    stamp = (prefix / ".installed").stat().st_mtime_ns
    again = install(bundle, prefix, "--no-service")
    assert again.returncode == 0 and "is up to date" in again.stderr
    assert (prefix / ".installed").stat().st_mtime_ns == stamp
    assert sorted(path.name for path in prefix.parent.iterdir()) == ["tiny"]


def test_an_installation_that_is_replaced_keeps_its_configuration(bundle: Bundle, tmp_path: Path) -> None:
    prefix = tmp_path / "tiny"
    assert install(bundle, prefix, "--no-service").returncode == 0
    (prefix / "config.toml").write_text("# mine\n")
    other = linux_bundle.make(tmp_path / "other", shift=1.0)
    assert install(other, prefix, "--no-service").returncode == 0
    assert (prefix / "config.toml").read_text() == "# mine\n"
    assert (prefix / "bundle/manifest.json").read_bytes() == (other.folder / "manifest.json").read_bytes()


def test_a_configuration_that_nobody_changed_is_that_of_the_newer_bundle(bundle: Bundle, tmp_path: Path) -> None:
    prefix = tmp_path / "tiny"
    assert install(bundle, prefix, "--no-service").returncode == 0
    for path in (prefix / "config.toml", prefix / "bundle" / "config.toml"):
        path.write_text("# of an older bundle\n")
    (prefix / ".installed").write_text("older")
    assert install(bundle, prefix, "--no-service").returncode == 0
    assert (prefix / "config.toml").read_bytes() == (bundle.folder / "config.toml").read_bytes()


def test_an_installation_that_stopped_halfway_is_found_again_with_its_configuration(
    bundle: Bundle, tmp_path: Path
) -> None:
    prefix = tmp_path / "tiny"
    assert install(bundle, prefix, "--no-service").returncode == 0
    (prefix / "config.toml").write_text("# mine\n")
    prefix.rename(tmp_path / "tiny.old")
    other = linux_bundle.make(tmp_path / "other", shift=1.0)
    assert install(other, prefix, "--no-service").returncode == 0
    assert (prefix / "config.toml").read_text() == "# mine\n" and not (tmp_path / "tiny.old").exists()


@pytest.mark.parametrize("part", ["model/model.onnx", "lib/edgekit/device/main.py", "cases/cases.json"])
def test_a_damaged_bundle_does_not_take_the_place_of_what_works(part: str, bundle: Bundle, tmp_path: Path) -> None:
    prefix = tmp_path / "tiny"
    assert install(bundle, prefix, "--no-service").returncode == 0
    damaged = linux_bundle.make(tmp_path / "other", shift=1.0)
    (damaged.folder / part).write_bytes((damaged.folder / part).read_bytes() + b"\n")
    done = install(damaged, prefix, "--no-service")
    assert done.returncode == 2 and f"{part} is missing or damaged" in done.stderr
    assert (prefix / "bundle/manifest.json").read_bytes() == (bundle.folder / "manifest.json").read_bytes()


def test_where_systemd_does_not_answer_the_service_is_left_to_be_started_by_hand(
    bundle: Bundle, tmp_path: Path
) -> None:
    tools = program(tmp_path / "tools", "systemctl", "echo 'Failed to connect to bus' >&2; exit 1")
    home = tmp_path / "home"
    variables = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
    done = install(bundle, tmp_path / "tiny", "--user", **variables)
    assert done.returncode == 0 and "systemd does not answer here" in done.stderr
    assert (home / ".config/systemd/user/edgekit-tiny-model.service").is_file()


@pytest.mark.parametrize(
    ("tools", "words", "code", "said"),
    [
        ({"uname": '[ "$1" = -m ] && echo armv7l || echo Linux'}, [], 4, "this system is 32-bit (armv7l)"),
        ({"uname": '[ "$1" = -m ] && echo riscv64 || echo Linux'}, [], 4, "this machine is riscv64"),
        ({"uname": "echo Darwin"}, [], 4, "this bundle is for Linux, and this is Darwin"),
        ({"python3": 'case $2 in *version_info*) echo 3.9;; *) echo 64;; esac'}, [], 4, "this system has Python 3.9"),
        ({"python3": "echo 32"}, [], 4, "32-bit"),
        ({}, ["--prefix"], 2, "--prefix needs a folder"),
        ({}, ["--prefix", "--user"], 2, "--prefix needs a folder"),
        ({}, ["--now"], 2, "there is no option '--now'"),
        ({}, ["--prefix", "/x/$(id)"], 2, "cannot be installed into"),
        ({}, ["--prefix", "/proc/edgekit"], 2, "/proc cannot be written"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_words(
    bundle: Bundle, tmp_path: Path, tools: dict[str, str], words: list[str], code: int, said: str
) -> None:
    folder = tmp_path / "tools"
    folder.mkdir()
    for name, text in tools.items():
        program(folder, name, text)
    script, path = bundle.folder / "install.sh", f"{folder}:{os.environ['PATH']}"
    given = () if "--prefix" in words else ("--prefix", tmp_path / "prefix")
    done = sh(script, "--no-service", *given, *words, PATH=path)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert not (tmp_path / "prefix").exists()


def test_a_system_that_it_was_not_made_for_is_refused_unless_told_to_go_on(tmp_path: Path) -> None:
    bundle = linux_bundle.make(tmp_path, systems=("plan9:fourth",))
    done = install(bundle, tmp_path / "prefix", "--no-service")
    assert done.returncode == 4 and "made for plan9:fourth, and this is" in done.stderr
    assert install(bundle, tmp_path / "prefix", "--no-service", "--any-system").returncode == 0


def test_a_bundle_that_runs_where_it_lies_is_installed_anew_when_it_is_another(tmp_path: Path) -> None:
    bundle = linux_bundle.make(tmp_path / "a", systems=("plan9:fourth",))
    run = bundle.folder / "edgekit-run"
    refused = sh(run, "bench")
    assert refused.returncode == 4 and refused.stderr.startswith("edgekit-run: this bundle was made for plan9:fourth")
    env = bundle.folder.with_name("bundle.venv")
    sh(run, "--any-system", "--help")
    stamp = (env / ".installed").read_text()
    before = (env / ".installed").stat().st_mtime_ns
    sh(run, "--help")
    assert (env / ".installed").stat().st_mtime_ns == before
    # Another bundle in the same place: what was installed beside it is not run any more.
    other = linux_bundle.make(tmp_path / "b", systems=("plan9:fourth",), shift=1.0)
    shutil.rmtree(bundle.folder)
    shutil.copytree(other.folder, bundle.folder)
    sh(run, "--any-system", "--help")
    assert (env / ".installed").read_text() != stamp
    assert (env / "bundle" / "cases" / "cases.safetensors").read_bytes() == (
        other.folder / "cases" / "cases.safetensors"
    ).read_bytes()
    # The folder's own configuration counts, and not the copy in the installation.
    (env / "bin" / "edgekit-run").write_text('#!/bin/sh\necho "$@"\n')
    assert sh(run, "bench").stdout == f"--config {bundle.folder}/config.toml bench\n"


def test_a_bundle_in_a_path_with_a_space_says_where_to_move_it(bundle: Bundle, tmp_path: Path) -> None:
    shutil.copytree(bundle.folder, tmp_path / "my bundle")
    done = sh(tmp_path / "my bundle" / "edgekit-run", "bench")
    assert done.returncode == 2 and done.stderr.startswith("edgekit-run: ") and "move this folder" in done.stderr


def test_a_folder_with_something_else_is_not_touched(bundle: Bundle, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    done = install(bundle, tmp_path / "mine", "--no-service")
    assert done.returncode == 2 and "holds something else" in done.stderr
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]


def test_a_wheel_that_was_changed_is_not_installed(tmp_path: Path) -> None:
    bundle = linux_bundle.make(tmp_path)
    wheel = next((bundle.folder / "wheels").iterdir())
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    done = install(bundle, tmp_path / "prefix", "--no-service")
    assert done.returncode == 2 and "missing or damaged" in done.stderr
    assert not (tmp_path / "prefix").exists() and not (tmp_path / "prefix.new").exists()


def test_a_wheel_that_crashes_here_is_not_left_to_serve(bundle: Bundle, tmp_path: Path) -> None:
    done = install(bundle, tmp_path / "prefix", "--no-service", PYTHONPATH=str(_crashing(tmp_path)))
    assert done.returncode == 4 and "onnxruntime does not start on this device (exit code 132" in done.stderr
    assert not (tmp_path / "prefix").exists()


def _crashing(folder: Path) -> Path:
    (folder / "crash" / "onnxruntime").mkdir(parents=True)
    text = "import os, signal\nos.kill(os.getpid(), signal.SIGILL)\n"
    (folder / "crash" / "onnxruntime" / "__init__.py").write_text(text)
    return folder / "crash"


def test_the_service_is_installed_started_and_removed_with_the_rest(bundle: Bundle, tmp_path: Path) -> None:
    log = tmp_path / "log"
    tools = program(tmp_path / "tools", "systemctl", f'echo "$@" >> {log}')
    prefix, home = tmp_path / "tiny", tmp_path / "home"
    variables = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
    done = install(bundle, prefix, "--user", **variables)
    assert done.returncode == 0, done.stderr
    unit = home / ".config/systemd/user/edgekit-tiny-model.service"
    assert f"ExecStart={prefix}/bin/edgekit-run serve" in unit.read_text()
    assert log.read_text().splitlines() == [
        "--user daemon-reload",
        "--user enable edgekit-tiny-model.service",
        "--user restart edgekit-tiny-model.service",
    ]
    log.unlink()
    done = sh(prefix / "uninstall.sh", "--keep-config", **variables)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in prefix.iterdir()] == ["config.toml"] and not unit.exists()
    assert log.read_text().splitlines()[0] == "--user disable --now edgekit-tiny-model.service"


def test_uninstalling_removes_everything(bundle: Bundle, tmp_path: Path) -> None:
    prefix = tmp_path / "tiny"
    assert install(bundle, prefix, "--no-service").returncode == 0
    assert sh(prefix / "uninstall.sh", "--all").returncode == 2
    assert sh(prefix / "uninstall.sh").returncode == 0
    assert not prefix.exists()


def test_the_unit_is_watched_restarted_and_has_no_rights(bundle: Bundle) -> None:
    lines = (bundle.folder / "lib/install/service.in").read_text().splitlines()
    wanted = ("Type=notify", "WatchdogSec=30", "Restart=always", "DynamicUser=yes", "ProtectSystem=strict")
    for line in (*wanted, "NoNewPrivileges=yes", "CapabilityBoundingSet=", "ExecStart=@PREFIX@/bin/edgekit-run serve"):
        assert line in lines


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
def test_systemd_finds_no_fault_in_the_units_and_little_exposed(bundle: Bundle, tmp_path: Path) -> None:
    def analyze(*words: object) -> "subprocess.CompletedProcess[str]":
        command = [shutil.which("systemd-analyze") or "", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    for name in ("service.in", "user-service.in"):
        text = (bundle.folder / "lib/install" / name).read_text().replace("@PREFIX@/bin/edgekit-run", "/bin/true")
        unit = tmp_path / f"edgekit-{name.removesuffix('.in').replace('service', 'x')}.service"
        unit.write_text(text)
        done = analyze("verify", unit)
        assert (done.returncode, done.stdout + done.stderr) == (0, "")
    system = tmp_path / "edgekit-x.service"
    assert analyze("security", "--offline=true", "--threshold=20", system).returncode == 0
    system.write_text("\n".join(line for line in system.read_text().splitlines() if "Protect" not in line))
    assert analyze("security", "--offline=true", "--threshold=20", system).returncode != 0
