"""Writes the pages that are drawn from the program into `docs/generated`, before Sphinx reads anything."""

from __future__ import annotations

from pathlib import Path

import command_pages
import configuration_page
import wire_page


def write_pages(folder: Path) -> list[tuple[str, str, str]]:
    """Write all of them; what is as it was stays untouched, so that Sphinx reads only what has changed.

    Args:
        folder: made where it is missing; what is in it and is not made any more goes.

    Returns:
        The man pages: name of the page in the folder, name of the man page, summary.
    """
    pages = {"configuration": configuration_page.page(), "wire": wire_page.page()}
    verbs = command_pages.verbs()
    for verb in verbs:
        pages[verb.page] = command_pages.page(verb)
    listed = "\n".join(verb.page for verb in verbs)
    intro = "All commands of `ramp`. `make docs` also writes man pages (`man build/docs/man/ramp-submit.1`)."
    pages["commands"] = f"# Commands\n\n{intro}\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.md"):
        if old.stem not in pages:
            old.unlink()
    for name, text in pages.items():
        file = folder / f"{name}.md"
        if not file.exists() or file.read_text("utf-8") != text:
            file.write_text(text, "utf-8")
    return [(verb.page, verb.page, verb.summary) for verb in verbs]
