"""Real Android bundles of tiny models: the real writer and templates, with golden cases made by hand."""

from pathlib import Path
from typing import Any

import pytest
import web_bundle

from edgekit.bundle import android_project
from edgekit.bundle.android_project import Content
from edgekit.facts import survey as facts
from edgekit.model import io as model
from edgekit.records.manifest import Manifest
from edgekit.runners.toolsets import by_id
from edgekit.targets import load as targets


def build(model_path: Path, destination: Path, target: str, *, title: str = "tiny", **changes: Any) -> Manifest:
    """Build a bundle of the model; ``changes`` are fields of ``edgekit.bundle.android_project.Content``."""
    loaded = model.load(model_path)
    content = Content(loaded, facts.survey(loaded), web_bundle.cases_for(model_path), title, **changes)
    return android_project.write(destination, content, targets.load(target), force=False)


def needs(*tool_sets: str) -> pytest.MarkDecorator:
    """Skip where programs of the system are missing that make test could not install."""
    missing = [package for name in tool_sets for package in by_id(name).missing]
    return pytest.mark.skipif(bool(missing), reason=f"missing: {', '.join(missing)}")
