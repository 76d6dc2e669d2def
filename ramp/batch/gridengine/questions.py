"""Questions to Grid Engine: the command line of each, and its parser, without side effects.

Argument lists follow the manual pages of Grid Engine 8.1. Times are UTC, because commands run with `TZ=UTC`. Orders
(make, change, delete) are not questions: the caller reads their output, because exit codes tell too little.

Another program writes the answers, about jobs with names that any user may choose. Every value is checked, and an
invalid value raises an error that names it.

The XML is often invalid. qrstat(1) does not escape account names (`x<&"y`), qstat(1) writes `%lt;` for `<`, and both
print bytes that are not characters. Tasks of jobs that qmaster found at its start are elements called
`<JATASK:       1.>`. But each element with text has a line of its own, so the text between its tags is escaped before
parsing, and no name of a job can open an element. The safe parser then refuses document types and entities, and limits
size and depth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from ramp.batch.commands import Question, Runner, ask
from ramp.batch.gridengine.records import AdvanceReservation, BatchJob, QueueInstance, QueueReport
from ramp.errors import DocumentError
from ramp.model.instant import Duration, Instant, from_iso, to_datetime
from ramp.rfql.xml.parser import Element, parse_wire

OUTPUT_BYTES_MAX: Final = 64_000_000
"""Longest answer that is read: some 80 000 jobs."""

_LEAF: Final = re.compile(r"^(\s*<([A-Za-z_][\w.-]*)(?: [^<>]*)?>)(.*)(</\2>\s*)$")
_LONE_AMPERSAND: Final = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)")
_NO_CHARACTER: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TASK: Final = re.compile(r"^(\s*</?JATASK):[^<>]*>\s*$")
_HEADER: Final = re.compile(r"^\s*<\?xml[^>]*\?>")
_NUMBER_MAX: Final = 10**9
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


# -- XML and its values ----------------------------------------------------------------------------------------------


def parse_answer(output: str, root: str) -> Element:
    """Read the XML of a command.

    Raises:
        ValueError: if it is no XML even with its texts mended, is too long or too deep, or has another root.
    """
    mended = "\n".join(_mended(line) for line in _HEADER.sub("", output).splitlines())
    try:
        element = parse_wire(mended, limit=OUTPUT_BYTES_MAX)
    except DocumentError as error:
        raise ValueError(error.reason) from error
    if element.tag != root:
        raise ValueError(f"wrong outermost element: got {element.tag!r:.60}, expected {root!r}")
    return element


def _mended(line: str) -> str:
    """Escape the text between the tags of one line."""
    line = _NO_CHARACTER.sub("\ufffd", line)
    leaf = _LEAF.match(line)
    if leaf is None:
        return _TASK.sub(r"\1>", line)
    begin, _, text, end = leaf.groups()
    text = _LONE_AMPERSAND.sub("&amp;", text.replace("%lt;", "&lt;").replace("%gt;", "&gt;"))
    return f"{begin}{text.replace('<', '&lt;').replace('>', '&gt;')}{end}"


def text_of(element: Element, name: str, default: str | None = None) -> str:
    """The text of a child; `ValueError` if there is no such child and no default."""
    found = element.findtext(name)
    if found is None:
        if default is None:
            raise ValueError(f"element {element.tag!r} has no {name!r}")
        return default
    return found.strip()


def number_of(text: str, what: str) -> int:
    """Read a whole number from 0 on; `ValueError` if it is no whole number, or above the maximum."""
    if not text.isascii() or not text.isdigit() or len(text) > 12 or int(text) > _NUMBER_MAX:
        raise ValueError(f"invalid {what}: got {text!r:.60}, expected a whole number up to {_NUMBER_MAX}")
    return int(text)


def load_of(text: str) -> float | None:
    """Read a load average; None if it is unknown or no number from 0 on."""
    try:
        load = float(text)
    except ValueError:
        return None
    return load if 0 <= load < 1e9 else None


def moment_of(text: str, what: str) -> Instant:
    """Read a date and time without a zone as UTC, in which the commands run.

    Raises:
        ValueError: if the text is no date and time.
    """
    try:
        return from_iso(text)
    except ValueError as error:
        raise ValueError(f"invalid {what}: got {text!r:.60}, expected a time such as 2026-11-21T23:23:23") from error


def limit_of(text: str) -> Duration | None:
    """Read a time limit given as seconds or `h:m:s`; None for INFINITY and other text."""
    parts = text.strip().split(":")
    if not 1 <= len(parts) <= 3 or not all(re.fullmatch(r"[0-9]{0,9}(\.0+)?", part) for part in parts):
        return None
    total = 0
    for part in parts:
        total = total * 60 + int(part.partition(".")[0] or 0)
    return total * 1_000_000 or None


# -- questions -------------------------------------------------------------------------------------------------------

ANSWER_S: Final = 4.0
"""Time limit of a question; with qmaster well each takes a tenth of a second, and a guest has 5 s for all quotes."""

ORDER_S: Final = 8.0
"""Time limit of an order; a guest has 30 s for a hold, which is two or three of them."""


_ABSENT: Final = ("does not exist", "is not a parallel environment", "matches the phrase", "list defined")

Answer = TypeVar("Answer")


def ask_of_some(question: Question[Answer], run: Runner) -> Answer:
    """Ask about things that may not exist: qconf then prints the others and ends with exit code 1, as after a failure.

    Raises:
        BatchSystemError: see `ramp.batch.commands.ask`; also if it failed for another reason.
    """
    done = run(question.argv, question.stdin, question.time_limit_s)
    absent = done.code == 1 and any(words in done.stdout + done.stderr for words in _ABSENT)
    return ask(question, lambda *_: replace(done, code=0) if absent else done)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


QUEUES: Final = Question(("qstat", "-f", "-r", "-xml", "-u", "*"), read_queues, time_limit_s=ANSWER_S)
"""All queue instances and jobs, with the resources that these requested."""

RESERVATIONS: Final = Question(("qrstat", "-xml", "-u", "*"), read_reservations, time_limit_s=ANSWER_S)
"""All advance reservations, without their slots and users."""

USERSET_NAMES: Final = Question(("qconf", "-sul"), _words, time_limit_s=ANSWER_S)
MANAGERS: Final = Question(("qconf", "-sm"), _words, time_limit_s=ANSWER_S)
OPERATORS: Final = Question(("qconf", "-so"), _words, time_limit_s=ANSWER_S)
SCHEDULER: Final = Question(("qconf", "-ssconf"), read_settings, time_limit_s=ANSWER_S)
"""The scheduler's configuration, sched_conf(5)."""


