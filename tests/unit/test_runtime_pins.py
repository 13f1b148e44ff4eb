import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from edgekit import resources
from edgekit.errors import UsageError
from edgekit.runtime import pins
from edgekit.runtime.fetch import fetch
from edgekit.runtime.fetch import optimizer as fetch_optimizer
from edgekit.targets import load as targets


@pytest.fixture
def pin_runtime() -> ModuleType:
    """The maintainers' script that writes ``runtime.json``."""
    script = Path(__file__).parents[2] / "web" / "pin_runtime.py"
    spec = importlib.util.spec_from_file_location("pin_runtime", script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pins_are_of_the_version_in_the_lock_file() -> None:
    pinned = pins.load()
    web = resources.root("web")
    lock = json.loads((web / "package-lock.json").read_text())
    assert lock["packages"][f"node_modules/{pinned.package}"]["version"] == pinned.version
    optimizer = pinned.optimizer
    assert lock["packages"][f"node_modules/{optimizer.package}"]["version"] == optimizer.version
    dependencies = {pinned.package: pinned.version, optimizer.package: optimizer.version}
    assert json.loads((web / "package.json").read_text())["dependencies"] == dependencies


def test_the_lock_file_holds_integrity_hashes_and_no_addresses() -> None:
    lock = json.loads((resources.root("web") / "package-lock.json").read_text())
    packages = {name: package for name, package in lock["packages"].items() if name}
    assert all(package["integrity"].startswith("sha512-") for package in packages.values())
    assert not any("resolved" in package for package in packages.values())


def test_every_file_of_every_variant_is_pinned_and_nothing_else() -> None:
    pinned = pins.load()
    assert {name for variant in pinned.variants for name in variant.files} == set(pinned.files)
    assert all(len(file.sha256) == 64 and file.bytes > 0 for file in pinned.files.values())


def test_every_target_of_kind_web_names_pinned_variants() -> None:
    for target_id in targets.ids():
        target = targets.load(target_id)
        if target.kind == "web":
            assert target.runtime.package == pins.load().package
            assert [v.id for v in pins.load().chosen(target.runtime.variants, "x")] == list(target.runtime.variants)


def test_an_unknown_variant_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(
        UsageError, match=r"Target 'mine': onnxruntime-web has no variant 'jsip'. Did you mean 'jspi'\?"
    ) as caught:
        pins.load().chosen(["wasm", "jsip"], "Target 'mine'")
    assert caught.value.hint == "Variants: jspi, asyncify, wasm."


def test_the_script_writes_the_pins_that_stand(pin_runtime: ModuleType, tmp_path: Path) -> None:
    runtime = fetch()
    document = json.loads(pins.path().read_text())
    package = tmp_path / document["package"]
    package.mkdir()
    (package / "dist").symlink_to(runtime.folder)
    (package / "package.json").symlink_to(runtime.folder / "package.json")
    optimizer = document["optimizer"]
    program = tmp_path / optimizer["package"] / optimizer["path"]
    program.parent.mkdir(parents=True)
    program.symlink_to(fetch_optimizer())
    (tmp_path / optimizer["package"] / "package.json").write_text(json.dumps({"version": optimizer["version"]}))
    blank = {**document, "version": "0", "files": {}, "optimizer": {**optimizer, "version": "0", "sha256": ""}}
    assert pin_runtime.pinned(blank, tmp_path) == document
