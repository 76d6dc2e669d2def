"""Parse Grid Engine's text: tables of qstat and qrstat, messages of qrsub, configurations.

Unlike the XML, these tables cut names. They serve systems whose commands cannot print XML.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from ramp.batch.gridengine.answers import task_count
from ramp.batch.gridengine.markup import number_of
from ramp.batch.gridengine.records import AdvanceReservation, BatchJob
from ramp.model.instant import Instant, from_datetime

_MOMENT: Final = r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d)"
_JOB: Final = re.compile(rf"\s*(\d+) +([\d.]+) (.{{10}}) (\S+) +(\S+) +{_MOMENT} (.{{30}}) +(\d+) ?(\S*)\s*")
_RESERVATION: Final = re.compile(rf"\s*(\d+) (.{{10}}) (\S+) +(\S+) +{_MOMENT}  {_MOMENT}  (\d+:\d\d:\d\d)\s*")
_GRANTED: Final = re.compile(r"^Your advance reservation (\d{1,9}) has been granted$", re.MULTILINE)
_POSSIBLE: Final = re.compile(r"^verification: found possible assignment with (\d{1,9}) slots$", re.MULTILINE)


def read_job_table(output: str) -> tuple[BatchJob, ...]:
    """Read the table of `qstat -u '*'`: names are cut at ten characters, and limits are missing.

    Raises:
        ValueError: at an invalid line.
    """
    jobs = []
    for row in _rows(output, "job-ID", _JOB, "job line"):
        number, priority, name, owner, state, moment, queue, slots, task = row
        at, runs = _moment(moment), not any(letter in state for letter in "qw")
        count = number_of(slots, f"slots of job {number}")
        jobs.append(
            BatchJob(
                number=number_of(number, "a job's number"),
                name=name.strip(),
                owner=owner,
                state=state,
                slots=count,
                tasks=task_count(task),
                started=at if runs else None,
                submitted=None if runs else at,
                slots_at=((queue.strip(), count),) if runs else (),
                task=task,
                priority=float(priority),
            )
        )
    return tuple(jobs)


def read_reservation_table(output: str) -> tuple[AdvanceReservation, ...]:
    """Read the table of `qrstat -u '*'`: names are cut at ten characters.

    Raises:
        ValueError: at an invalid line.
    """
    rows = _rows(output, "ar-id", _RESERVATION, "line of an advance reservation")
    return tuple(
        AdvanceReservation(number_of(number, "an id"), name.strip(), owner, state, _moment(start), _moment(end))
        for number, name, owner, state, start, end, _ in rows
    )


def _rows(output: str, title: str, row: re.Pattern[str], kind: str) -> list[tuple[str, ...]]:
    """Return the fields of each line of a table below its head; an empty table has no head."""
    lines = [line for line in output.splitlines() if line.strip()]
    if lines and not lines[0].startswith(title):
        raise ValueError(f"wrong first line of the table: got {lines[0]!r:.80}, expected {title!r}")
    found = []
    for line in lines[1:]:
        if not set(line) <= {"-"}:
            if (match := row.fullmatch(line)) is None:
                raise ValueError(f"invalid {kind}: {line!r:.120}")
            found.append(match.groups())
    return found


def _moment(text: str) -> Instant:
    try:
        return from_datetime(datetime.strptime(text, "%m/%d/%Y %H:%M:%S").replace(tzinfo=UTC))
    except ValueError as error:
        raise ValueError(f"invalid date and time: {text!r}") from error


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
