"""A browser for the tests of pages; without one they are skipped."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from typing import Any

    from playwright.sync_api import Browser, Page


# Without an `__init__.py` a fixture of the package is one of the session: Playwright's event loop would
# run on, and tests that start one of their own would fail.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, started once for a module."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("chromium is not installed")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=chromium,
            # nothing here needs a GPU, and to emulate one takes a quarter of the processor time of a page
            args=["--no-sandbox", "--disable-gpu", "--disable-software-rasterizer"],
            timeout=PATIENCE_S * 1000,
        )
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def watch(browser: Browser) -> Callable[..., AbstractContextManager[tuple[Page, list[str]]]]:
    """Return a function that gives a page, and what is logged in it or asked of the network: nothing."""

    @contextmanager
    def watched(**options: Any) -> Iterator[tuple[Page, list[str]]]:
        complaints: list[str] = []

        def ask(url: str) -> None:
            if not url.startswith(("file:", "blob:")):
                complaints.append(f"asked for {url}")

        page = browser.new_page(**({"viewport": {"width": 1200, "height": 900}} | options))
        page.set_default_timeout(PATIENCE_S * 1000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: ask(request.url))
        yield page, complaints
        page.close()
        assert complaints == []

    return watched
