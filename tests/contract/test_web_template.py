"""The page's template: what it takes, what it may load, and that nothing of a model can become markup."""

import json
import re

import jinja2.meta

from edgekit import render, resources
from edgekit.serve.app import CONTENT_SECURITY_POLICY

FOLDER = resources.root("templates") / "web"
NAME = "index.html.j2"
SOURCE = (FOLDER / NAME).read_text(encoding="utf-8")
HOSTILE = "</script><script>alert(1)</script><!-- \" ' é☃ \u2028"


def test_the_template_takes_the_configuration_and_nothing_else() -> None:
    tree = render.environment(FOLDER).parse(SOURCE)
    assert jinja2.meta.find_undeclared_variables(tree) == {"config"}


def test_the_policy_of_the_page_is_that_of_the_server() -> None:
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', SOURCE)
    # A <meta> element cannot say frame-ancestors.
    assert f"{policy}; frame-ancestors 'none'" == CONTENT_SECURITY_POLICY


def test_the_page_holds_no_script_or_style_of_its_own() -> None:
    scripts = re.findall(r"<script[^>]*>", SOURCE)
    assert all("src=" in script or 'type="application/json"' in script for script in scripts)
    assert not re.search(r"<style|\sstyle=|\son\w+=", SOURCE)
    assert not re.search(r'(?:src|href)="(?:https?:)?//', SOURCE)


def test_a_hostile_title_stays_text_and_the_configuration_survives() -> None:
    page = render.render(FOLDER, NAME, {"config": {"title": HOSTILE}})
    assert "<script>alert(1)" not in page
    (block,) = re.findall(r'id="edgekit-config">(.*?)</script>', page, re.DOTALL)
    assert json.loads(block) == {"title": HOSTILE}
