"""What every command imports stays light."""

import subprocess
import sys


def imported(module: str) -> set[str]:
    code = f"import sys, {module}; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_shared_options_import_nothing_heavy() -> None:
    assert not {"numpy", "onnx", "PIL"} & imported("edgekit.cli.options")


def test_the_twin_the_options_of_golden_cases_do_which_is_why_they_stand_apart() -> None:
    assert {"numpy", "onnx", "PIL"} <= imported("edgekit.cli.case_options")
