import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from edgekit.child import process as child
from edgekit.child.process import ChildFailedError, ChildLimits
from edgekit.errors import LimitError

GIB = 1 << 30
PACKAGE = str(Path(child.__file__).parent.parent)
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits of memory and the kernel's parent watch are Linux's")

Run = Callable[..., Path]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the text of a module in a child process; return the folder that it was given."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), PACKAGE]))

    def run_text(text: str, *, seconds: float = 20, memory_bytes: int = GIB) -> Path:
        write_module(tmp_path, text)
        folder = tmp_path / "work <b> 'é"
        folder.mkdir()
        limits = ChildLimits(seconds=seconds, memory_bytes=memory_bytes)
        child.run_module("a_module", folder, limits=limits, what="doing things")
        return folder

    return run_text


def write_module(folder: Path, text: str) -> None:
    head = "import ctypes, json, os, re, sys, time\nfrom pathlib import Path\nfolder = Path(sys.argv[1])\n"
    (folder / "a_module.py").write_text(head + textwrap.dedent(text))


def is_alive(process_id: int) -> bool:
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def assert_dies(process_id: int) -> None:
    deadline = time.monotonic() + 5
    while is_alive(process_id):
        assert time.monotonic() < deadline, "the child outlives its parent"
        time.sleep(0.02)


def wait_for(path: Path) -> str:
    deadline = time.monotonic() + 10
    while not path.exists() or not path.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return path.read_text()


def test_module_runs_with_its_folder_and_prints_nothing_here(run: Run) -> None:
    folder = run("(folder / 'done').write_text('yes'); print('noise'); print('noise', file=sys.stderr)")

    assert (folder / "done").read_text() == "yes"


def test_module_ends_well_with_exit_zero(run: Run) -> None:
    run("sys.exit(0)")


def test_standard_input_is_empty(run: Run) -> None:
    assert (run("(folder / 'read').write_text(repr(sys.stdin.read()))") / "read").read_text() == "''"


def test_onnxruntime_is_told_not_to_report_on_its_use(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)
    run("import os; assert os.environ['ORT_DISABLE_TELEMETRY'] == '1'")


def test_python_error_is_told_with_its_last_line(run: Run) -> None:
    with pytest.raises(ChildFailedError, match="doing things: ValueError: no <b>") as caught:
        run("raise ValueError('no <b>')")

    assert not caught.value.crashed
    assert "Traceback" in caught.value.output


@pytest.mark.parametrize("text", ["print('the reason'); sys.exit(3)", "sys.exit('the reason')"])
def test_exit_with_a_code_is_a_python_error(run: Run, text: str) -> None:
    with pytest.raises(ChildFailedError) as caught:
        run(text)

    assert (caught.value.reason, caught.value.crashed) == ("the reason", False)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ctypes.string_at(0)", "SIGSEGV"),
        ("os.abort()", "SIGABRT"),
        ("os.kill(os.getpid(), 8)", "SIGFPE"),
        ("os._exit(3)", "exit code 3"),
    ],
)
def test_crash_is_told_by_its_signal(run: Run, text: str, reason: str) -> None:
    with pytest.raises(ChildFailedError) as caught:
        run(text)

    assert (caught.value.reason, caught.value.crashed) == (reason, True)


@LINUX
def test_crash_leaves_no_core_file(run: Run) -> None:
    folder = run("import resource; (folder / 'limit').write_text(str(resource.getrlimit(resource.RLIMIT_CORE)[0]))")

    assert (folder / "limit").read_text() in ("0", "1")


def test_kill_by_the_system_is_told_as_lack_of_memory(run: Run) -> None:
    with pytest.raises(LimitError, match="SIGKILL"):
        run("os.kill(os.getpid(), 9)")


