import gzip
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import brotli
import pytest
import tiny_bundle
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from edgekit.bundle.open import Bundle
from edgekit.files import sha256_bytes
from edgekit.records import store
from edgekit.records.run_record import Hashes
from edgekit.serve.app import create_app, is_loopback
from edgekit.serve.inbox import Arrival, Inbox, InboxLimits

SCRIPT = b"export const long = 'text that compresses';\n" * 200
FILES = {
    "app/main.js": SCRIPT,
    "app/main.js.br": brotli.compress(SCRIPT),
    "app/main.js.gz": gzip.compress(SCRIPT, mtime=0),
    "runtime/ort.wasm": b"\0asm\1\0\0\0",
    "model/größe <b>&\"'%2e 1.bin": b"0123456789",
}


class Client(FlaskClient):
    """Reads every answer to its end, so that the server closes its file."""

    def open(self, *args: Any, **options: Any) -> TestResponse:
        return super().open(*args, buffered=True, **options)


def client_of(bundle: Bundle, inbox: Inbox, **options: bool) -> FlaskClient:
    app = create_app(bundle, inbox, **options)
    app.test_client_class = Client
    return app.test_client()


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return tiny_bundle.make(tmp_path / "bundle", FILES)


@pytest.fixture
def arrivals() -> list[Arrival]:
    return []


@pytest.fixture
def client(bundle: Bundle, tmp_path: Path, arrivals: list[Arrival]) -> FlaskClient:
    return client_of(bundle, Inbox(tmp_path / "records", listener=arrivals.append))


def post(client: FlaskClient, parts: Mapping[str, Any], **headers: str) -> tuple[int, dict[str, Any]]:
    answer = client.post("/records", data=parts, content_type="multipart/form-data", headers=headers)
    return answer.status_code, answer.get_json()


def test_the_page_is_served_with_the_headers_that_isolate_and_confine_it(client: FlaskClient) -> None:
    answer = client.get("/")
    assert (answer.status_code, answer.content_type) == (200, "text/html; charset=utf-8")
    assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert answer.headers["Cross-Origin-Embedder-Policy"] == "require-corp"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert "script-src 'self' 'wasm-unsafe-eval'" in answer.headers["Content-Security-Policy"]
    assert answer.data == client.get("/index.html").data == tiny_bundle.PAGE


def test_the_isolation_headers_can_be_left_out_and_only_those(bundle: Bundle, tmp_path: Path) -> None:
    answer = client_of(bundle, Inbox(tmp_path / "r"), isolation=False).get("/")
    assert "Cross-Origin-Opener-Policy" not in answer.headers
    assert "Cross-Origin-Embedder-Policy" not in answer.headers
    assert "Content-Security-Policy" in answer.headers


@pytest.mark.parametrize(("accept", "coding"), [("gzip, br", "br"), ("gzip", "gzip"), ("identity", None), ("", None)])
def test_a_file_is_sent_in_the_form_the_client_takes(client: FlaskClient, accept: str, coding: str | None) -> None:
    answer = client.get("/app/main.js", headers={"Accept-Encoding": accept})
    stored = {None: SCRIPT, "br": FILES["app/main.js.br"], "gzip": FILES["app/main.js.gz"]}[coding]
    assert answer.data == stored
    assert answer.headers.get("Content-Encoding") == coding
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert answer.content_type == "text/javascript; charset=utf-8"
    assert answer.content_length == len(stored)
    assert answer.get_etag() == (sha256_bytes(stored), False)


def test_a_file_without_compressed_copies_does_not_vary(client: FlaskClient) -> None:
    answer = client.get("/runtime/ort.wasm", headers={"Accept-Encoding": "br"})
    assert answer.content_type == "application/wasm"
    assert "Vary" not in answer.headers and "Content-Encoding" not in answer.headers


