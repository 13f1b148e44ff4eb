"""What every test shares: fast ones first, silence, and a cache policy.

The cache: tests use the cache folder that edgekit itself uses (``EDGEKIT_CACHE``, else the user's), so that the pinned
runtime and the real models are fetched once for all of them; everything in it is verified by hash. A test that fills,
empties or breaks a cache takes the ``own_cache`` fixture.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # tests load it in their own process, too

# A machine that does other work is no reason for a property to fail.
settings.register_profile("edgekit", deadline=None)
settings.load_profile("edgekit")

_SLOW = ("browser", "real_models", "wheel")  # markers, from fast to slow
_CAPTURES = {"capsys", "capsysbinary", "capfd", "capfdbinary"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the fast tests first, so that an early failure is seen early."""
    items.sort(
        key=lambda item: max((_SLOW.index(m.name) + 1 for m in item.iter_markers() if m.name in _SLOW), default=0)
    )


@pytest.fixture(autouse=True)
def silence(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test in which anything is written to stdout or stderr, native code and child processes included.

    A test that reads what was printed (``capsys`` or ``capfd``) says itself what it expects.
    """
    if _CAPTURES & set(request.fixturenames):
        yield
        return
    capfd: pytest.CaptureFixture[str] = request.getfixturevalue("capfd")
    yield
    out, err = capfd.readouterr()
    assert not out, f"written to stdout: {out!r}"
    assert not err, f"written to stderr: {err!r}"


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder for this test alone."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("EDGEKIT_CACHE", str(folder))
    return folder


@pytest.fixture(autouse=True)
def no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no width of the terminal that started the tests decide how tables look in them."""
    monkeypatch.delenv("COLUMNS", raising=False)
