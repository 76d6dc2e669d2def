"""Placements as text: one form to find exactly that place again, one for people."""

from __future__ import annotations

import json
from typing import Any

from simulation.machines.grid import Grid
from simulation.machines.interface import Connection, GridMachine, Placement


def write_token(placement: Placement, asked: Connection) -> str:
    """Write a placement without its job, for `read_token`, and the connection asked for, for `asked_connection`.

    A box that fills a dimension may be joined to a torus there without a request for one.
    """
    fields = {
        "nodes": f"{placement.nodes:x}",
        "shape": placement.shape,
        "origin": placement.origin,
        "connection": [str(connection) for connection in placement.connection],
        "members": placement.members,
        "links": placement.links,
        "asked": str(asked),
        **({"block": placement.block} if placement.block else {}),
    }
    return json.dumps(fields, separators=(",", ":"))


def read_token(token: str, machine: GridMachine) -> Placement:
    """Return the placement that a token names, for job 0.

    Raises:
        ValueError: it names no place of this machine.
    """
    try:
        fields: dict[str, Any] = json.loads(token)
        nodes = int(fields["nodes"], 16)
        if not 0 < nodes < 1 << Grid(machine.extents).size:
            raise ValueError(f"some units are not on {machine.name}")
        return Placement(
            0,
            nodes.bit_count(),
            nodes,
            tuple(fields["shape"]),
            tuple(fields["origin"]),
            tuple(Connection(connection) for connection in fields["connection"]),
            tuple(tuple(axis) for axis in fields["members"]),
            tuple(tuple(labels) for labels in fields["links"]),
            str(fields.get("block", "")),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"invalid place {token!r}; expected one from an offer") from error


def asked_connection(token: str) -> Connection:
    """Return the connection asked for the place of a token."""
    return Connection(json.loads(token)["asked"])


def describe_placement(machine: GridMachine, placement: Placement) -> str:
    """Describe a placement for people: `bgl[000x011] 1x2x2 mesh, cables y 0, z 3`, and `, block RMP007` if listed."""
    described = machine.describe(placement)
    shape = "x".join(map(str, described["shape"]))
    # a dimension of one unit is joined to nothing, whatever it is called
    sides = zip(described["connection"], described["shape"], strict=False)
    joined = [str(connection) for connection, extent in sides if extent > 1]
    text = f"{described['nodes']} {shape}"
    if joined:
        text += f" {joined[0] if len(set(joined)) == 1 else ','.join(joined)}"
    cables = [f"{name} {' '.join(map(str, labels))}" for name, labels in described["links"].items() if labels]
    text = f"{text}, cables {', '.join(cables)}" if cables else text
    return f"{text}, block {described['block']}" if "block" in described else text
