"""Keys: a debug key that is made once, and keystores of users, whose passwords no command line ever shows."""

from pathlib import Path

import pytest
from android_bundle import needs
from apk_reading import tool

from edgekit.apk import keys
from edgekit.apk import tools as apk_tools
from edgekit.apk.keys import PASSWORD_VARIABLE, Keystore
from edgekit.errors import MissingToolError, UsageError

pytestmark = needs("apk", "tests")


@pytest.fixture(scope="module")
def keystore(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A keystore with two keys, "one" and "two", whose password is "secret of mine"."""
    path = tmp_path_factory.mktemp("keys") / "own.p12"
    for alias in ("one", "two"):
        tool("keytool", "-genkeypair", "-keystore", path, "-storetype", "PKCS12", "-storepass", "secret of mine",
             "-alias", alias, "-keyalg", "EC", "-dname", f"CN={alias}")  # fmt: skip
    return path


def test_the_debug_key_is_made_once_and_kept_from_others(own_cache: Path) -> None:
    tools = apk_tools.find()
    first = keys.signing_key(tools, None)
    made = first.path.read_bytes()
    assert first.debug
    assert first.path.is_relative_to(own_cache)
    assert first.path.stat().st_mode & 0o077 == 0
    assert keys.signing_key(tools, None) == first
    assert first.path.read_bytes() == made
    assert [path.name for path in first.path.parent.iterdir()] == [first.path.name]


def test_a_keystores_password_comes_from_the_environment_or_a_file(
    keystore: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, "secret of mine")
    key = keys.signing_key(apk_tools.find(), Keystore(keystore, alias="two"))
    assert (key.alias, key.debug) == ("two", False)
    assert "secret" not in repr(key)
    monkeypatch.delenv(PASSWORD_VARIABLE)
    (tmp_path / "word").write_text("secret of mine\n")
    assert keys.signing_key(apk_tools.find(), Keystore(keystore, tmp_path / "word", "one")).alias == "one"


@pytest.mark.parametrize(
    ("password", "alias", "message"),
    [
        ("wrong password", "one", "cannot be used"),
        ("secret of mine", "three", "cannot be used"),
        ("secret of mine", None, "holds several keys"),
        (None, "one", "is not known"),
    ],
)
def test_what_does_not_fit_a_keystore_is_said(
    keystore: Path, monkeypatch: pytest.MonkeyPatch, password: str | None, alias: str | None, message: str
) -> None:
    if password is not None:
        monkeypatch.setenv(PASSWORD_VARIABLE, password)
    with pytest.raises(UsageError, match=message) as caught:
        keys.signing_key(apk_tools.find(), Keystore(keystore, alias=alias))
    assert password is None or password not in f"{caught.value.message}{caught.value.hint}"


@pytest.mark.parametrize("contents", [b"", b"\n", b"a\nb\n", b"\xff", b"x" * 5000])
def test_a_password_file_holds_one_line(keystore: Path, tmp_path: Path, contents: bytes) -> None:
    (tmp_path / "word").write_bytes(contents)
    with pytest.raises(UsageError, match="password file"):
        keys.signing_key(apk_tools.find(), Keystore(keystore, tmp_path / "word"))


def test_a_keystore_and_a_password_file_that_are_not_there_are_said(tmp_path: Path, keystore: Path) -> None:
    with pytest.raises(UsageError, match="There is no keystore"):
        keys.signing_key(apk_tools.find(), Keystore(tmp_path / "gone"))
    with pytest.raises(UsageError, match="cannot be read"):
        keys.signing_key(apk_tools.find(), Keystore(keystore, tmp_path / "gone"))


def test_tools_that_are_missing_are_named_with_the_line_that_installs_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingToolError, match=r"aapt2, smali, zipalign, apksigner, keytool") as caught:
        apk_tools.find()
    assert "apt-get install" in (caught.value.hint or "")
    assert "libsmali-java" in (caught.value.hint or "")
