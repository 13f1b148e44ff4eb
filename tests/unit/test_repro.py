import json
import platform
import re
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from playwright.sync_api import sync_playwright

from edgekit import repro, resources
from edgekit.errors import UsageError
from edgekit.files import sha256_file
from edgekit.fuzz import write
from edgekit.records.settings import SessionSettings
from edgekit.records.tensors import value_of
from edgekit.repro import Repro
from edgekit.runners import browsers, chromium
from edgekit.runtime import pins
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.pins import Variant
from edgekit.serve.app import create_static_app
from edgekit.serve.assets import of_files
from edgekit.serve.server import serving

X = np.array([1.0, np.nan, -0.0], dtype=np.float32)


@pytest.fixture
def variant() -> Variant:
    return pins.load().variants[0]


@pytest.fixture
def dist(tmp_path: Path, variant: Variant) -> RuntimeDist:
    folder = tmp_path / "dist"
    folder.mkdir()
    for name in variant.files:
        (folder / name).write_bytes(name.encode())
    return RuntimeDist(folder, "onnxruntime-web", "9.9.9", dict.fromkeys(variant.files, ""), pinned=False)


def _repro(**changes: object) -> Repro:
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[3] x) => (float[3] y) { y = Neg(x) }"""
    )
    values = {
        "title": "Neg is <b>wrong</b>",
        "model": proto.SerializeToString(),
        "inputs": (value_of("x", X),),
        "expected": (value_of("y", -X),),
        "got": (value_of("y", X),),
        "combination": "chromium",
        "facts": (("Adapter", "made | up"),),
        "text": "It gives its input back.",
    }
    return Repro(**(values | changes))  # type: ignore[arg-type]


def _config(folder: Path) -> dict[str, object]:
    page = (folder / "index.html").read_text()
    found = re.search(r'<script type="application/json" id="repro">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    document: dict[str, object] = json.loads(found[1])
    return document


def test_the_folder_holds_the_model_the_values_the_page_its_runtime_and_the_report(
    tmp_path: Path, variant: Variant, dist: RuntimeDist
) -> None:
    folder = repro.write(tmp_path / "repro", _repro(), variant, dist)
    onnx.checker.check_model(onnx.load(folder / "model.onnx"))
    assert np.array_equal(np.load(folder / "inputs.npz")["x"], X, equal_nan=True)
    assert np.signbit(np.load(folder / "expected.npz")["y"]).tolist() == np.signbit(-X).tolist()
    assert np.array_equal(np.load(folder / "got.npz")["y"], X, equal_nan=True)
    assert {path.name for path in (folder / "runtime").iterdir()} == {*variant.files, "LICENSE"}
    report = (folder / "report.md").read_text()
    assert "onnxruntime-web 9.9.9" in report
    assert "It gives its input back." in report and "made \\| up" in report


def test_the_same_repro_gives_the_same_bytes(tmp_path: Path, variant: Variant, dist: RuntimeDist) -> None:
    a, b = (repro.write(tmp_path / name, _repro(), variant, dist) for name in "ab")
    files = sorted(path.relative_to(a) for path in a.rglob("*") if path.is_file())
    assert files and all((a / path).read_bytes() == (b / path).read_bytes() for path in files)


def test_an_earlier_repro_and_an_empty_folder_are_replaced(tmp_path: Path, variant: Variant, dist: RuntimeDist) -> None:
    (tmp_path / "repro").mkdir()
    for title in ("first", "second"):
        repro.write(tmp_path / "repro", _repro(title=title), variant, dist)
    assert (tmp_path / "repro" / "report.md").read_text().startswith("# second")


def test_a_fuzz_run_that_goes_on_forgets_repros_of_causes_that_are_no_more(
    tmp_path: Path, variant: Variant, dist: RuntimeDist
) -> None:
    repros = tmp_path / write.REPROS
    for name in ("conv-1", "conv-2", "mine"):
        repro.write(repros / name, _repro(), variant, dist)
    (repros / "mine" / "note.txt").write_text("mine")
    write.forget(tmp_path, ["repros/conv-1"])
    assert sorted(path.name for path in repros.iterdir()) == ["conv-1", "mine"]
    write.forget(tmp_path / "nowhere", [])


def test_something_else_is_never_replaced(tmp_path: Path, variant: Variant, dist: RuntimeDist) -> None:
    (tmp_path / "repro").write_text("mine")
    with pytest.raises(UsageError, match="something else than a repro"):
        repro.write(tmp_path / "repro", _repro(), variant, dist)
    assert (tmp_path / "repro").read_text() == "mine"


def test_names_from_a_model_stay_text_on_the_page_and_in_the_report(
    tmp_path: Path, variant: Variant, dist: RuntimeDist
) -> None:
    hostile = "</script><img src=x onerror=alert(1)>|`"
    made = _repro(inputs=(value_of(hostile, X),), expected=(value_of(hostile, X),), title=hostile)
    folder = repro.write(tmp_path / "repro", made, variant, dist)
    assert "<img" not in (folder / "index.html").read_text()
    report = (folder / "report.md").read_text()
    assert "\\<img" in report and not re.search(r"(?<!\\)<img", report)
    assert _config(folder)["title"] == hostile


def test_the_page_knows_the_session_that_fails(tmp_path: Path, variant: Variant, dist: RuntimeDist) -> None:
    settings = SessionSettings(layout="NCHW", cpu_nodes=("a",))
    folder = repro.write(tmp_path / "repro", _repro(settings=settings, threads=2), variant, dist)
    assert _config(folder)["settings"] == {"optimization": "all", "layout": "NCHW", "cpu_nodes": ["a"]}
    assert _config(folder)["threads"] == 2
    assert "NCHW" in (folder / "report.md").read_text()


def test_the_report_shows_the_elements_that_differ(variant: Variant, dist: RuntimeDist) -> None:
    right = np.arange(20, dtype=np.float32)
    wrong = right.copy()
    wrong[13] = -7
    text = repro.report(_repro(expected=(value_of("y", right),), got=(value_of("y", wrong),)), variant, dist)
    assert "at 13: 13.0, 14.0" in text and "at 13: -7.0, 14.0" in text


def test_the_report_shows_nan_rather_than_the_rounding_before_it(variant: Variant, dist: RuntimeDist) -> None:
    right = np.linspace(0.1, 2, 20, dtype=np.float32)
    wrong = np.nextafter(right, np.float32(9))
    wrong[13] = np.nan
    text = repro.report(_repro(expected=(value_of("y", right),), got=(value_of("y", wrong),)), variant, dist)
    assert "at 13: nan" in text


def test_the_report_has_what_a_maintainer_asks_for_and_names_the_tool_once(variant: Variant, dist: RuntimeDist) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,3,9] x) => (float[1,2,9] y) <float[2,3,1] w = {1,2,3,4,5,6}>
    { y = Conv <kernel_shape = [1]> (x, w) }"""
    model = onnx.parser.parse_model(text).SerializeToString()
    report = repro.report(_repro(model=model, flags=("--soft",)), variant, dist).replace("\\", "")
    assert (
        "| Conv | kernel_shape=[1] | x float32 [1, 3, 9], w float32 [2, 3, 1] (weight) | y float32 [1, 2, 9] |"
        in report
    )
    assert "`chromium --soft http://127.0.0.1:8000/`" in report
    assert f"System: {platform.system()}" in report
    assert report.count("edgekit") == 1


