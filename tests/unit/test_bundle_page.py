"""What the page is told of its runtimes: which are trimmed, and which stand in for them."""

from pathlib import Path
from typing import Any

import pytest
from models_text import LINEAR, write

from edgekit.bundle import page
from edgekit.bundle.open import CASES, TENSORS
from edgekit.bundle.page import Net, Trimmed
from edgekit.errors import UsageError
from edgekit.facts import survey as facts
from edgekit.model import io as model
from edgekit.records.manifest import FileEntry
from edgekit.records.settings import SessionSettings
from edgekit.runtime import pins
from edgekit.runtime.dist import RuntimeDist
from edgekit.targets import load as targets

JSPI, WASM = pins.load().chosen(["jspi", "wasm"], "test")
SMALL = "runtime/jspi.trimmed.wasm"
NET = Net("cpu", "wasm", *(f"runtime/{name}" for name in WASM.files))


def config(folder: Path, **changes: Any) -> dict[str, Any]:
    names = [f"runtime/{name}" for variant in (JSPI, WASM) for name in variant.files]
    paths = [*names, SMALL, "model/model.onnx", CASES, TENSORS]
    files = {path: FileEntry(path, f"{k:064x}", k) for k, path in enumerate(paths)}
    return page.config(
        files,
        title="t",
        target=targets.load("webgpu"),
        facts=facts.survey(model.load(write(LINEAR, folder))),
        runtime=RuntimeDist(folder, "onnxruntime-web", "1.30.0", {}, True),
        variants=(JSPI, WASM),
        model_path="model/model.onnx",
        external_data=(),
        **changes,
    )


def test_a_stock_runtime_has_no_net(tmp_path: Path) -> None:
    made = config(tmp_path)
    assert [variant["trimmed"] for variant in made["variants"]] == [None, None]
    assert made["nets"] == []


def test_a_trimmed_variant_loads_its_own_wasm_and_names_its_net(tmp_path: Path) -> None:
    made = config(tmp_path, trimmed={"jspi": Trimmed(SMALL, 16, "cpu")}, nets=[NET])
    jspi, wasm = made["variants"]
    assert jspi["trimmed"] == {"miss_address": 16, "net": "cpu"}
    assert jspi["wasm_url"].startswith(f"{SMALL}?v=")
    assert wasm["trimmed"] is None
    [net] = made["nets"]
    assert (net["id"], net["execution_provider"]) == ("cpu", "wasm")
    assert [net[key] for key in ("api_url", "mjs_url", "wasm_url")] == [
        wasm[key] for key in ("api_url", "mjs_url", "wasm_url")
    ]


def test_a_miss_address_that_no_u32_can_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="miss_address"):
        config(tmp_path, trimmed={"jspi": Trimmed(SMALL, 18, None)})


def test_a_page_is_told_of_settings_where_there_are_any(tmp_path: Path) -> None:
    jspi, wasm = config(tmp_path, sessions={"jspi": SessionSettings(layout="NCHW")})["variants"]
    assert jspi["session"] == {"optimization": "all", "layout": "NCHW", "cpu_nodes": []}
    assert "session" not in wasm