def test_endless_module_is_stopped_with_all_it_started(run: Run, tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(LimitError, match=r"Stopped after 1 s: doing things"):
        run(
            """
            import subprocess
            other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
            (folder / 'pid').write_text(str(other.pid))
            time.sleep(60)
            """,
            seconds=1,
        )

    assert time.monotonic() - started < 5
    assert_dies(int(next(tmp_path.glob("work*/pid")).read_text()))


def test_what_a_module_started_does_not_outlive_it(run: Run) -> None:
    folder = run(
        """
        import subprocess
        other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        (folder / 'pid').write_text(str(other.pid))
        """
    )

    assert_dies(int((folder / "pid").read_text()))


@LINUX
def test_memory_that_grows_in_steps_is_stopped(run: Run) -> None:
    with pytest.raises(LimitError, match=r"more memory than its limit of 0\.25 GiB"):
        run("kept = []\nwhile True: kept.append(b'x' * (1 << 22))", memory_bytes=GIB // 4)


@LINUX
def test_memory_asked_for_at_once_is_refused_at_once(run: Run) -> None:
    with pytest.raises(LimitError, match="more memory than its limit"):
        run("b'x' * (1 << 36)", memory_bytes=GIB // 4)


@LINUX
def test_mapped_files_are_not_counted_as_memory(run: Run) -> None:
    run(
        """
        import mmap
        with open(folder / 'big', 'w+b') as stream:
            stream.truncate(1 << 29)
            view = mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ)
            assert sum(view[i] for i in range(0, 1 << 29, 4096)) == 0
        time.sleep(0.2)
        """,
        memory_bytes=GIB // 4,
    )


@LINUX
def test_onnxruntime_starts_under_a_small_limit_with_many_threads(run: Run) -> None:
    run(
        """
        import onnxruntime, onnx.parser
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 64
        options.log_severity_level = 4
        text = '<ir_version: 8, opset_import: ["": 17]> g (float[N] x) => (float[N] y) { y = Relu(x) }'
        onnxruntime.InferenceSession(onnx.parser.parse_model(text).SerializeToString(), options)
        """,
        memory_bytes=GIB // 4,
    )


def test_much_output_neither_blocks_the_child_nor_is_kept(run: Run) -> None:
    with pytest.raises(ChildFailedError) as caught:
        run("print('x' * 20_000_000); raise KeyError('the end')")

    assert caught.value.reason == "KeyError: 'the end'"
    assert len(caught.value.output) <= 64 << 10


def test_modules_of_the_current_folder_are_not_picked_up(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "numpy.py").write_text("raise SystemExit('taken over')")
    monkeypatch.chdir(here)

    run("import numpy; numpy.zeros(1)")


def test_each_look_is_called_while_the_child_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), PACKAGE]))
    write_module(tmp_path, "time.sleep(0.3)")
    looks: list[int] = []

    child.run_module("a_module", tmp_path, limits=ChildLimits(), what="", each_look=lambda: looks.append(1))

    assert looks


def test_interrupt_ends_the_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), PACKAGE]))
    write_module(tmp_path, "(folder / 'pid').write_text(str(os.getpid())); time.sleep(60)")

    def interrupt() -> None:
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        child.run_module("a_module", tmp_path, limits=ChildLimits(), what="", each_look=interrupt)

    assert_dies(int((tmp_path / "pid").read_text()))


@LINUX
@pytest.mark.parametrize(
    "text",
    [
        "ctypes.CDLL(None).prctl(1, 0); tell(); time.sleep(60)",  # the kernel is told nothing: the pipe ends it
        "tell(); re.match('(a+)+$', 'a' * 60 + 'b')",  # Python's lock is never given back: the kernel ends it
    ],
    ids=["pipe", "kernel"],
)
def test_killed_parent_takes_the_child_with_it(tmp_path: Path, text: str) -> None:
    write_module(tmp_path, f"def tell(): (folder / 'pid').write_text(str(os.getpid()))\n{text}")
    code = (
        "from pathlib import Path; from edgekit.child import process as child; import json, sys; "
        "child.run_module('a_module', Path(json.loads(sys.argv[1])), limits=child.ChildLimits(), what='')"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), PACKAGE])}
    with subprocess.Popen([sys.executable, "-c", code, json.dumps(str(tmp_path))], env=environment) as parent:
        process_id = int(wait_for(tmp_path / "pid"))
        assert is_alive(process_id)
        parent.send_signal(signal.SIGKILL)

    assert_dies(process_id)


def test_usual_memory_limit_leaves_some_of_the_machine() -> None:
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

    assert 0 < ChildLimits().memory_bytes <= min(8 * GIB, physical * 3 // 4)
