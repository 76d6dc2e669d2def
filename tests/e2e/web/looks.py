"""How a page is looked at: in which widths and schemes, by axe-core's rules, without sideways scrolling."""

from pathlib import Path

import pytest

from tests.e2e.web.conftest import SCREENSHOTS

LOOKS = [(1280, "light"), pytest.param(390, "dark", marks=pytest.mark.full)]
"""Widths in pixels, with schemes."""

_RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}


def look_at(page, name, width, scheme):
    """What axe-core finds on a page as it is now, after a picture of it."""
    from axe_playwright_python.sync_playwright import Axe

    page.wait_for_load_state("networkidle")
    page.wait_for_function("!document.querySelector('main').innerText.includes('…')")  # nothing is waited for any more
    if SCREENSHOTS:
        Path(SCREENSHOTS).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{SCREENSHOTS}/{name}-{width}-{scheme}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    violations = Axe().run(page, options=_RULES).response["violations"]
    return {f"{name} {each['id']}": [node["html"][:200] for node in each["nodes"]][:3] for each in violations}
