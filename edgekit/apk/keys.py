"""The key that an APK is signed with: a debug key made once for this user, or a keystore of the user's own."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from edgekit.apk import tools as apk_tools
from edgekit.apk.tools import ToolError, Tools
from edgekit.errors import UsageError
from edgekit.files import temporary_folder
from edgekit.runtime import cache

PASSWORD_VARIABLE = "EDGEKIT_KEYSTORE_PASSWORD"  # noqa: S105  the name of a variable
_DEBUG_PASSWORD = "edgekit-debug"  # noqa: S105  that of every debug key: it protects nothing
_DEBUG_ALIAS = "androiddebugkey"
_DEBUG_DAYS = 10950  # thirty years, as the Android SDK gives its own
_MAX_PASSWORD_BYTES = 4096


@dataclass(frozen=True)
class Keystore:
    """A keystore of the user's. ``password_file``: holds its password; None: the environment does.

    ``alias``: which key of it; None: the only one.
    """

    path: Path
    password_file: Path | None = None
    alias: str | None = None


@dataclass(frozen=True)
class SigningKey:
    """A key that can be used. ``debug``: nobody will trust it. The password is not shown."""

    path: Path
    alias: str | None
    debug: bool
    password: str = field(repr=False)

    @property
    def environment(self) -> Mapping[str, str]:
        """What apksigner finds the password in: a command line would show it to every user of the machine."""
        return {PASSWORD_VARIABLE: self.password}


def signing_key(tools: Tools, keystore: Keystore | None) -> SigningKey:
    """Return the user's key or, without ``keystore``, the debug key in edgekit's cache, made when it is first needed.

    Raises UsageError when the keystore or its password is not there, or they do not fit together.
    """
    if keystore is None:
        return SigningKey(_debug_key(tools), _DEBUG_ALIAS, debug=True, password=_DEBUG_PASSWORD)
    if not keystore.path.is_file():
        raise UsageError(f"There is no keystore at {keystore.path}.", hint="Leave out --keystore to use a debug key.")
    key = SigningKey(keystore.path, keystore.alias, debug=False, password=_password(keystore))
    alias = ["-alias", key.alias] if key.alias is not None else []
    try:
        listed = apk_tools.run(
            tools, "keytool", "-list", "-keystore", key.path, "-storepass:env", PASSWORD_VARIABLE, *alias,
            environment=key.environment,
        )  # fmt: skip
    except ToolError as error:
        raise UsageError(
            f"The keystore {keystore.path} cannot be used: {_reason(error.said)}",
            hint=f"Is the password right (in {PASSWORD_VARIABLE}, or --keystore-password-file), and --keystore-alias?",
        ) from error
    if listed.count("PrivateKeyEntry") > 1:
        raise UsageError(f"{keystore.path} holds several keys.", hint="Name one with --keystore-alias.")
    if "PrivateKeyEntry" not in listed:
        raise UsageError(f"{keystore.path} holds no private key.", hint="Name a keystore with the key of your app.")
    return key


def _reason(said: str) -> str:
    """Return the part of keytool's words that is meant for people."""
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith(("Picked up", "\t"))]
    return (lines[0] if lines else "keytool says nothing").removeprefix("keytool error: java.lang.Exception: ")


def _password(keystore: Keystore) -> str:
    if keystore.password_file is not None:
        try:
            with keystore.password_file.open("rb") as stream:
                data = stream.read(_MAX_PASSWORD_BYTES + 1)
            text = data.decode()
        except OSError as error:
            raise UsageError(f"The password file {keystore.password_file} cannot be read: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise UsageError(f"The password file {keystore.password_file} is not text.") from error
        lines = text.splitlines()
        if len(data) > _MAX_PASSWORD_BYTES or len(lines) != 1 or not lines[0]:
            raise UsageError(f"The password file {keystore.password_file} must hold one line, the password.")
        return lines[0]
    password = os.environ.get(PASSWORD_VARIABLE)
    if not password:
        raise UsageError(
            f"The password of {keystore.path} is not known.",
            hint=f"Put it into the variable {PASSWORD_VARIABLE}, or name a file with --keystore-password-file.",
        )
    return password


def _debug_key(tools: Tools) -> Path:
    path = cache.folder() / "android-keys" / "debug.p12"
    if path.is_file():
        return path
    # Made aside and put in place whole: two builds at once must not leave half a key, nor two keys.
    with cache.writing(), temporary_folder(path) as folder:
        made = folder / path.name
        apk_tools.run(
            tools, "keytool", "-genkeypair", "-keystore", made, "-storetype", "PKCS12", "-alias", _DEBUG_ALIAS,
            # RSA, because its signatures are the same every time.
            "-keyalg", "RSA", "-keysize", "2048", "-validity", str(_DEBUG_DAYS),
            "-dname", "CN=Android Debug,O=edgekit", "-storepass:env", PASSWORD_VARIABLE,
            environment={PASSWORD_VARIABLE: _DEBUG_PASSWORD},
        )  # fmt: skip
        made.chmod(0o600)
        with suppress(FileExistsError):  # another build was faster, and its key is as good
            os.link(made, path)
    return path
