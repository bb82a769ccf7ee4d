"""A headless browser for tests: the Chromium or Chrome of this machine, driven by Playwright.

`python -m tests.support.browser PAGE.html FOLDER` takes the pictures of the tutorial from the report of `make demo`: report.png, the top of the
page, and throttles.png, the chart of the throttled clients.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def browser() -> Iterator[Any]:
    """Yield Playwright's browser. Without one the test fails and names the command that installs it."""
    path = os.environ.get("KAFKAPROTO_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.fail("no browser found: apt install chromium, or set KAFKAPROTO_BROWSER to the path of one")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(OPTIONS))
        try:
            yield chromium
        finally:
            chromium.close()


def take(page: Path, folder: Path) -> None:
    """Write report.png and throttles.png, the pictures of a report's page, into a folder."""
    with browser() as chromium:
        tab = chromium.new_page(viewport={"width": 1000, "height": 900})
        tab.goto(page.resolve().as_uri())
        tab.screenshot(path=str(folder / "report.png"))
        tab.locator("#p-throttles-rates").screenshot(path=str(folder / "throttles.png"))


if __name__ == "__main__":
    take(Path(sys.argv[1]), Path(sys.argv[2]))
