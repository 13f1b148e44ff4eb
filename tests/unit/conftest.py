"""What unit tests of Android projects share: the plain Java core, compiled once."""

from pathlib import Path

import jvm
import pytest


@pytest.fixture(scope="session")
def core_classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return jvm.compile_core(tmp_path_factory.mktemp("core-classes"))
