"""What is installed on a device and how it ends, without a device: the adb server is scripted."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from adb_server import Phone, running

from edgekit.errors import MissingToolError, UsageError
from edgekit.progress import silent
from edgekit.runners import adb
from edgekit.runners.adb_client import AdbError, Server


@pytest.fixture
def phone() -> Phone:
    return Phone("R58N")


@pytest.fixture
def server(phone: Phone) -> Iterator[Server]:
    with running(phone) as fake:
        yield Server(port=fake.port)


@pytest.fixture
def apk(tmp_path: Path) -> Path:
    (tmp_path / "app.apk").write_bytes(b"apk" * 50_000)
    return tmp_path / "app.apk"


def test_what_was_copied_for_an_installation_is_removed(phone: Phone, server: Server, apk: Path) -> None:
    adb._install(server, "R58N", apk, silent)
    assert phone.installed == [apk.read_bytes()]
    place = phone.asked[0].split()[-1]
    assert phone.asked == [f"pm install -r -t {place}", f"rm -f {place}"]


@pytest.mark.parametrize(
    ("refusal", "hint"),
    [
        ("INSTALL_FAILED_INSUFFICIENT_STORAGE", "Free some space"),
        ("INSTALL_FAILED_OLDER_SDK: Requires newer sdk version", "too old"),
        ("INSTALL_FAILED_UPDATE_INCOMPATIBLE: signatures do not match", "uninstall it first"),
        ("INSTALL_FAILED_NO_MATCHING_ABIS", "'abis' in the target"),
        ("INSTALL_FAILED_USER_RESTRICTED", "developer options"),
    ],
)
def test_a_device_that_refuses_an_app_is_said_in_words(
    phone: Phone, server: Server, apk: Path, refusal: str, hint: str
) -> None:
    phone.commands["pm install"] = (b"", f"Failure [{refusal}]\n".encode(), 1)
    with pytest.raises(MissingToolError, match=refusal.partition(":")[0]) as caught:
        adb._install(server, "R58N", apk, silent)
    assert hint in (caught.value.hint or "")
    assert phone.asked[-1].startswith("rm -f")


@pytest.mark.parametrize("moment", ["push", "pm install"])
def test_a_device_that_is_unplugged_during_an_installation_is_the_error_that_is_told(
    phone: Phone, server: Server, apk: Path, moment: str
) -> None:
    phone.unplug_at = moment
    with pytest.raises(AdbError, match=r"The connection ended while (copying app.apk to|'pm' on) R58N"):
        adb._install(server, "R58N", apk, silent)


@pytest.mark.parametrize(
    ("address", "parsed"),
    [
        ("", ("", "")),
        ("adb://", ("", "")),
        ("adb://R58N", ("R58N", "")),
        ("adb://emulator-5554/webview", ("emulator-5554", "webview")),
        ("adb://192.0.2.7:5555/chrome", ("192.0.2.7:5555", "chrome")),
        ("adb://[fe80::1%25eth0]:5555", None),
    ],
)
def test_an_address_is_a_serial_and_perhaps_a_browser(address: str, parsed: tuple[str, str] | None) -> None:
    if parsed is None:  # colons would be parts of a request
        with pytest.raises(UsageError):
            adb.parse(address)
    else:
        assert adb.parse(address) == parsed


@pytest.mark.parametrize(
    "address",
    ["adb:", "adb:R58N", "usb://x", "adb://a;rm -rf", "adb://a b", "adb://a/firefox", "adb://a:b", "adb://a\n",
     "adb://a:123456", "adb://a%3Bforward:x", "adb://é", "adb:///chrome/x"],
)  # fmt: skip
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="is the address of no Android device"):
        adb.parse(address)
