"""Parse answers of Grid Engine's commands, without side effects: XML, messages of qrsub, and configurations.

Another program writes these answers, about jobs with names that any user may choose. Every value is checked, and an
invalid value raises an error that names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from ramp.batch.gridengine.markup import limit_of, load_of, moment_of, number_of, parse_answer, text_of
from ramp.batch.gridengine.records import AdvanceReservation, BatchJob, QueueInstance, QueueReport
from ramp.model.instant import Duration
from ramp.rfql.xml.parser import Element

_GRANTED: Final = re.compile(r"^Your advance reservation (\d{1,9}) has been granted$", re.MULTILINE)
_POSSIBLE: Final = re.compile(r"^verification: found possible assignment with (\d{1,9}) slots$", re.MULTILINE)
_TASKS: Final = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}):([0-9]{1,9}))?")


def read_queues(output: str) -> QueueReport:
    """Read `qstat -f -r -xml -u '*'`, or any shorter form of it.

    Without `-f` there are no queue instances, and a job on several of them names only the first. Without `-r` no job
    has a time limit.

    Raises:
        ValueError: if it is not that command's output.
    """
    root = parse_answer(output, "job_info")
    instances: list[QueueInstance] = []
    jobs: list[BatchJob] = []
    for listed in root.iter("Queue-List"):
        instance = _instance(listed)
        instances.append(instance)
        jobs.extend(_job(each, instance.name) for each in listed.iter("job_list"))
    for name in ("queue_info", "job_info"):
        outside = root.findall(f"{name}/job_list")
        jobs.extend(_job(each, text_of(each, "queue_name", "")) for each in outside)
    return QueueReport(tuple(instances), _joined(jobs))


def _instance(listed: Element) -> QueueInstance:
    name = text_of(listed, "name")
    total, used, reserved = (
        number_of(text_of(listed, key), f"{key} of {name}") for key in ("slots_total", "slots_used", "slots_resv")
    )
    return QueueInstance(
        name, total, used, reserved, text_of(listed, "state", ""), load_of(text_of(listed, "load_avg", "")),
        text_of(listed, "arch", ""),
    )  # fmt: skip


def _job(listed: Element, instance: str) -> BatchJob:
    number = number_of(text_of(listed, "JB_job_number"), "JB_job_number")
    what = f"of job {number}"
    slots = number_of(text_of(listed, "slots"), f"slots {what}")
    started = listed.findtext("JAT_start_time")
    submitted = listed.findtext("JB_submission_time")
    state = text_of(listed, "state")
    task = text_of(listed, "tasks", "")
    asked = listed.find("requested_pe")
    runs = started is not None and not any(letter in state for letter in "qw")
    return BatchJob(
        number=number,
        name=text_of(listed, "full_job_name", "") or text_of(listed, "JB_name", ""),
        owner=text_of(listed, "JB_owner"),
        state=state,
        slots=slots,
        tasks=task_count(task),
        started=moment_of(started, f"JAT_start_time {what}") if started is not None and runs else None,
        submitted=None if submitted is None else moment_of(submitted, f"JB_submission_time {what}"),
        run_limit=_run_limit(listed.iter("hard_request")),
        slots_at=((instance, slots),) if runs and instance else (),
        task=task,
        priority=load_of(text_of(listed, "JAT_prio", "")) or 0.0,
        environment="" if asked is None else asked.get("name", ""),
        slot_range="" if asked is None else (asked.text or "").strip(),
    )


def _run_limit(requests: Iterable[Element]) -> Duration | None:
    limits = [limit_of(each.text or "") for each in requests if each.get("name") == "h_rt"]
    return min((limit for limit in limits if limit is not None), default=None)


def task_count(task: str) -> int:
    """Count the tasks of a text like `1-5:1`, `4,5` or `3`; 1 for an empty text.

    Raises:
        ValueError: if the text has another form.
    """
    count = 0
    for part in task.split(",") if task else ():
        found = _TASKS.fullmatch(part)
        if found is None or (found[3] is not None and int(found[3]) == 0):
            raise ValueError(f"invalid tasks: got {task!r:.60}, expected a list such as 1-5:1 or 4,5")
        first, last = int(found[1]), int(found[2] or found[1])
        count += max(0, last - first) // int(found[3] or 1) + 1
    return max(count, 1)


def _joined(parts: Sequence[BatchJob]) -> tuple[BatchJob, ...]:
    found: dict[tuple[int, str, bool], BatchJob] = {}
    for part in parts:
        key = (part.number, part.task, part.running)
        known = found.get(key)
        if known is None or not part.running:
            found[key] = part
        else:
            found[key] = replace(known, slots=known.slots + part.slots, slots_at=known.slots_at + part.slots_at)
    return tuple(found.values())


def read_reservations(output: str) -> tuple[AdvanceReservation, ...]:
    """Read `qrstat -xml -u '*'` or `qrstat -xml -ar N`; one that does not exist is left out.

    Raises:
        ValueError: if it is not that command's output.
    """
    root = parse_answer(output, "qrstat")
    return tuple(_reservation(each) for each in root.iter("ar_summary"))


def _reservation(listed: Element) -> AdvanceReservation:
    number = number_of(text_of(listed, "id"), "id")
    what = f"of advance reservation {number}"
    granted = []
    for each in listed.iter("granted_slots"):
        instance = each.get("queue_instance", "")
        if not instance:
            raise ValueError(f"granted_slots {what} have no queue_instance")
        granted.append((instance, number_of(each.get("slots", ""), f"slots {what}")))
    start = moment_of(text_of(listed, "start_time"), f"start_time {what}")
    end = moment_of(text_of(listed, "end_time"), f"end_time {what}")
    if end < start:
        raise ValueError(f"the end {what} lies before its start")
    submitted = text_of(listed, "submission_time", "")
    return AdvanceReservation(
        number=number,
        name=text_of(listed, "name", ""),
        owner=text_of(listed, "owner"),
        state=text_of(listed, "state"),
        start=start,
        end=end,
        slots_at=tuple(granted),
        users=tuple(each.get("user", "") for each in listed.iter("acl")),
        messages=tuple((each.text or "").strip() for each in listed.iter("message")),
        submitted=moment_of(submitted, f"submission_time {what}") if submitted else None,
        group=text_of(listed, "group", ""),
        account=text_of(listed, "account", ""),
        environment=text_of(listed, "granted_parallel_environment/parallel_environment", ""),
    )


def read_reservation_of_jobs(output: str) -> dict[int, int]:
    """Read `qstat -j N,N -xml`: the number of the advance reservation of each job that names one.

    Raises:
        ValueError: if it is not that command's output.
    """
    header = output.lstrip()[:200]
    if "<unknown_jobs" in header:
        return {}
    found = {}
    for listed in parse_answer(output, "detailed_job_info").findall("djob_info/element"):
        reservation = text_of(listed, "JB_ar", "0")
        if reservation != "0":
            job = number_of(text_of(listed, "JB_job_number"), "JB_job_number")
            found[job] = number_of(reservation, f"JB_ar of job {job}")
    return found


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
