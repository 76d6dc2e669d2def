"""Parse Grid Engine's text: messages of qrsub, and configurations."""

from __future__ import annotations

import re
from typing import Final

_GRANTED: Final = re.compile(r"^Your advance reservation (\d{1,9}) has been granted$", re.MULTILINE)
_POSSIBLE: Final = re.compile(r"^verification: found possible assignment with (\d{1,9}) slots$", re.MULTILINE)


def granted_number(output: str) -> int | None:
    """Return the id of the reservation that `qrsub` reports, or None: its exit code alone does not tell."""
    found = _GRANTED.search(output)
    return None if found is None else int(found[1])


def verified_slots(output: str) -> int | None:
    """Return the slots that `qrsub -w v` has found, or None if there are too few."""
    found = _POSSIBLE.search(output)
    return None if found is None else int(found[1])


def read_usersets(output: str) -> dict[str, tuple[str, ...]]:
    """Read `qconf -su NAME,NAME`: the members of each userset that exists."""
    found = {}
    for block in re.split(r"(?m)^(?=name\s)", output):
        settings = read_settings(block)
        if "name" in settings:
            entries = re.split(r"[,\s]+", settings.get("entries", ""))
            found[settings["name"]] = tuple(each for each in entries if each and each != "NONE")
    return found


def read_settings(output: str) -> dict[str, str]:
    """Read `qconf -sp`, `-sq`, `-su`, `-sconf` or `-ssconf`: a name and its value per line.

    A backslash at the end continues a line; comments are ignored.
    """
    settings: dict[str, str] = {}
    for line in re.sub(r"\\\n\s*", " ", output).splitlines():
        name, _, value = line.strip().partition(" ")
        if name and not name.startswith("#"):
            settings[name] = value.strip()
    return settings
