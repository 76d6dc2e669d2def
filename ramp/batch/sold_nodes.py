"""Cores of nodes as a slot tells of them: its placement for people, its token for the plug-in itself."""

from __future__ import annotations

from typing import Final

from ramp.batch.node_lists import compress, expand
from ramp.batch.system import Parts
from ramp.plugins.answers import PLACEMENT_MAX, TOKEN_MAX

_TOO_LONG: Final = "{} nodes"


def placement_of(parts: Parts) -> str:
    """Return the nodes as a list in Slurm's form, or only their number if that is too long."""
    text = compress(name for name, _ in parts)
    return text if len(text) <= PLACEMENT_MAX else _TOO_LONG.format(len(parts))


def token_of(parts: Parts) -> str:
    """Return the cores of each node as text: `8:n[1-3];4:n4`; empty if it is too long for a slot."""
    groups: list[tuple[int, list[str]]] = []
    for name, count in parts:
        if groups and groups[-1][0] == count:
            groups[-1][1].append(name)
        else:
            groups.append((count, [name]))
    text = ";".join(f"{count}:{compress(names)}" for count, names in groups)
    return text if len(text) <= TOKEN_MAX else ""


def parts_of(token: str) -> Parts:
    """Read the text of `token_of`.

    Raises:
        ValueError: if the text is invalid, names a node twice, or gives a node no cores.
    """
    parts: list[tuple[str, int]] = []
    for group in token.split(";"):
        count, colon, names = group.partition(":")
        if not colon or not count.isascii() or not count.isdigit() or int(count) < 1:
            raise ValueError(f"{token[:60]!r} does not name cores of nodes")
        parts += ((name, int(count)) for name in expand(names))
    if not parts or len({name for name, _ in parts}) < len(parts):
        raise ValueError(f"{token[:60]!r} does not name nodes once each")
    return tuple(parts)
