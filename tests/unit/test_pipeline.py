"""What the front door says of a bundle that it built and then repaired."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny_bundle
import web_bundle
from apk_reading import Answers
from models_text import LINEAR, write

from edgekit import pipeline
from edgekit.bundle.open import open_bundle
from edgekit.kinds.config import AndroidOptions, BuildConfig
from edgekit.pipeline import BuildResult
from edgekit.repair.result import Repair
from edgekit.repair.search import RepairOptions
from edgekit.runners.toolsets import by_id
from edgekit.runtime_trim import RuntimeSize

FIRST = RuntimeSize("wasm", 100, 50, 40, 20, 4, 10, ("profile",), (1,), 0, "", "")
AGAIN = replace(FIRST, bytes=60, brotli_bytes=30, kept=6)


@pytest.mark.parametrize(
    ("status", "runtimes", "shown"),
    [("repaired", (AGAIN,), (AGAIN,)), ("nothing", (), (FIRST,)), ("failed", (), (FIRST,)), ("repaired", (), ())],
)
def test_the_runtimes_are_those_of_the_bundle_that_lies_there(
    status: str, runtimes: tuple[RuntimeSize, ...], shown: tuple[RuntimeSize, ...], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    folder = tmp_path / "bundle"
    web_bundle.build(write(LINEAR, tmp_path), folder, "wasm")
    built = BuildResult(folder, "wasm", "before", (), (), (), (), runtimes=(FIRST,))
    repair = Repair(status, "0", "before", (), runtimes=runtimes)  # type: ignore[arg-type]
    monkeypatch.setattr(pipeline, "build", lambda config, progress: built)
    monkeypatch.setattr(pipeline.repairing, "repair", lambda folder, options, **_: repair)
    config = BuildConfig(tmp_path / "model.onnx", "wasm", folder)
    found, done = pipeline.build_repaired(config, RepairOptions())
    assert done is repair
    assert found.runtimes == shown
    assert found.manifest_sha256 == open_bundle(folder).manifest_sha256
    assert found.files


@pytest.mark.parametrize(("status", "renewed"), [("repaired", True), ("nothing", False), ("failed", False)])
def test_an_app_beside_a_repaired_bundle_shows_the_repaired_page(
    status: str, renewed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, app = tmp_path / "bundle", tmp_path / "bundle.apk"
    tiny_bundle.make(folder)
    built = BuildResult(folder, "wasm", "before", (), (), (), (), beside=(app,))
    repair = Repair(status, "0", "before", ())  # type: ignore[arg-type]

    def repaired(folder: Path, options: Any, *, beside: Any, **_: Any) -> Repair:
        (tmp_path / "work").mkdir()
        for place, made in (beside(tmp_path / "work")(folder) if renewed else {}).items():
            made.replace(place)
        return repair

    monkeypatch.setattr(pipeline, "build", lambda config, progress: built)
    monkeypatch.setattr(pipeline.repairing, "repair", repaired)
    config = BuildConfig(tmp_path / "model.onnx", "wasm", folder, android=AndroidOptions(apk=True))
    if renewed and (missing := by_id("apk").missing):
        pytest.skip(f"missing: {', '.join(missing)}")
    found, _ = pipeline.build_repaired(config, RepairOptions())
    assert found.beside == (app,)
    assert app.exists() == renewed
    assert not renewed or Answers(app).get("GET", "manifest.json").body == (folder / "manifest.json").read_bytes()
