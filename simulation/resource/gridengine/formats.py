"""Queue and reservations as Grid Engine 8.1 prints them, as tables and as XML: `ramp.batch.gridengine` reversed.

Columns, cuts and elements are those of recorded outputs of the real commands (`tests/unit/batch/gridengine/outputs`),
which come out again letter by letter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from xml.sax.saxutils import escape

from ramp.batch.gridengine.records import AdvanceReservation, BatchJob, QueueReport
from ramp.model.instant import SECOND, Duration, Instant, to_datetime

_SCHEMAS: Final = "http://arc.liv.ac.uk/repos/darcs/sge/source/dist/util/resources/schemas"
_HEADER: Final = "<?xml version='1.0'?>"
_JOB_TITLE: Final = (
    "job-ID  prior   name       user         state submit/start at     queue                          slots ja-task-ID "
)
_QUEUE_TITLE: Final = "queuename                      qtype resv/used/tot. load_avg arch          states"
_RESERVATION_TITLE: Final = "ar-id   name       owner        state start at             end at               duration"
_PENDING: Final = (
    "",
    "#" * 76,
    " - PENDING JOBS - PENDING JOBS - PENDING JOBS - PENDING JOBS - PENDING JOBS",
    "#" * 76,
)


def job_table(report: QueueReport, requests: bool = False) -> str:
    """Return the table of `qstat`, with `requests` that of `qstat -r`; empty without jobs."""
    if not report.jobs:
        return ""
    lines = [_JOB_TITLE, "-" * len(_JOB_TITLE.rstrip())]
    for job in report.jobs:
        lines.append(f"{_job_cells(job)} {_master(job):<30.30} {job.slots:>5} {job.task:<7}")
        if requests:
            lines.extend(_request_lines(job))
    return _text(lines)


def queue_table(report: QueueReport) -> str:
    """Return the table of `qstat -f`: queue instances with their jobs, then those that wait."""
    rule = "-" * len(_QUEUE_TITLE)
    lines = [_QUEUE_TITLE]
    for instance in report.instances:
        slots = f"{instance.slots_reserved}/{instance.slots_used}/{instance.slots_total}"
        load = "-NA-" if instance.load is None else f"{instance.load:.2f}"
        architecture = instance.architecture or "-NA-"
        lines += (rule, f"{instance.name:<30.30} BIP   {slots:<14} {load:<8} {architecture:<13} {instance.states}")
        for job in report.jobs:
            at = dict(job.slots_at).get(instance.name)
            if at is not None:
                lines.append(f"{_job_cells(job)} {at:>5} {job.task:<7}")
    waiting = [job for job in report.jobs if not job.running]
    if waiting:
        lines += (*_PENDING, *(f"{_job_cells(job)} {job.slots:>5} {job.task:<7}" for job in waiting))
    else:
        lines.append("")
    return _text(lines)


def queue_document(report: QueueReport, full: bool = False, requests: bool = False) -> str:
    """Return the XML of `qstat -xml`; with `full` of `qstat -f -xml`, with `requests` of `qstat -r -xml`."""
    lines = [_HEADER, f'<job_info  xmlns:xsd="{_SCHEMAS}/qstat/qstat.xsd">', "  <queue_info>"]
    running = [job for job in report.jobs if job.running]
    if full:
        for instance in report.instances:
            lines += (
                "    <Queue-List>",
                *_elements(
                    6,
                    ("name", instance.name),
                    ("qtype", "BIP"),
                    ("slots_used", instance.slots_used),
                    ("slots_resv", instance.slots_reserved),
                    ("slots_total", instance.slots_total),
                ),
                *_elements(6, *((("load_avg", f"{instance.load:.5f}"),) if instance.load is not None else ())),
                *_elements(6, *((("arch", instance.architecture),) if instance.architecture else ())),
                *_elements(6, *((("state", instance.states),) if instance.states else ())),
            )
            for job in running:
                at = dict(job.slots_at).get(instance.name)
                if at is not None:
                    lines += _job_element(job, 6, at, None, requests)
            lines.append("    </Queue-List>")
    else:
        for job in running:
            lines += _job_element(job, 4, job.slots, _master(job), requests)
    lines += ("  </queue_info>", "  <job_info>")
    for job in report.jobs:
        if not job.running:
            lines += _job_element(job, 4, job.slots, None if full else "", requests)
    return _text((*lines, "  </job_info>", "</job_info>"))


def reservation_table(reservations: Sequence[AdvanceReservation]) -> str:
    """Return the table of `qrstat`; empty without reservations."""
    if not reservations:
        return ""
    lines = [_RESERVATION_TITLE, "-" * (len(_RESERVATION_TITLE) + 2)]
    lines.extend(
        f"{each.number:>7} {each.name:<10.10} {each.owner:<12.12} {each.state:<5.5} {_american(each.start)}  "
        f"{_american(each.end)}  {_clock(each.end - each.start)}"
        for each in reservations
    )
    return _text(lines)


def reservation_document(
    reservations: Sequence[AdvanceReservation], detailed: bool = False, unknown: Sequence[int] = ()
) -> str:
    """Return the XML of `qrstat -xml`; `detailed` as of `qrstat -ar N -xml`, which tells of unknown numbers too."""
    lines = [_HEADER, f'<qrstat xmlns:xsd="{_SCHEMAS}/qrstat/qrstat.xsd">']
    for each in reservations:
        lines.append("   <ar_summary>")
        lines += _elements(
            6,
            ("id", each.number),
            ("name", each.name),
            ("owner", each.owner),
            ("state", each.state),
            ("start_time", _iso(each.start)),
            ("end_time", _iso(each.end)),
            ("duration", _clock(each.end - each.start)),
        )
        if detailed:
            lines += _details(each)
        lines.append("   </ar_summary>")
    for number in unknown:
        lines += ("   <ar_unknown>", f"      <id>{number}</id>", "   </ar_unknown>")
    return _text((*lines, "</qrstat>"))


def reservation_text(each: AdvanceReservation) -> str:
    """Return the text of `qrstat -ar N`."""
    rows: list[tuple[str, object]] = [
        ("id", each.number),
        ("name", each.name),
        ("owner", each.owner),
        ("state", each.state),
        ("start_time", _american(each.start)),
        ("end_time", _american(each.end)),
        ("duration", _clock(each.end - each.start)),
        ("submission_time", _american(each.submitted or 0)),
        ("group", each.group),
        ("account", each.account),
        ("granted_slots_list", ",".join(f"{name}={slots}" for name, slots in each.slots_at)),
    ]
    if each.environment:
        rows.append(("granted_parallel_environment", f"{each.environment} slots {each.slots}"))
    if each.users:
        rows.append(("acl_list", ",".join(each.users)))
    return _text(("-" * 80, *(f"{name:<30} {value}" for name, value in rows)))


def _details(each: AdvanceReservation) -> Iterator[str]:
    if each.submitted is not None:
        yield from _elements(6, ("submission_time", _iso(each.submitted)))
    yield from _elements(6, ("group", each.group), ("account", each.account))
    yield "      <granted_slots_list>"
    for instance, slots in each.slots_at:
        yield f'         <granted_slots  queue_instance="{_quoted(instance)}" slots="{slots}"/>'
    yield "      </granted_slots_list>"
    if each.environment:
        yield "      <granted_parallel_environment>"
        yield from _elements(9, ("parallel_environment", each.environment), ("slots", each.slots))
        yield "      </granted_parallel_environment>"
    if each.users:
        yield "      <acl_list>"
        for user in each.users:
            yield f'         <acl  user="{_quoted(user)}"/>'
        yield "      </acl_list>"


def _job_element(job: BatchJob, indent: int, slots: int, queue: str | None, requests: bool) -> Iterator[str]:
    inner = indent + 2
    space = " " * inner
    yield f'{" " * indent}<job_list state="{"running" if job.running else "pending"}">'
    yield from _elements(
        inner,
        ("JB_job_number", job.number),
        ("JAT_prio", f"{job.priority:.5f}"),
        ("JB_name", job.name),
        ("JB_owner", job.owner),
        ("state", job.state),
        ("JAT_start_time" if job.running else "JB_submission_time", _iso(_told(job))),
    )
    if queue is not None:
        yield from _elements(inner, ("queue_name", queue))
    yield from _elements(inner, ("slots", slots))
    if job.task:
        yield from _elements(inner, ("tasks", job.task))
    if requests:
        yield from _elements(inner, ("full_job_name", job.name))
        environment = _quoted(job.environment)
        if environment:
            yield f'{space}<requested_pe name="{environment}">{escape(job.slot_range)}</requested_pe>'
        if environment and job.running:
            yield f'{space}<granted_pe name="{environment}">{job.slots}</granted_pe>'
        if job.run_limit is not None:
            limit = job.run_limit // SECOND
            yield f'{space}<hard_request name="h_rt" resource_contribution="0.000000">{limit}</hard_request>'
        yield f"{space}<binding>NONE</binding>"
    yield f"{' ' * indent}</job_list>"


def _request_lines(job: BatchJob) -> Iterator[str]:
    yield f"       Full jobname:     {job.name}"
    if job.running:
        yield f"       Master Queue:     {_master(job)}"
    if job.environment:
        yield f"       Requested PE:     {job.environment} {job.slot_range}"
    if job.environment and job.running:
        yield f"       Granted PE:       {job.environment} {job.slots}"
    limit = "" if job.run_limit is None else f"h_rt={job.run_limit // SECOND} (0.000000)"
    yield f"       Hard Resources:   {limit}"
    yield "       Soft Resources:   "
    yield "       Binding:          NONE"


def _job_cells(job: BatchJob) -> str:
    return (
        f"{job.number:>7} {job.priority:.5f} {job.name:<10.10} {job.owner:<12.12} {job.state:<5.5} "
        f"{_american(_told(job))}"
    )


def _master(job: BatchJob) -> str:
    return job.slots_at[0][0] if job.slots_at else ""


def _told(job: BatchJob) -> Instant:
    """Return the one moment shown of a job: when it began, or was submitted."""
    return (job.started if job.running else job.submitted) or 0


def _elements(indent: int, *pairs: tuple[str, object]) -> Iterator[str]:
    for name, value in pairs:
        yield f"{' ' * indent}<{name}>{escape(str(value))}</{name}>"


def _quoted(text: str) -> str:
    return escape(text, {'"': "&quot;"})


def _iso(instant: Instant) -> str:
    return f"{to_datetime(instant):%Y-%m-%dT%H:%M:%S}"


def _american(instant: Instant) -> str:
    return f"{to_datetime(instant):%m/%d/%Y %H:%M:%S}"


def _clock(duration: Duration) -> str:
    minutes, second = divmod(duration // SECOND, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{second:02}"


def _text(lines: Iterable[str]) -> str:
    return "\n".join((*lines, ""))
