"""Environment of a job on a torus machine: its block, and the box, shape and connection of its place.

Slurm on Blue Gene/L names a job's block in `BGL_PARTITION_ID` (M. Jette and others, 2004) and, from version 1.0 on, in
`MPIRUN_PARTITION`, with two variables that keep mpirun from making or freeing blocks itself. The reservation of a slot
names its block, unless the machine lists its blocks. The other variables serve every torus.
"""

from __future__ import annotations

import re
from typing import Final

from ramp.model.offer import Offer
from ramp.model.request import TorusTerms

_PLACE: Final = re.compile(
    r"(?P<nodes>[a-z0-9._-]*(?:[0-9A-Z]|\[[0-9A-Zx,-]+\])) (?P<geometry>\d+(?:x\d+)+)"
    r"(?: (?P<connection>(?:mesh|torus)(?:,(?:mesh|torus))*))?(?:, cables (?P<cables>[\w ,]+?))?"
    r"(?:, block (?P<block>\w+))?"
)
"""A placement as torus machines describe it: `bgl[000x011] 1x2x2 mesh, cables y 0, z 3`, perhaps `, block RMP007`."""


def place_variables(offer: Offer, terms: TorusTerms | None, reservation_id: str, cores: int) -> dict[str, str]:
    """Return the variables of a job on a slot; none where the machine is no torus.

    Args:
        offer: the slot as it was sold.
        terms: what was asked of the torus.
        reservation_id: the machine's name for the slot.
        cores: present cores of the slot; after a change the place of the offer is no longer known.
    """
    place = _PLACE.fullmatch(offer.placement)
    if place is None:
        return {}
    name = (cores == offer.cores and place["block"]) or reservation_id
    block = {
        "BGL_PARTITION_ID": name,
        "MPIRUN_PARTITION": name,
        "MPIRUN_NOALLOCATE": "1",
        "MPIRUN_NOFREE": "1",
        "RAMP_NODE_USE": (terms.node_use if terms is not None else "") or "coprocessor",
    }
    if cores != offer.cores:
        return block
    known = {"NODES": place["nodes"], "GEOMETRY": place["geometry"], "CONNECTION": place["connection"] or "mesh"}
    return block | {f"RAMP_{name}": value for name, value in known.items()}
