"""The plug-in `queue-bound`: a queue without reservations behind a Resource Agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final

from ramp.batch.book import Entry
from ramp.batch.inspecting import Comparing, Promise, Remark, of_book
from ramp.batch.machine import SNAPSHOT_AGE_S
from ramp.batch.reconciling import own_prefix
from ramp.batch.waiting.job_queue import CommandQueue, JobQueue, OwnJob, Standing
from ramp.batch.waiting.learning import QueueLearning
from ramp.batch.waiting.machine import KEEPING, QueueBoundMachine
from ramp.entry_points import entry_points_by_name
from ramp.errors import BatchSystemError, ConfigurationError, PluginError, StorageFailed
from ramp.model.instant import Instant, iso
from ramp.options import Bounds, read_options, takes
from ramp.plugins.interface import PluginSettings
from ramp.queue_bound.predictor import PREDICTORS
from ramp.runtime.configuration.values import QUEUE_BOUND

NAME: Final = QUEUE_BOUND

QUEUES_GROUP: Final = "ramp.job_queues"
"""Entry points: callables `(PluginSettings) -> JobQueue`, whose options are those of the table `queue`."""


@dataclass(frozen=True, slots=True)
class QueueBoundOptions:
    """Configuration of a queue whose starts are sold.

    Attributes:
        system: the kind of queue: `slurm`, `gridengine`, `log`, `simulated`, or an entry point of `ramp.job_queues`.
        queue: the system's own options, such as the partition.
        predictor: of waits (`ramp plugins list predictor`).
        predictor_options: the predictor's own options.
        share: greatest share of the cores that jobs of the market may want together, 0 to 1.
        script: path of each job's script, `{seconds}` in it standing for the time bought; empty: it sleeps. At
            sites that launch jobs, jobs run their buyers' orders instead.
        snapshot_age_s: seconds for which one picture of the queue serves all buyers.
    """

    system: str
    queue: Mapping[str, Any] = field(default_factory=dict)
    predictor: str = "planned"
    predictor_options: Mapping[str, Any] = field(default_factory=dict)
    share: Annotated[float, Bounds(0, 1)] = 1.0
    script: str = ""
    snapshot_age_s: Annotated[float, Bounds(0, 60)] = SNAPSHOT_AGE_S


@takes(QueueBoundOptions)
def open_plugin(settings: PluginSettings) -> QueueBoundMachine:
    """Open the queue of the options (entry point `queue-bound` of the group `ramp.resource_plugins`).

    Raises:
        ConfigurationError: an option is wrong, or the queue contradicts the configuration.
        PluginError: the queue cannot be asked now, or a file cannot be read.
    """
    options = read_options(settings.options, QueueBoundOptions, within=settings.resource)
    within = f"{settings.resource}.predictor_options"
    predictor = PREDICTORS.find(options.predictor).new(options.predictor_options, within=within)
    try:
        queue = open_queue(settings, options)
        waits = None if settings.state_dir is None else settings.state_dir / f"{settings.resource}.waits.jsonl"
        learning = QueueLearning(predictor, waits)
    except (BatchSystemError, StorageFailed) as error:
        raise PluginError(NAME, error.reason, transient=True) from error
    return QueueBoundMachine(
        queue,
        settings,
        int(settings.cores * options.share + 1e-9),
        learning,
        script=_script(options.script, settings.resource),
        snapshot_age_s=options.snapshot_age_s,
    )


def open_queue(settings: PluginSettings, options: QueueBoundOptions) -> JobQueue:
    """Return the live queue that the options name.

    Raises:
        ConfigurationError: the kind of queue is unknown, one of its options is wrong, or it is not as configured.
        BatchSystemError: it cannot be asked now.
    """
    own = replace(settings, resource=f"{settings.resource}.queue", options=options.queue)
    found = entry_points_by_name(QUEUES_GROUP)
    if options.system not in found:
        wrong = f"got {options.system!r}, expected one of {', '.join(sorted(found))}"
        raise ConfigurationError(wrong, key=f"{settings.resource}.system")
    queue: JobQueue = found[options.system].load()(own)
    return queue


def _script(path: str, resource: str) -> str:
    if not path:
        return KEEPING
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}", key=f"{resource}.script") from error
    if not text.startswith("#!"):
        raise ConfigurationError(f"{path} does not begin with #!", key=f"{resource}.script")
    return text


# -- `ramp doctor`: do queue, book and journal know the same jobs? ---------------------------------------------------


def inspect(settings: PluginSettings, _: Instant) -> tuple[Sequence[Remark], Callable[[], Comparing] | None]:
    """See `ramp.batch.inspecting.Inspection`; a queue within its agent, such as a simulated one, has no system."""
    resource = settings.resource
    queue = open_queue(settings, read_options(settings.options, QueueBoundOptions, within=resource))

    if not isinstance(queue, CommandQueue):
        return (), None

    def read() -> Comparing:
        there = queue.own(own_prefix(resource))
        return lambda entries, promises, now: disagreements(resource, entries, promises, there, queue.name, now)

    return (), read


def disagreements(
    resource: str,
    entries: Sequence[Entry],
    promises: Sequence[Promise],
    there: Sequence[tuple[str, OwnJob]],
    queue: str,
    now: Instant,
) -> tuple[Remark, ...]:
    """Return a remark for each difference between journal, book and queue.

    A started job may end at any time, so one that the book has seen start is not missed.
    """
    live = {each.name: each for each in entries if each.live(now)}
    known = {each.name for each in entries}
    found: dict[str, list[OwnJob]] = {}
    for name, job in there:
        if job.standing is not Standing.GONE:
            found.setdefault(name, []).append(job)
    remarks: list[Remark] = []

    def differs(says: str, do: str) -> None:
        remarks.append(Remark("jobs", resource, says, do))

    for name, jobs in found.items():
        ids = ", ".join(job.job_id for job in jobs if not job.ended)
        if ids and name not in live:
            why = "its hold or agreement is over" if name in known else "no agreement covers it"
            do = (
                "the resource's next hold deletes it"
                if name in known
                else "no agent tracks it: delete it by its number"
            )
            differs(f"{queue} has the job {name} ({ids}), and {why}", do)
    for name, entry in live.items():
        if entry.made and entry.started is None:
            says, do = _wrong(entry, found.get(name, ()))
            if says:
                kind = "sold" if entry.firm else "held"
                differs(f"{name} is {kind}, its latest start {iso(entry.slot.start)}, and {queue} {says}", do)
    do = "restore the book from a backup: the agent no longer tracks this job"
    return (*remarks, *of_book(resource, list(live.values()), promises, now, do))


def _wrong(entry: Entry, jobs: Sequence[OwnJob]) -> tuple[str, str]:
    job = next((each for each in jobs if each.job_id == entry.reservation_id), None)
    if job is None:
        back = "it costs nothing: the agent gives it up within a minute and frees the money"
        return f"does not know its job {entry.reservation_id}", back
    if entry.firm and job.standing is Standing.HELD:
        do = "the agent releases it within a minute; check again then"
        return f"still holds its job {job.job_id}", do
    if not entry.firm and job.standing is not Standing.HELD:
        do = "it was not bought: hold it again, or let its hold expire, and the agent deletes it"
        return f"has released its job {job.job_id}", do
    return "", ""
