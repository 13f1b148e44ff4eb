"""The fixture that fails a test in which the library prints, tried on small suites of its own."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

CONFTEST = (Path(__file__).parents[1] / "conftest.py").read_text(encoding="utf-8")


def outcomes(pytester: pytest.Pytester, body: str) -> dict[str, int]:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(f"import os, subprocess, sys\n\ndef test_it():\n    {body}\n")
    return pytester.runpytest_inprocess("-p", "no:cacheprovider").parseoutcomes()


@pytest.mark.parametrize(
    "body",
    [
        "print('hello')",
        "sys.stderr.write('hello')",
        "os.write(2, b'native code')",
        "subprocess.run([sys.executable, '-c', 'print(1)'], check=True)",
    ],
)
def test_a_test_that_prints_fails(pytester: pytest.Pytester, body: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcomes(pytester, body) == {"passed": 1, "errors": 1}


def test_a_silent_test_passes(pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcomes(pytester, "pass") == {"passed": 1}


def test_a_test_that_captures_may_print(pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile("def test_it(capsys):\n    print('hello')\n    assert capsys.readouterr().out == 'hello\\n'\n")
    assert pytester.runpytest_inprocess("-p", "no:cacheprovider").parseoutcomes() == {"passed": 1}
