from pathlib import Path

import pytest

from edgekit.serve import assets

HASHES = {"app/main.js": "a" * 64, "app/main.js.br": "b" * 64, "app/main.js.gz": "c" * 64, "alone.gz": "d" * 64}


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("gzip, deflate, br, zstd", "br"),
        ("gzip, deflate", "gzip"),
        ("x-gzip", "gzip"),
        ("br;q=0.5, gzip;q=0.9", "gzip"),
        ("br;q=0, gzip;q=0", None),
        ("BR", "br"),
        ("*", "br"),
        ("*;q=0", None),
        ("br;q=0, *", "gzip"),
        ("identity, br;q=0.5", None),
        ("identity;q=0, gzip;q=0.1", "gzip"),
        ("identity;q=0", None),  # nothing is acceptable: the file itself is better than no answer
        ("", None),
        ("deflate", None),
        ("br;q=nan", None),
        ("br;q=7", None),
        ("br;q=", None),
        (" br ; q = 1.0 ", "br"),
        (";;,,=;q", None),
    ],
)
def test_the_coding_with_the_highest_weight_is_chosen_and_brotli_wins_a_tie(accept: str, chosen: str | None) -> None:
    assert assets.choose_encoding(accept, ("gzip", "br")) == chosen


def test_a_coding_that_is_not_stored_is_never_chosen() -> None:
    assert assets.choose_encoding("br, gzip", ()) is None
    assert assets.choose_encoding("br, gzip;q=0.1", ("gzip",)) == "gzip"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("index.html", "text/html; charset=utf-8"),
        ("app/MAIN.JS", "text/javascript; charset=utf-8"),
        ("runtime/ort.min.mjs", "text/javascript; charset=utf-8"),
        ("runtime/ort.wasm", "application/wasm"),
        ("cases/cases.json", "application/json"),
        ("model/model.onnx", "application/octet-stream"),
        ("cases/cases.safetensors", "application/octet-stream"),
        ("model/weights.html.bin", "application/octet-stream"),
        ("no-ending", "application/octet-stream"),
    ],
)
def test_the_media_type_follows_the_ending(path: str, kind: str) -> None:
    assert assets.content_type(path) == kind


def test_a_compressed_copy_belongs_to_its_file_and_has_no_address_of_its_own() -> None:
    found = assets.of_files(Path("b"), HASHES.items())
    assert sorted(found) == ["alone.gz", "app/main.js"]
    assert found["app/main.js"].identity.sha256 == "a" * 64
    copies = {coding: (copy.path, copy.sha256) for coding, copy in found["app/main.js"].encoded.items()}
    assert copies == {"br": (Path("b/app/main.js.br"), "b" * 64), "gzip": (Path("b/app/main.js.gz"), "c" * 64)}


def test_only_the_first_digits_of_the_content_hash_are_its_version() -> None:
    asset = assets.of_files(Path("b"), HASHES.items())["app/main.js"]
    assert asset.is_version("a" * 16)
    assert not any(asset.is_version(other) for other in (None, "", "a" * 15, "a" * 64, "b" * 16))
