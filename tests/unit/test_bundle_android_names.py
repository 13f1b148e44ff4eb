"""Ids and labels of apps, from titles that come from anywhere."""

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekit import render
from edgekit.bundle import android_names as names
from edgekit.errors import UsageError


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Digits", "edgekit.app.digits"),
        ("Größe 2.0 (beta)", "edgekit.app.gro_e_2_0_beta_HASH"),
        ("5 stars", "edgekit.app.model_5_stars"),
        ("class", "edgekit.app.model_class"),
        ("数字", "edgekit.app.model_HASH"),
        ("Café", "edgekit.app.cafe_HASH"),
        ("", "edgekit.app.model"),
        ("../../etc/passwd", "edgekit.app.etc_passwd"),
    ],
)
def test_an_id_is_made_of_what_android_takes(title: str, expected: str) -> None:
    digest = hashlib.sha256(title.encode()).hexdigest()[:6]
    assert names.application_id(title) == expected.replace("HASH", digest)


@given(st.text())
def test_an_id_that_was_made_is_one_that_is_taken(title: str) -> None:
    assert names.checked_application_id(names.application_id(title))


@pytest.mark.parametrize(
    "bad", ["", "digits", "com.", ".com.a", "com.1a", "com.a-b", "com.class", "com.a\n", "a.b" * 99]
)
def test_an_id_that_android_would_refuse_is_refused_first(bad: str) -> None:
    with pytest.raises(UsageError, match="is no id of an Android application"):
        names.checked_application_id(bad)


@given(st.text(st.characters()))
def test_a_label_is_one_line_of_what_can_be_seen(title: str) -> None:
    label = names.label(title)
    assert label
    assert len(label) <= 100
    assert not re.search(r"[\x00-\x1f\u202a-\u202e\ud800-\udfff]", label)


def test_what_android_reads_into_text_is_escaped() -> None:
    assert render.android_text("@string/a") == "\\@string/a"
    assert render.android_text("?attr") == "\\?attr"
    assert render.android_text("a\\n'\"") == "a\\\\n\\'\\\""
    assert render.android_text("plain @ text?") == "plain @ text?"
