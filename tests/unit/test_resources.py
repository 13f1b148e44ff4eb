"""Packaged data: from the wheel when it is there, else from the checkout."""

from pathlib import Path

import pytest

from edgekit import resources
from edgekit.errors import EdgekitError


@pytest.mark.parametrize("name", ["device_targets", "web", "examples"])
def test_the_checkout_has_the_data(name: str) -> None:
    assert resources.root(name).exists()


def test_the_data_in_the_wheel_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "edgekit"
    for folder in (package / "_data" / "web", tmp_path / "web", tmp_path / "templates"):
        folder.mkdir(parents=True)
    monkeypatch.setattr(resources, "_PACKAGE", package)
    assert resources.root("web") == package / "_data" / "web"
    assert resources.root("templates") == tmp_path / "templates"


def test_missing_data_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path / "edgekit")
    with pytest.raises(EdgekitError, match="'web' is missing") as caught:
        resources.root("web")
    assert caught.value.hint == "Install edgekit again."
