"""The web application: the files of one bundle with the right headers, and a bounded post of run records."""

import ipaddress
import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from flask import Flask, Request, Response, abort, jsonify, make_response, request, send_file
from werkzeug.exceptions import HTTPException

from edgekit.bundle.open import Bundle
from edgekit.errors import EdgekitError, UsageError
from edgekit.records import run_record
from edgekit.records.run_record import RunRecord
from edgekit.serve import assets
from edgekit.serve.assets import Asset
from edgekit.serve.inbox import Inbox, InboxFullError

RECORDS_PATH = "records"

# The page's own policy, sent as a header too: a header also governs what a <meta> element cannot (workers, frames).
# 'wasm-unsafe-eval' compiles WebAssembly. The runtime's worker has this policy too: it starts the runtime's threads.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; "
    "style-src 'self'; img-src 'self' blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
# The two that make a page cross-origin isolated, without which there is no SharedArrayBuffer and so no threads.
_ISOLATION_HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
}
# The JSON part of a post. Numbers travel in the other part, so only string outputs can make this one large.
_RECORD_PART_BYTES = 32 << 20
_PARTS = ("record", "tensors")
_VIOLATIONS_PATH = "violations"
_REPORT_BYTES = 64 << 10


def headers(*, isolation: bool = True) -> dict[str, str]:
    """Return the headers that every answer has; ``isolation``: with those that give a page threads."""
    return {**_HEADERS, **(_ISOLATION_HEADERS if isolation else {})}