@pytest.mark.browser
def test_without_an_adapter_the_page_says_that_nothing_was_tested(
    tmp_path: Path, variant: Variant, dist: RuntimeDist
) -> None:
    folder = repro.write(tmp_path / "repro", _repro(flags=("--soft",)), variant, dist)
    paths = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    files = of_files(folder, [(path, sha256_file(folder / path)) for path in paths])
    with serving(create_static_app(files)) as url, sync_playwright() as playwright:
        program = browsers.find(None, chromium.own_path(playwright))
        browser = playwright.chromium.launch(executable_path=program.path, args=["--disable-gpu"])
        page = browser.new_page()
        page.goto(url)
        page.wait_for_selector("body[data-result]")
        said = page.text_content("#status")
        browser.close()
    assert said == "Not tested: this browser has no WebGPU adapter. Start Chromium with --soft."


def test_a_dist_without_the_variant_is_refused(tmp_path: Path, variant: Variant, dist: RuntimeDist) -> None:
    empty = RuntimeDist(dist.folder, dist.package, dist.version, {}, pinned=False)
    with pytest.raises(UsageError):
        repro.write(tmp_path / "repro", _repro(), variant, empty)
    assert not (tmp_path / "repro").exists()


def test_the_page_has_no_inline_script_and_loads_nothing_from_elsewhere() -> None:
    page = (resources.root("templates") / "repro" / "index.html.j2").read_text()
    assert "script-src 'self' 'wasm-unsafe-eval'" in page and "default-src 'none'" in page
    assert "http://" not in page and "https://" not in page and "style=" not in page