@pytest.mark.parametrize("accept", ["br", "identity"])
def test_an_unchanged_file_is_not_sent_again(client: FlaskClient, accept: str) -> None:
    etag = client.get("/app/main.js", headers={"Accept-Encoding": accept}).headers["ETag"]
    again = client.get("/app/main.js", headers={"Accept-Encoding": accept, "If-None-Match": etag})
    assert (again.status_code, again.data) == (304, b"")
    assert again.headers["Cross-Origin-Embedder-Policy"] == "require-corp"
    other = client.get("/app/main.js", headers={"Accept-Encoding": accept, "If-None-Match": '"another"'})
    assert other.status_code == 200


def test_only_an_address_with_the_right_version_is_kept_for_ever(client: FlaskClient) -> None:
    version = sha256_bytes(SCRIPT)[:16]
    assert client.get(f"/app/main.js?v={version}").headers["Cache-Control"] == "public, max-age=31536000, immutable"
    for address in ("/app/main.js", "/app/main.js?v=", f"/app/main.js?v={version[:-1]}0x"):
        assert client.get(address).headers["Cache-Control"] == "no-cache"


def test_head_gives_the_headers_alone(client: FlaskClient) -> None:
    answer = client.head("/app/main.js")
    assert (answer.status_code, answer.data) == (200, b"")
    assert answer.content_length == len(SCRIPT)


def test_a_range_of_a_file_can_be_asked_for(client: FlaskClient) -> None:
    answer = client.get("/app/main.js", headers={"Range": "bytes=7-11"})
    assert (answer.status_code, answer.data) == (206, SCRIPT[7:12])
    assert client.get("/app/main.js", headers={"Range": "bytes=999999-"}).status_code == 416
    compressed = client.get("/app/main.js", headers={"Range": "bytes=7-11", "Accept-Encoding": "br"})
    assert (compressed.status_code, compressed.data) == (200, FILES["app/main.js.br"])


def test_a_hostile_file_name_is_served_under_its_encoded_address(client: FlaskClient) -> None:
    assert client.get("/model/gr%C3%B6%C3%9Fe%20%3Cb%3E%26%22%27%252e%201.bin").data == b"0123456789"


@pytest.mark.parametrize(
    "path",
    [
        "/app",
        "/app/",
        "/app/main.js.br",
        "/app/main.js.gz",
        "/./index.html",
        "/app/../index.html",
        "/../secret",
        "/%2e%2e/secret",
        "/..%2fsecret",
        "/app%5c..%5cindex.html",
        "/index.html/",
        "/index.html%00",
        "/<script>alert(1)</script>",
        "/.pid",
    ],
)
def test_nothing_but_the_files_of_the_manifest_is_served(client: FlaskClient, bundle: Bundle, path: str) -> None:
    (bundle.folder.parent / "secret").write_text("secret")
    (bundle.folder / ".pid").write_text("1")
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.content_type == "text/plain; charset=utf-8"
    assert b"secret" not in answer.data and b"<" not in answer.data
    assert answer.headers["Cache-Control"] == "no-store"


def test_a_file_that_has_gone_is_not_found(client: FlaskClient, bundle: Bundle) -> None:
    (bundle.folder / "page.js").unlink()
    assert client.get("/page.js").status_code == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_not_allowed(client: FlaskClient, method: str) -> None:
    answer = client.open("/index.html", method=method)
    assert answer.status_code == 405
    assert set(answer.headers["Allow"].replace(" ", "").split(",")) == {"GET", "HEAD"}