def is_loopback(host: str) -> bool:
    """Return whether ``host`` (a name or an address) means this machine and can be reached from no other."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def create_app(
    bundle: Bundle,
    inbox: Inbox,
    *,
    isolation: bool = True,
    loopback_only: bool = True,
    token: str = "",
    on_violation: Callable[[str], None] | None = None,
) -> Flask:
    """Return the application that serves ``bundle`` and keeps posted records in ``inbox``.

    ``isolation`` False leaves out the headers that give a page threads, as most static hosts do. ``loopback_only``
    answers only requests that name this machine in their Host header: otherwise a web page elsewhere could point its
    own name at 127.0.0.1 and read the bundle (DNS rebinding). ``token``: see ``create_static_app``.

    ``on_violation`` is told each address elsewhere that the page's policy kept it from loading, in the thread that took
    the browser's report.
    """
    app = create_static_app(assets.of_bundle(bundle), isolation=isolation, loopback_only=loopback_only, token=token)
    app.config["MAX_CONTENT_LENGTH"] = inbox.limits.post_bytes
    app.config["MAX_FORM_PARTS"] = len(_PARTS)

    def post_record() -> Response:
        try:
            _require_same_origin(request)
            if request.content_length is None:
                abort(411, "A record must come with a Content-Length.")
            if request.content_length > inbox.limits.post_bytes:
                abort(413, f"A record may have {inbox.limits.post_bytes} bytes; this one has {request.content_length}.")
            identifier = inbox.receive(request.content_length, lambda: _read_record(bundle))
        except InboxFullError as error:
            problem, status = error.message, 429 if error.bound == "records" else 507
        except EdgekitError as error:  # the disk is full, or the folder cannot be written
            problem, status = error.message, 507
        except HTTPException as error:
            problem, status = error.description or error.name, error.code or 500
        else:
            return make_response(jsonify({"id": identifier}), 201)
        inbox.refuse(problem)
        return make_response(jsonify({"error": problem}), status)

    prefix = _prefix(token)
    place = f"{prefix}/{RECORDS_PATH}"
    app.add_url_rule(place, view_func=post_record, methods=["POST"], provide_automatic_options=False)
    if on_violation is not None:
        _take_reports(app, f"{prefix}/{_VIOLATIONS_PATH}", on_violation)
    return app


def _take_reports(app: Flask, place: str, tell: Callable[[str], None]) -> None:
    """Have browsers report to ``place`` what the policy stopped.

    Firefox and WebKit tell no driver of it; every engine tells the server.
    """

    def post_violation() -> Response:
        _require_same_origin(request)
        if (address := _blocked_address(request)) is not None:
            tell(address)
        return make_response("", 204)

    def ask_for_reports(response: Response) -> Response:
        response.headers["Content-Security-Policy"] += f"; report-uri {place}"
        return response

    app.add_url_rule(place, view_func=post_violation, methods=["POST"], provide_automatic_options=False)
    app.after_request_funcs[None].insert(0, ask_for_reports)  # these run from the last to the first


def create_static_app(
    files: Mapping[str, Asset], *, isolation: bool = True, loopback_only: bool = True, token: str = ""
) -> Flask:
    """Return an application that serves ``files`` (by path; "/" is index.html), and nothing else.

    ``token``: the first part of every address, so that only who knows it can read or post anything.
    """
    app = Flask("edgekit", static_folder=None, template_folder=None)
    app.url_map.merge_slashes = False
    app.url_map.redirect_defaults = False
    always = headers(isolation=isolation)

    def check_host() -> None:
        if loopback_only and not _names_this_machine(request.environ.get("HTTP_HOST", "")):
            abort(403, "This server answers only to localhost. Start it with --host to serve other machines.")

    def get_file(path: str) -> Response:
        asset = files.get(path)
        if asset is None:
            abort(404, "There is no such file in this bundle.")
        return _send(asset)

    def add_headers(response: Response) -> Response:
        response.headers.update(always)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    def explain(error: HTTPException) -> Response:
        response = make_response(f"{error.description or error.name}\n", error.code or 500)
        response.headers.update({key: value for key, value in error.get_headers() if key in ("Allow", "Content-Range")})
        response.content_type = "text/plain; charset=utf-8"
        return response

    options: dict[str, Any] = {"view_func": get_file, "methods": ["GET"], "provide_automatic_options": False}
    app.add_url_rule(f"{_prefix(token)}/", defaults={"path": "index.html"}, **options)
    app.add_url_rule(f"{_prefix(token)}/<path:path>", **options)
    app.before_request(check_host)
    app.after_request(add_headers)
    app.register_error_handler(HTTPException, explain)
    return app


def _prefix(token: str) -> str:
    return f"/{token}" if token else ""


def _send(asset: Asset) -> Response:
    """Answer with the best stored form of a file; each form has the sha256 of its own bytes as its ETag."""
    encoding = assets.choose_encoding(request.headers.get("Accept-Encoding", ""), asset.encoded)
    copy = asset.identity if encoding is None else asset.encoded[encoding]
    if not copy.path.is_file():
        abort(404, "This file of the bundle has gone from the disk.")
    # Ranges are of the file itself: half of a compressed form is of no use to anyone.
    response = send_file(copy.path, etag=copy.sha256, conditional=encoding is None)
    response.content_type = asset.content_type
    if encoding is not None:
        response.headers["Content-Encoding"] = encoding
        response.make_conditional(request)  # in place
    for surplus in ("Content-Disposition", "Last-Modified", "Date"):  # the tag says more; the server adds the date
        response.headers.pop(surplus, None)
    if asset.encoded:
        response.headers["Vary"] = "Accept-Encoding"
    kept = asset.is_version(request.args.get("v"))
    response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if kept else "no-cache"
    return response


def _names_this_machine(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        return False
    return name is not None and is_loopback(name)


def _require_same_origin(asked: Request) -> None:
    """Refuse a post that a page of another site made the browser send. A client that is no browser names no origin."""
    origin, site = asked.headers.get("Origin"), asked.headers.get("Sec-Fetch-Site")
    if site is not None:  # the browser's own word, which no page can write and no proxy in between changes
        same = site in ("same-origin", "none")
    else:
        # The scheme is left out: behind a tunnel with TLS the page is https and this server is not.
        same = origin is None or urlsplit(origin).netloc.lower() == asked.environ.get("HTTP_HOST", "").lower()
    if not same:
        abort(403, "Records are taken only from the page that this server serves.")


def _blocked_address(asked: Request) -> str | None:
    """Return the address elsewhere that a report (CSP 3, 5.3) is of; None where it is of none, or is no report."""
    if asked.content_length is None or asked.content_length > _REPORT_BYTES:
        abort(413, "A report must be short.")
    try:
        blocked = json.loads(asked.get_data())["csp-report"]["blocked-uri"]
    except (ValueError, KeyError, TypeError, RecursionError):
        abort(400, "This is not a report of a policy's violation.")
    # The rest are words: "inline", "eval", "blob", "data".
    elsewhere = isinstance(blocked, str) and urlsplit(blocked).scheme in ("http", "https", "ws", "wss")
    return blocked if elsewhere else None


def _read_record(bundle: Bundle) -> RunRecord:
    """Read the two parts of the post. Aborts with 400 when they are not a record, 409 when it is of another model."""
    parts = {name: request.files.get(name) for name in _PARTS}
    record_part, tensors_part = parts["record"], parts["tensors"]
    if record_part is None or tensors_part is None:
        missing = " and ".join(f"'{name}'" for name in _PARTS if parts[name] is None)
        abort(400, f"The post has no file part {missing}; send multipart/form-data with 'record' and 'tensors'.")
    text = record_part.stream.read(_RECORD_PART_BYTES + 1)
    if len(text) > _RECORD_PART_BYTES:
        abort(413, f"The part 'record' has more than {_RECORD_PART_BYTES} bytes.")
    try:
        record = run_record.from_device(text, tensors_part.stream.read())
    except UsageError as error:
        abort(400, error.message)
    except (ValueError, OverflowError, RecursionError) as error:
        abort(400, f"The post is malformed: {str(error)[:200]}")
    _require_same_bundle(record, bundle)
    return record


def _require_same_bundle(record: RunRecord, bundle: Bundle) -> None:
    if record.error is not None:
        return  # the page met something wrong, perhaps this very difference: whoever waits must hear of it
    if record.hashes.model != bundle.manifest.model.sha256:
        abort(409, "This record is of another model than the bundle's. Reload the page.")
    if record.hashes.manifest not in (None, bundle.manifest_sha256):
        abort(409, "This record is of another build of the bundle. Reload the page.")
