"""The map of a live machine: what its plug-in puts into a snapshot, and what `ramp smap` makes of it.

A unit shows the job that runs on it; where none does, what the market holds or has reserved of it, now or later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ramp.errors import DocumentError, MachineError
from ramp.model.instant import SECOND, from_iso, iso
from ramp.model.slot import Reservation
from simulation.machines.interface import GridMachine, has_cables
from simulation.machines.view import (
    HELD,
    PENDING,
    RESERVED,
    MachineView,
    ViewJob,
    ViewReservation,
    view_of_state,
    with_block,
    with_listed,
)
from simulation.resource.live_machine import LiveMachine

MARKET: Final = "market"
"""Stands in the user column of what the market holds."""
BOOKED_MAX: Final = 60
"""So many holds and reservations, by start, are on a map: a snapshot has to fit into one message."""


def map_of(
    machine_name: str,
    live: LiveMachine,
    booked: Sequence[Reservation],
    numbers: Mapping[str, int],
    cores_a_unit: int,
) -> dict[str, Any]:
    """Return the `map` of a snapshot; JSON types only.

    Args:
        machine_name: name or file by which the machine is loaded.
        live: the machine.
        booked: live holds and reservations.
        numbers: the live machine's number of each key.
        cores_a_unit: cores of a midplane or node.

    Returns:
        `machine`, `extents`, `cores_a_unit`, `now_s`; `jobs` (running: `job_number`, `nodes` as a hostlist,
        `connection`, `links`, a listed `block`, `elapsed_s`, `user`) and `booked` (`name`, `firm`, `start_s`, `end_s`,
        and the place too; the first `BOOKED_MAX`), times in seconds of machine time. Where jobs hold cables also
        `cables`: of each dimension by name, the two coordinates that cable 0, 1 and so on of its lines joins.
    """
    machine = live.machine
    granted = live.reservations()
    jobs = []
    for number, running in live.queue.running.items():
        jobs.append(
            {
                "job_number": number,
                **_place(machine.describe(running.placement)),
                "elapsed_s": (live.now - running.start_time) / SECOND,
                "user": _owner(live.users.get(number)),
            }
        )
    shown = []
    for reservation in booked[:BOOKED_MAX]:
        grant = granted.get(numbers.get(reservation.key, 0))
        if grant is None:
            continue
        shown.append(
            {
                "name": reservation.reservation_id,
                "firm": reservation.firm,
                "start_s": grant.begin_time / SECOND,
                "end_s": grant.end_time / SECOND,
                **_place(machine.describe(grant.placement)),
            }
        )
    wiring: dict[str, list[list[int]]] = {}
    if has_cables(machine):
        wiring = {
            name: [[cable.source, cable.target] for cable in line.cables] for name, line in machine.wirings.items()
        }
    return {
        "machine": machine_name,
        "extents": list(machine.extents),
        "cores_a_unit": cores_a_unit,
        "now_s": live.now / SECOND,
        "jobs": jobs,
        "booked": shown,
        **({"cables": wiring} if wiring else {}),
    }


def view_of_snapshot(machine: GridMachine, snapshot: Mapping[str, Any]) -> MachineView:
    """Return the view to draw for a snapshot with a map.

    Args:
        machine: the machine that the map names.
        snapshot: of a plug-in that has a map.

    Raises:
        DocumentError: the map is not of this machine.
    """
    shown, source = snapshot["map"], str(snapshot["resource"])
    if list(machine.extents) != shown.get("extents"):
        mine = "x".join(map(str, machine.extents))
        raise DocumentError(
            f"the map is of another machine than {machine.name}: got extents {shown.get('extents')}, expected {mine}",
            source=source,
        )
    view = view_of_state(machine, {"time_s": shown["now_s"], "jobs": shown["jobs"]}, source)
    blocked = [with_block(job) for job in view.jobs]
    blocks = tuple(block for _, made in blocked for block in made)
    taken = 0
    for job in view.jobs:
        taken |= job.units
    booked = _booked(machine, shown, source)
    jobs = []
    for job in booked:
        # a unit that is booked for later shows the job that runs there now
        jobs.append(replace(job, units=job.units & ~taken))
        taken |= job.units
    waiting = [ViewJob(job["job"], PENDING, size=job["cores"] // shown["cores_a_unit"], user=_owner(job["user"]))
               for job in snapshot["queued"]]  # fmt: skip
    times = {entry["reservation_id"]: entry for entry in snapshot["reservations"]}
    reservations = tuple(
        ViewReservation(
            entry["name"],
            _state(entry, shown["now_s"]),
            entry["start_s"],
            entry["end_s"],
            job.size,
            entry["nodes"],
            *(_whole_second(times[entry["name"]][key]) if entry["name"] in times else "" for key in ("start", "end")),
        )
        for entry, job in zip(shown["booked"], booked, strict=True)
    )
    running = (job for job, _ in blocked)
    view = replace(view, jobs=(*running, *jobs, *waiting), blocks=blocks, reservations=reservations)
    return with_listed(machine, view)


def _booked(machine: GridMachine, shown: Mapping[str, Any], source: str) -> list[ViewJob]:
    """Return holds and reservations as jobs with negative numbers; each is read by itself, as they overlap in space."""
    found = []
    for index, entry in enumerate(shown["booked"]):
        fields = {key: entry[key] for key in ("nodes", "connection", "links")}
        state = RESERVED if entry["firm"] else HELD
        fields |= {"job_number": -1 - index, "state": state, "name": entry["name"], "user": MARKET}
        try:
            found.append(view_of_state(machine, {"jobs": [fields]}, source).jobs[0])
        except MachineError as error:
            raise DocumentError(f"booked[{index}]: {error}", source=source) from error
    return found


def _place(described: Mapping[str, Any]) -> dict[str, Any]:
    return {key: described[key] for key in ("nodes", "connection", "links", "block") if key in described}


def _owner(user: int | None) -> str:
    return "" if user is None else f"user{user}"


def _whole_second(text: str) -> str:
    return iso(from_iso(text) // SECOND * SECOND)


def _state(entry: Mapping[str, Any], now_s: float) -> str:
    if not entry["firm"]:
        return "HELD"
    return "ACTIVE" if entry["start_s"] <= now_s < entry["end_s"] else "INACTIVE"