def test_records_cannot_be_read_back(client: FlaskClient, bundle: Bundle) -> None:
    status, answer = post(client, tiny_bundle.form(tiny_bundle.record(bundle)))
    assert status == 201
    assert client.get("/records").status_code in (404, 405)
    assert client.get(f"/records/{answer['id']}/record.json").status_code == 404


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:5000", "127.0.0.1.evil.example", "localhost.evil.example", "", "[::1", "10.0.0.1"],
)
def test_a_name_that_is_not_of_this_machine_gets_no_answer(client: FlaskClient, host: str) -> None:
    answer = client.get("/", environ_overrides={"HTTP_HOST": host})
    assert answer.status_code == 403
    assert tiny_bundle.PAGE not in answer.data


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:8000", "127.0.0.2", "[::1]:8000"])
def test_every_name_of_this_machine_gets_an_answer(client: FlaskClient, host: str) -> None:
    assert client.get("/", environ_overrides={"HTTP_HOST": host}).status_code == 200


def test_a_server_for_other_machines_answers_to_any_name(bundle: Bundle, tmp_path: Path) -> None:
    client = client_of(bundle, Inbox(tmp_path / "r"), loopback_only=False)
    assert client.get("/", environ_overrides={"HTTP_HOST": "phone.local:8000"}).status_code == 200


def test_loopback_is_told_from_other_hosts() -> None:
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.1.5", "example.org", "")))  # noqa: S104


def test_a_posted_record_is_kept_whole_and_told(
    client: FlaskClient, bundle: Bundle, tmp_path: Path, arrivals: list[Arrival]
) -> None:
    status, answer = post(
        client, tiny_bundle.form(tiny_bundle.record(bundle, run="<script>\n")), Origin="http://localhost"
    )
    assert status == 201
    saved = store.load_run(tmp_path / "records" / answer["id"])
    assert saved.record is not None
    assert saved.record.run == "<script>\n"
    assert saved.record.cases[0].outputs[0].array is not None
    assert saved.record.cases[0].outputs[0].array.tolist() == [1, -2]
    assert [arrival.folder for arrival in arrivals] == [tmp_path / "records" / answer["id"]]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1234"},
        {"Origin": "http://localhost", "Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_page_of_another_origin_cannot_post(client: FlaskClient, bundle: Bundle, headers: dict[str, str]) -> None:
    status, answer = post(client, tiny_bundle.form(tiny_bundle.record(bundle)), **headers)
    assert status == 403 and "page that this server serves" in answer["error"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://localhost"},
        {"Sec-Fetch-Site": "same-origin"},
        {"Origin": "https://behind-a-proxy.example", "Sec-Fetch-Site": "same-origin"},
        {},
    ],
)
def test_the_own_page_also_behind_https_and_tools_that_are_no_browsers_can_post(
    client: FlaskClient, bundle: Bundle, headers: dict[str, str]
) -> None:
    assert post(client, tiny_bundle.form(tiny_bundle.record(bundle)), **headers)[0] == 201


def test_a_record_of_another_model_is_refused(client: FlaskClient, bundle: Bundle, arrivals: list[Arrival]) -> None:
    other = tiny_bundle.record(bundle, hashes=Hashes(None, "0" * 64, None))
    status, answer = post(client, tiny_bundle.form(other))
    assert status == 409 and "another model" in answer["error"]
    assert [arrival.problem for arrival in arrivals] == [answer["error"]]


def test_a_record_of_another_build_is_refused_but_one_that_names_no_build_is_taken(
    client: FlaskClient, bundle: Bundle
) -> None:
    model = bundle.manifest.model.sha256
    stale = tiny_bundle.record(bundle, hashes=Hashes("0" * 64, model, None))
    assert post(client, tiny_bundle.form(stale))[0] == 409
    assert post(client, tiny_bundle.form(tiny_bundle.record(bundle, hashes=Hashes(None, model, None))))[0] == 201


def test_a_page_that_reports_its_own_failure_is_heard_whatever_model_it_loaded(
    client: FlaskClient, bundle: Bundle
) -> None:
    failed = tiny_bundle.record(bundle, hashes=Hashes(None, "0" * 64, None), error="The model was changed.", cases=())
    assert post(client, tiny_bundle.form(failed))[0] == 201


