"""A machine of the market as a Grid Engine would tell of it: the paper's fake_qstat and fake_qrstat for any program.

A machine that shows no nodes is one queue instance `all.q@MACHINE`. Its reservations are advance reservations with the
numbers and keys that the market knows them by; a hold may be used by a userset of its own, a firm one too, for who may
run in it is nothing that a machine tells. Times are cut to whole seconds, Grid Engine's finest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ramp.batch.gridengine.records import AdvanceReservation, BatchJob, QueueInstance, QueueReport
from ramp.client.machine_state import MachineJob, MachineReservation, MachineState
from ramp.model.instant import SECOND, Instant, from_datetime

QUEUE: Final = "all.q"
ENVIRONMENT: Final = "mpi"
OWNER: Final = "ramp"
"""Who the market's reservations belong to."""

_PRIORITY: Final = 0.5
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9._-]")


def queue_of(shown: MachineState) -> QueueReport:
    """Return a machine's queue; jobs that did not fit its answer are missing, but their slots are counted."""
    instance = f"{QUEUE}@{shown.resource}"
    begun = sum(each.cores for each in shown.reservations if _begun(each, shown))
    report = QueueInstance(
        name=instance,
        slots_total=shown.cores,
        slots_used=max(shown.cores_busy - begun, 0),
        slots_reserved=begun,
        load=float(shown.cores_busy),
        architecture="lx-amd64",
    )
    running = [_job(job, number, instance) for number, job in enumerate(shown.running, 1)]
    queued = [_job(job, number, "") for number, job in enumerate(shown.queued, len(running) + 1)]
    return QueueReport((report,), (*running, *queued))


def reservations_of(shown: MachineState) -> tuple[AdvanceReservation, ...]:
    """Return a machine's holds and reservations, by start."""
    instance = f"{QUEUE}@{shown.resource}"
    keys = _keys(shown)
    found = []
    for number, each in enumerate(shown.reservations, 1):
        name = reservation_name(keys.get(each.reservation_id, each.reservation_id))
        found.append(
            AdvanceReservation(
                number=_number(each.reservation_id, number),
                name=name,
                owner=OWNER,
                state="r" if _begun(each, shown) else "w",
                start=_whole(from_datetime(each.start)),
                end=_whole(from_datetime(each.end)),
                slots_at=((instance, each.cores),),
                users=(f"@{name}",),
                submitted=_whole(min(from_datetime(shown.time), from_datetime(each.start))),
                group=OWNER,
                account="ramp.firm" if each.firm else "ramp.hold",
                environment=ENVIRONMENT,
            )
        )
    return tuple(found)


def reservation_name(key: str) -> str:
    """Return the name of a key's reservation, of such characters as Grid Engine allows in the names of objects."""
    return f"ramp_{_NO_NAME.sub('-', key)}"[:64]


def _job(job: MachineJob, number: int, instance: str) -> BatchJob:
    start, end = from_datetime(job.start), from_datetime(job.end)
    owner = f"user{job.user}" if isinstance(job.user, int) else (job.user or "nobody")
    return BatchJob(
        number=_number(str(job.job), number),
        name=f"job{_NO_NAME.sub('-', str(job.job))}",
        owner=_NO_NAME.sub("-", owner),
        state="r" if instance else "qw",
        slots=job.cores,
        started=_whole(start) if instance else None,
        submitted=None if instance else _whole(from_datetime(job.submitted)),
        run_limit=max(SECOND, -(-(end - start) // SECOND) * SECOND),
        slots_at=((instance, job.cores),) if instance else (),
        priority=_PRIORITY,
        environment=ENVIRONMENT,
        slot_range=str(job.cores),
    )


def _number(text: str, otherwise: int) -> int:
    """Return the number that a name ends with, or another one."""
    found = re.search(r"([0-9]{1,9})$", text)
    return int(found[1]) if found else otherwise


def _begun(reservation: MachineReservation, shown: MachineState) -> bool:
    return reservation.start <= shown.time < reservation.end


def _keys(shown: MachineState) -> dict[str, str]:
    listed = shown.snapshot.get("reservations")
    rows: Sequence[object] = listed if isinstance(listed, list) else ()
    return {str(row["reservation_id"]): str(row["key"]) for row in rows if isinstance(row, dict) and "key" in row}


def _whole(instant: Instant) -> Instant:
    return instant // SECOND * SECOND
