"""Which nodes of a batch system a request for a place takes: those of a box, where the site is a torus.

The common plug-in takes any nodes that are free. A site whose nodes have places in a torus says so in its options
(`torus`), and requests with terms for tori then go to what chooses boxes, found by the entry point group
`ramp.batch_places`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from ramp.batch.system import Node, Parts
from ramp.entry_points import entry_points
from ramp.errors import ConfigurationError
from ramp.model.offer import Refusal
from ramp.model.request import RequestUnit

PLACES_GROUP: Final = "ramp.batch_places"
TORUS: Final = "torus"


class Places(Protocol):
    """Chooses nodes for requests that care where they are."""

    def refused(self, unit: RequestUnit) -> Refusal | None:
        """Why a request can never be served here; None where it can when nothing else runs."""
        ...

    def choose(self, unit: RequestUnit, free: Mapping[str, int]) -> Parts:
        """Whole nodes for a request that is not refused; none where those that are free do not do.

        Args:
            unit: the request.
            free: cores of each node that are free all the time.
        """
        ...


OpenPlaces = Callable[[Mapping[str, Any], Sequence[Node], str], Places]
"""Options, the nodes in the system's order, and the resource's name for messages."""


def open_torus(options: Mapping[str, Any], nodes: Sequence[Node], resource: str) -> Places | None:
    """What chooses boxes of a torus; None where the site says nothing of one.

    Args:
        options: the site's table `torus`.
        nodes: in the system's order.
        resource: its name.

    Raises:
        ConfigurationError: the table is wrong, or nothing is installed that chooses.
    """
    if not options:
        return None
    entry = next((each for each in entry_points(PLACES_GROUP) if each.name == TORUS), None)
    if entry is None:
        raise ConfigurationError(f"nothing is installed that chooses places of a {TORUS}", key=f"{resource}.torus")
    opener: OpenPlaces = entry.load()
    return opener(options, nodes, f"{resource}.torus")