def _document(bundle: Bundle) -> str:
    return tiny_bundle.form(tiny_bundle.record(bundle))["record"][0].getvalue().decode()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"format"', '"formal"', "does not fit the contract"),
        ("{", "", "malformed"),
        ('"run": "r1"', '"run": NaN', "NaN is not JSON"),
        ('"run": "r1"', '"run": ' + "[" * 100_000, "malformed"),
        ('"run": "r1"', r'"run": "\ud800"', "malformed"),
        ('"shape": [2]', '"shape": [3]', "said to be"),
        ('"shape": [2]', f'"shape": [{2**63}, {2**63}]', "said to be"),
        ('"key": "only/output/y"', '"key": "nowhere"', "not stored"),
        ('"key": "only/output/y"', f'"strings": [], "shape": [{2**32}, {2**32}]', ""),
        ('"id": "only"', '"id": "../../etc"', "does not fit the contract"),
        ('"id": "only"', '"id": "a\\nb"', "does not fit the contract"),
    ],
)
def test_a_malformed_record_is_refused_in_words(
    client: FlaskClient, bundle: Bundle, tmp_path: Path, old: str, new: str, says: str
) -> None:
    tensors = tiny_bundle.form(tiny_bundle.record(bundle))["tensors"][0].getvalue()
    text = _document(bundle)
    assert old in text
    status, answer = post(client, tiny_bundle.parts(text.replace(old, new, 1).encode(), tensors))
    assert status == 400 and says in answer["error"] and len(answer["error"]) < 1000
    assert not list((tmp_path / "records").glob("*/*"))


@pytest.mark.parametrize("tensors", [b"", b"\xff" * 8, b"\x02" + b"\0" * 7 + b"[]", b"\xff" * 100])
def test_malformed_tensors_are_refused_in_words(client: FlaskClient, bundle: Bundle, tensors: bytes) -> None:
    status, answer = post(client, tiny_bundle.parts(_document(bundle).encode(), tensors))
    assert status == 400 and "safetensors" in answer["error"]


def test_the_record_that_the_malformed_ones_were_made_from_is_taken(client: FlaskClient, bundle: Bundle) -> None:
    tensors = tiny_bundle.form(tiny_bundle.record(bundle))["tensors"][0].getvalue()
    assert post(client, tiny_bundle.parts(_document(bundle).encode(), tensors))[0] == 201


@pytest.mark.parametrize("missing", ["record", "tensors"])
def test_a_post_without_a_part_is_refused_by_the_part_s_name(client: FlaskClient, bundle: Bundle, missing: str) -> None:
    parts = tiny_bundle.form(tiny_bundle.record(bundle))
    del parts[missing]
    status, answer = post(client, parts)
    assert status == 400 and f"'{missing}'" in answer["error"]


def test_a_post_that_is_no_form_is_refused(client: FlaskClient) -> None:
    answer = client.post("/records", data=b"{}", content_type="application/json")
    assert answer.status_code == 400 and "'record' and 'tensors'" in answer.get_json()["error"]


def test_a_post_without_a_length_is_refused(client: FlaskClient) -> None:
    answer = client.post("/records", environ_overrides={"wsgi.input_terminated": True}, content_length=None)
    assert answer.status_code == 411


def test_a_post_with_too_many_parts_is_refused(client: FlaskClient, bundle: Bundle) -> None:
    more = {f"part{number}": "x" for number in range(50)}
    assert post(client, {**tiny_bundle.form(tiny_bundle.record(bundle)), **more})[0] == 413


def bounded(bundle: Bundle, folder: Path, **limits: int) -> FlaskClient:
    return client_of(bundle, Inbox(folder, replace(InboxLimits(), **limits)))


def test_a_post_beyond_its_bound_is_refused_before_it_is_read(bundle: Bundle, tmp_path: Path) -> None:
    size = len(_document(bundle)) + 2000
    form = tiny_bundle.record(bundle)
    assert post(bounded(bundle, tmp_path / "a", post_bytes=size), tiny_bundle.form(form))[0] == 201
    status, answer = post(bounded(bundle, tmp_path / "b", post_bytes=600), tiny_bundle.form(form))
    assert status == 413 and "600 bytes" in answer["error"]


