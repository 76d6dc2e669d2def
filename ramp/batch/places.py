"""Choose nodes of a batch system by their places: those of a box, if the site is a torus.

Without the option `torus` the common plug-in takes any free nodes. With it, the entry point group `ramp.batch_places`
names the code that chooses boxes for requests with terms for tori.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from ramp.batch.system import Node, Parts
from ramp.entry_points import entry_points_by_name
from ramp.errors import ConfigurationError
from ramp.model.offer import Refusal
from ramp.model.request import RequestUnit

PLACES_GROUP: Final = "ramp.batch_places"
TORUS: Final = "torus"


class Places(Protocol):
    """Chooses nodes for requests that depend on their places."""

    def refused(self, unit: RequestUnit) -> Refusal | None:
        """Say why a request can never be served here; None if it can be while nothing else runs."""
        ...

    def choose(self, unit: RequestUnit, free: Mapping[str, int]) -> Parts:
        """Choose whole nodes for a request that is not refused; empty if the free nodes do not suffice.

        Args:
            unit: the request.
            free: cores of each node that are free all the time.
        """
        ...


OpenPlaces = Callable[[Mapping[str, Any], Sequence[Node], str], Places]
"""Called with options, the nodes in the system's order, and the resource's name for messages."""


def open_torus(options: Mapping[str, Any], nodes: Sequence[Node], resource: str) -> Places | None:
    """Return the code that chooses boxes of a torus; None if the options name no torus.

    Args:
        options: the site's table `torus`.
        nodes: in the system's order.
        resource: its name.

    Raises:
        ConfigurationError: the table is wrong, or no package that chooses is installed.
    """
    if not options:
        return None
    entry = entry_points_by_name(PLACES_GROUP).get(TORUS)
    if entry is None:
        raise ConfigurationError(f"nothing is installed that chooses places of a {TORUS}", key=f"{resource}.torus")
    opener: OpenPlaces = entry.load()
    return opener(options, nodes, f"{resource}.torus")
