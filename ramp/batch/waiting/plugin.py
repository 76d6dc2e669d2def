"""The plug-in `queue-bound`: a queue without reservations behind a Resource Agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final

from ramp.batch.machine import SNAPSHOT_AGE_S
from ramp.batch.waiting.job_queue import JobQueue
from ramp.batch.waiting.learning import QueueLearning
from ramp.batch.waiting.machine import KEEPING, QueueBoundMachine
from ramp.entry_points import entry_points_by_name
from ramp.errors import BatchSystemError, ConfigurationError, PluginError, StorageFailed
from ramp.launching.acting import Acting
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
        settings.resource,
        settings.cores,
        int(settings.cores * options.share + 1e-9),
        learning,
        settings.state_dir,
        script=_script(options.script, settings.resource),
        acting=Acting.told(settings.acting),
        snapshot_age_s=options.snapshot_age_s,
    )


def open_queue(settings: PluginSettings, options: QueueBoundOptions) -> JobQueue:
    """Return the live queue that the options name.

    Args:
        settings: of the plug-in.
        options: read from them.

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