def test_a_full_inbox_says_so(bundle: Bundle, tmp_path: Path) -> None:
    few = bounded(bundle, tmp_path / "few", records=2)
    assert [post(few, tiny_bundle.form(tiny_bundle.record(bundle)))[0] for _ in range(3)] == [201, 201, 429]
    small = bounded(bundle, tmp_path / "small", total_bytes=100)
    status, answer = post(small, tiny_bundle.form(tiny_bundle.record(bundle)))
    assert status == 507 and "full" in answer["error"]


def test_an_inbox_that_cannot_be_written_says_so(bundle: Bundle, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    status, answer = post(bounded(bundle, tmp_path / "file" / "records"), tiny_bundle.form(tiny_bundle.record(bundle)))
    assert status == 507 and str(tmp_path / "file") in answer["error"]


def test_errors_of_a_post_are_json(client: FlaskClient) -> None:
    assert set(json.loads(client.post("/records", data=b"x").data)) == {"error"}


def test_behind_a_token_every_address_needs_it(bundle: Bundle, tmp_path: Path) -> None:
    app = create_app(bundle, Inbox(tmp_path / "records"), token="secret")  # noqa: S106
    client = app.test_client()
    right = tiny_bundle.form(tiny_bundle.record(bundle))
    for path in ("/", "/manifest.json", "/app/main.js", "/other/", "/secretly/", "/records"):
        answer = client.get(path, buffered=True)
        assert answer.status_code == 404, path
    assert client.post("/records", data=right, content_type="multipart/form-data").status_code == 404
    assert client.get("/secret/", buffered=True).status_code == 200
    assert client.get("/secret/manifest.json", buffered=True).status_code == 200
    right = tiny_bundle.form(tiny_bundle.record(bundle))
    assert client.post("/secret/records", data=right, content_type="multipart/form-data").status_code == 201


def report(client: FlaskClient, body: bytes, **headers: str) -> int:
    return client.post("/violations", data=body, content_type="application/csp-report", headers=headers).status_code


def test_what_the_page_s_policy_stopped_is_told_to_who_asks(bundle: Bundle, tmp_path: Path) -> None:
    told: list[str] = []
    app = create_app(bundle, Inbox(tmp_path / "records"), on_violation=told.append)
    client = app.test_client()
    policy = client.get("/", buffered=True).headers["Content-Security-Policy"]
    assert policy.endswith("; report-uri /violations") and policy.startswith("default-src 'none'")
    for blocked in ("https://cdn.example/ort.mjs", "inline", "blob", "data", "", None, 7):
        assert report(client, json.dumps({"csp-report": {"blocked-uri": blocked}}).encode()) == 204
    assert told == ["https://cdn.example/ort.mjs"]


@pytest.mark.parametrize("body", [b" ", b"x", b"[]", b"{}", b'{"csp-report": 1}', b"[" * 60_000, b'"\xff"'])
def test_a_report_that_is_none_is_refused_and_told_to_nobody(bundle: Bundle, tmp_path: Path, body: bytes) -> None:
    told: list[str] = []
    client = create_app(bundle, Inbox(tmp_path / "records"), on_violation=told.append).test_client()
    assert report(client, body) == 400
    assert report(client, b" " * 70_000) == 413
    found = json.dumps({"csp-report": {"blocked-uri": "https://x.example/"}}).encode()
    assert report(client, found, Origin="https://evil.example") == 403
    assert told == []


def test_where_nobody_asks_no_reports_are_taken(client: FlaskClient) -> None:
    assert "report-uri" not in client.get("/").headers["Content-Security-Policy"]
    assert report(client, b"{}") == 405
