"""What tests of pages that open from a file share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from edgekit.runners import browsers


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        program = browsers.find(None, Path(playwright.chromium.executable_path))
        made = playwright.chromium.launch(
            executable_path=program.path, args=["--disable-gpu"], chromium_sandbox=browsers.can_sandbox()
        )
        yield made
        made.close()
