"""Cables of one line of midplane switches, as on Blue Gene/L.

Each midplane has one switch a dimension. Ports 2 and 4 of a switch send to other switches, 3 and 5 receive, 0 and 1
belong to the midplane itself. A cable joins an out port to an in port of the same line; a port holds at most one cable.
All lines of a dimension are wired alike. Source: Aridor et al. 2005, section "Blue Gene/L topology"; port numbers as
in Slurm's Blue Gene plug-in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ramp.errors import MachineError

OUT_PORTS = (2, 4)
"""Ports through which a switch sends to another switch."""
IN_PORTS = (3, 5)
"""Ports through which a switch receives from another switch."""
RING_OUT_PORT, RING_IN_PORT = 2, 5
"""Ports of the main ring's cables."""
CABLES_MAX = 64
"""Cables a line may have: one machine word holds the state of a line."""

_CABLE = re.compile(r"(\d+)\.(\d)>(\d+)\.(\d)")


@dataclass(frozen=True, slots=True)
class Cable:
    """One cable of a line.

    Attributes:
        label: its number on the line, from 0.
        source: switch whose out port it leaves.
        out_port: 2 or 4.
        target: switch whose in port it enters.
        in_port: 3 or 5.
    """

    label: int
    source: int
    out_port: int
    target: int
    in_port: int

    def __str__(self) -> str:
        return f"{self.source}.{self.out_port}>{self.target}.{self.in_port}"


@dataclass(frozen=True, slots=True)
class LineWiring:
    """The wiring that all lines of a dimension share.

    Attributes:
        width: midplanes (and switches) on the line.
        cables: in the order of their labels.
        pass_through: whether a job's traffic may cross switches of midplanes that are not its own
            (Slurm's DenyPassthrough switches it off for a dimension).
    """

    width: int
    cables: tuple[Cable, ...]
    pass_through: bool = True

    def __post_init__(self) -> None:
        if self.width < 1:
            raise MachineError(f"a line must have at least 1 midplane, got {self.width}")
        if len(self.cables) > CABLES_MAX:
            raise MachineError(f"a line must have at most {CABLES_MAX} cables, got {len(self.cables)}")
        ports: dict[tuple[int, int], Cable] = {}
        for cable in self.cables:
            for switch, port, allowed in (
                (cable.source, cable.out_port, OUT_PORTS),
                (cable.target, cable.in_port, IN_PORTS),
            ):
                if not 0 <= switch < self.width:
                    raise MachineError(f"cable {cable}: switch must be 0 to {self.width - 1}, got {switch}")
                if port not in allowed:
                    raise MachineError(f"cable {cable}: port must be {allowed[0]} or {allowed[1]}, got {port}")
                other = ports.setdefault((switch, port), cable)
                if other is not cable:
                    raise MachineError(f"cable {cable}: port {port} of switch {switch} already holds cable {other}")

    @property
    def text(self) -> str:
        """The wiring in one line."""
        cables = " ".join(map(str, self.cables))
        return f"{self.width}{'' if self.pass_through else ' no-pass-through'}: {cables}"


def parse_wiring(width: int, cables: Iterable[str], *, pass_through: bool = True) -> LineWiring:
    """Read cables in the form `1.4>0.3` (out port 4 of switch 1 to in port 3 of switch 0); labels count from 0.

    Args:
        width: midplanes on the line.
        cables: one text a cable, in the order of their labels.
        pass_through: see `LineWiring`.

    Raises:
        MachineError: a text is no cable, names a switch or port that is not there, or doubles a port.
    """
    parsed = []
    for label, text in enumerate(cables):
        match = _CABLE.fullmatch(text.strip())
        if match is None:
            raise MachineError(f"invalid cable {text!r}; expected SWITCH.PORT>SWITCH.PORT, for example 1.4>0.3")
        source, out_port, target, in_port = map(int, match.groups())
        parsed.append(Cable(label, source, out_port, target, in_port))
    return LineWiring(width, tuple(parsed), pass_through)


def ring_wiring(order: Sequence[int], *, pass_through: bool = True) -> LineWiring:
    """Return a simple ring through the switches in the order given: 0, 1, 3, 2 for Blue Gene/L's y- and z-lines.

    Cable `i` leaves the `i`-th switch of the order. A line of one midplane needs no cable.

    Raises:
        MachineError: the order is not a permutation of 0, 1, ..., n - 1.
    """
    if sorted(order) != list(range(len(order))):
        raise MachineError(f"a ring must list each switch from 0 to {len(order) - 1} once, got {list(order)}")
    if len(order) == 1:
        return LineWiring(1, (), pass_through)
    following = [*order[1:], order[0]]
    cables = tuple(
        Cable(label, source, RING_OUT_PORT, target, RING_IN_PORT)
        for label, (source, target) in enumerate(zip(order, following, strict=True))
    )
    return LineWiring(len(order), cables, pass_through)
