# ruff: noqa: S310  the addresses are those of this test's own servers
"""The inbox: a page that someone else opens. Here the phone is an HTTP client, so that any post can be wrong."""

import threading
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_bundle

from edgekit.bundle.open import Bundle
from edgekit.errors import ParityError, UsageError
from edgekit.records.run_record import RunRecord
from edgekit.runners import inbox
from edgekit.runners.inbox import Invitation
from edgekit.runners.page import Ask
from edgekit.serve.server import address_here


def get(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            answer.read()  # who hangs up before has the server's development framework leave the file open
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def post(url: str, record: RunRecord) -> int:
    boundary = uuid.uuid4().hex
    body = b""
    for name, (stream, filename) in tiny_bundle.form(record).items():
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{filename}"\r\n\r\n'
        body += head.encode() + stream.read() + b"\r\n"
    return post_bytes(url, body + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}")


def post_bytes(url: str, body: bytes, kind: str = "multipart/form-data; boundary=x") -> int:
    request = urllib.request.Request(url, data=body, headers={"Content-Type": kind})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def meet(bundle: Bundle, phone: Callable[[str, str], None], **arguments: Any) -> RunRecord:
    """Run the inbox; ``phone`` is given the page's folder and the id of the run, in a thread of its own."""
    threads: list[threading.Thread] = []

    def announce(invitation: Invitation) -> None:
        folder, query = invitation.url.split("?")
        run = dict(part.split("=") for part in query.split("&"))["run"]
        threads.append(threading.Thread(target=phone, args=(folder, run)))
        threads[0].start()

    ask = arguments.pop("ask", Ask(timeout_seconds=20))
    try:
        return inbox.run(bundle, ask, announce, **{"host": "127.0.0.1", **arguments})
    finally:
        for thread in threads:
            thread.join()


def test_the_record_that_is_posted_with_the_token_is_returned_and_then_nobody_listens(tmp_path: Path) -> None:
    bundle = tiny_bundle.make(tmp_path / "b")
    answers: list[int] = []
    folders: list[str] = []

    def phone(folder: str, run: str) -> None:
        folders.append(folder)
        answers.extend([get(folder), get(f"{folder}model/model.onnx")])
        answers.append(post(f"{folder}records", tiny_bundle.record(bundle, run=run)))

    assert meet(bundle, phone).cases[0].status == "done"
    assert answers == [200, 200, 201]
    with pytest.raises(OSError, match="refused"):
        get(folders[0])


def test_without_the_token_nothing_is_answered_or_taken(tmp_path: Path) -> None:
    bundle = tiny_bundle.make(tmp_path / "b")
    answers: list[int] = []

    def phone(folder: str, run: str) -> None:
        root = "/".join(folder.split("/")[:3])
        right = tiny_bundle.record(bundle, run=run)
        answers.extend(get(f"{root}/{path}") for path in ("", "manifest.json", "model/model.onnx", "A" * 22 + "/"))
        answers.extend(post(f"{root}/{path}", right) for path in ("records", "A" * 22 + "/records"))

    with pytest.raises(ParityError, match="No record came within 2 s"):
        meet(bundle, phone, ask=Ask(timeout_seconds=2))
    # 405: the address of a file, which is only ever read.
    assert set(answers) <= {404, 405} and len(answers) == 6


def test_the_token_takes_one_record_alone(tmp_path: Path) -> None:
    bundle = tiny_bundle.make(tmp_path / "b")
    answers: list[int] = []

    def phone(folder: str, run: str) -> None:
        # The first is of another run (an old page, opened again): kept from nobody, but not what is waited for.
        answers.append(post(f"{folder}records", tiny_bundle.record(bundle, run="old")))
        answers.append(post(f"{folder}records", tiny_bundle.record(bundle, run=run)))

    with pytest.raises(ParityError, match=r"refused: The inbox .* is full: 1 records"):
        meet(bundle, phone)
    assert answers == [201, 429]


def test_a_post_that_is_too_large_ends_the_wait_with_the_bound(tmp_path: Path) -> None:
    answers: list[int] = []

    def phone(folder: str, run: str) -> None:
        try:
            answers.append(post_bytes(f"{folder}records", b"x" * (17 << 20)))
        except OSError:  # the server may close before it has read all
            answers.append(413)

    with pytest.raises(ParityError, match="A record may have"):
        meet(tiny_bundle.make(tmp_path / "b"), phone)
    assert answers == [413]


def test_a_record_of_another_model_is_refused_with_the_reason(tmp_path: Path) -> None:
    bundle = tiny_bundle.make(tmp_path / "b")
    other = tiny_bundle.record(bundle).hashes.__class__(bundle.manifest_sha256, "0" * 64, None)

    def phone(folder: str, run: str) -> None:
        assert post(f"{folder}records", tiny_bundle.record(bundle, run=run, hashes=other)) == 409

    with pytest.raises(ParityError, match="another model"):
        meet(bundle, phone)


def test_when_nobody_comes_the_hint_names_the_network_and_the_firewall(tmp_path: Path) -> None:
    with pytest.raises(ParityError) as caught:
        meet(tiny_bundle.make(tmp_path / "b"), lambda folder, run: None, ask=Ask(timeout_seconds=1))
    assert "console" not in caught.value.message
    assert "same network" in (caught.value.hint or "") and "firewall" in (caught.value.hint or "")


@pytest.mark.parametrize("host", [None, "0.0.0.0"])  # noqa: S104
def test_by_default_it_listens_where_the_network_reaches_it_and_says_that_this_is_not_secure(
    tmp_path: Path, host: str | None
) -> None:
    here = address_here()
    if here is None:
        pytest.skip("this machine is in no network")
    met: list[Invitation] = []
    with pytest.raises(ParityError):
        inbox.run(tiny_bundle.make(tmp_path / "b"), Ask(timeout_seconds=1), met.append, host=host)
    assert met[0].url.startswith(f"http://{here}:") and not met[0].secure
    # 16 random bytes in the path, before anything else.
    assert len(met[0].url.split("/")[3]) >= 22


def test_a_machine_without_a_network_is_told_to_name_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "address_here", lambda: None)
    with pytest.raises(UsageError, match="in no network") as caught:
        inbox.run(tiny_bundle.make(tmp_path / "b"), Ask(), lambda invitation: None)
    assert "--host" in (caught.value.hint or "")
