"""The fetcher of real models: each is what was pinned, offline skips, and anything else that differs fails."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from models import real

MODELS = real.table()


@pytest.mark.real_models
@pytest.mark.parametrize("key", MODELS)
def test_each_model_is_fetched_and_verified(key: str) -> None:
    assert real.sha256_bytes(real.path(key).read_bytes()) == MODELS[key].sha256


def test_every_row_says_what_parity_must_conclude() -> None:
    assert {model.wasm for model in MODELS.values()} == {"right"}
    assert {model.webgpu for model in MODELS.values()} == {"right", "wrong", "refused"}
    assert all(model.licence for model in MODELS.values())


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> None:
    """Send pip and npm to a port where nobody listens, with nothing cached."""
    for name in [name for name in os.environ if name.startswith("PIP_") or name.lower().startswith("npm_config")]:
        monkeypatch.delenv(name)
    nowhere = "http://localhost:9"
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", nowhere)
    monkeypatch.setenv("npm_config_registry", nowhere)
    monkeypatch.setenv("npm_config_cache", str(own_cache / "npm"))


@pytest.mark.parametrize("key", ["swift_f0", "silero_vad_legacy"])
def test_without_network_a_test_is_skipped_with_that_reason(no_network: None, key: str) -> None:
    with pytest.raises(pytest.skip.Exception, match=r"offline: .* cannot be fetched"):
        real.path(key)


def test_without_network_an_installed_model_is_there(no_network: None) -> None:
    assert real.path("logreg_iris").is_file()


def test_a_registry_without_the_package_is_a_failure() -> None:
    with pytest.raises(AssertionError, match="No matching distribution"):
        real._check(1, "ERROR: No matching distribution found for swift-f0==0.3.0", MODELS["swift_f0"])


def test_another_file_than_pinned_is_a_failure() -> None:
    with pytest.raises(real.WrongFileError, match="pinned is"):
        real.obtain(replace(MODELS["logreg_iris"], sha256="0" * 64))


@pytest.mark.real_models
@pytest.mark.parametrize("wrong", ["package_sha256", "sha256"])
def test_another_package_than_pinned_is_a_failure(wrong: str, own_cache: Path) -> None:
    model = replace(MODELS["swift_f0"], **{wrong: "0" * 64})  # type: ignore[arg-type]
    try:
        with pytest.raises(real.WrongFileError, match="pinned is 0000"):
            real.obtain(model)
    except real.OfflineError as error:
        pytest.skip(f"offline: {error}")
    assert not list(own_cache.rglob("*.onnx"))


def test_a_cached_file_that_was_changed_is_fetched_again(no_network: None, own_cache: Path) -> None:
    model = MODELS["swift_f0"]
    cached = own_cache / "test-models" / f"{model.key}-{model.sha256[:16]}" / "model.onnx"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(b"changed")
    with pytest.raises(real.OfflineError):
        real.obtain(model)