def full_reservations(numbers: Sequence[int]) -> Question[tuple[AdvanceReservation, ...]]:
    """Ask for some advance reservations in full; those that are gone are left out."""
    argv = ("qrstat", "-ar", ",".join(map(str, numbers)), "-xml")
    return Question(argv, read_reservations, time_limit_s=ANSWER_S)


def reservations_of_jobs(jobs: Sequence[int]) -> Question[dict[int, int]]:
    """Ask for the number of the advance reservation that each job names."""
    argv = ("qstat", "-j", ",".join(map(str, jobs)), "-xml")
    return Question(argv, read_reservation_of_jobs, time_limit_s=ANSWER_S)


def usersets(names: Sequence[str]) -> Question[dict[str, tuple[str, ...]]]:
    """Ask for the members of usersets; unknown usersets are left out."""
    return Question(("qconf", "-su", ",".join(names)), read_usersets, time_limit_s=ANSWER_S)


def settings(kind: str, name: str) -> Question[dict[str, str]]:
    """Ask for a parallel environment (`-sp`, sge_pe(5)) or cluster queue (`-sq`, queue_conf(5)); empty without it."""
    return Question(("qconf", kind, name), read_settings, time_limit_s=ANSWER_S)


def reserving(
    environment: str, slots: int, instances: Sequence[str], start: Instant | None, end: Instant
) -> tuple[str, ...]:
    """Return the arguments of `qrsub` that verifying and making have in common.

    Args:
        environment: parallel environment.
        slots: slots in all.
        instances: queue instances that provide them.
        start: None for at once.
        end: end of the reservation.
    """
    begin = () if start is None else ("-a", moment(start))
    return ("qrsub", *begin, "-e", moment(end), "-pe", environment, str(slots), "-q", ",".join(instances))


def moment(instant: Instant) -> str:
    """Return a time as Grid Engine's commands take it."""
    return f"{to_datetime(instant):%Y%m%d%H%M.%S}"
