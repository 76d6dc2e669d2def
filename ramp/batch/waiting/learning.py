"""Learn from pictures of a queue: the plan of its waiting jobs, and their real waits.

Every picture is planned anew, and the predictor (`ramp.queue_bound`) learns of jobs that joined, started or left since
the last. Waits are kept in a file, one a line, with which a restart begins.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Final

from ramp.batch.system import FOREVER, RunningJob, SystemSnapshot, WaitingJob
from ramp.model.instant import Duration, Instant
from ramp.queue_bound.predictor import Predictor, QueuedJob
from ramp.queue_bound.queue_plan import QueuePlan, fastest_planner
from ramp.runtime.storage_errors import storing

WAITS_KEPT: Final = 5_000
"""Waits that a restart begins with; predictors keep a thousand of a group."""

_log: Final = logging.getLogger(__name__)


class QueueLearning:
    """The present plan of one queue, and a predictor that learns from it.

    Args:
        path: file of the waits learnt; None keeps them in memory.

    Raises:
        StorageFailed: the file cannot be read or written.
    """

    def __init__(self, predictor: Predictor, path: Path | None) -> None:
        self.waits = 0
        self._predictor = predictor
        self._path = path
        self._planner = fastest_planner()
        # compiles the planner now, instead of during the first quote
        QueuePlan(1, self._planner).earliest(QueuedJob("", 1, 1), 0)
        self._plan: QueuePlan | None = None
        self._waiting: dict[str, tuple[QueuedJob, Instant, int | None]] = {}
        """Jobs that were seen to wait, with when they were seen first, and the bound of their wait then."""
        self._seen: set[str] = set()
        """Jobs of the last picture."""
        self._begun = False
        if path is not None:
            self._recall(path)

    def look(self, picture: SystemSnapshot, now: Instant) -> None:
        """Learn from a picture of the queue, whose waiting jobs are in the order of their turns, taken at `now`."""
        capacity = max(sum(node.cores for node in picture.nodes if node.usable), 1)
        plan = self._plan = QueuePlan(capacity, self._planner)
        for job in picture.running:
            plan.runs(min(job.cores, capacity), _expected_end(job, now))
        planned = {}
        waiting = [job for job in picture.waiting if not job.held and not job.reservation]
        for waits in waiting:
            shape = QueuedJob("", min(max(waits.cores, 1), capacity), max(waits.time_limit or FOREVER, 1))
            planned[waits.job_id] = plan.submit(shape, now) - now
        self._learn(picture, waiting, planned, now)

    def chance(self, cores: int, length: Duration, begin: Instant, latest: Instant, now: Instant) -> float | None:
        """Return the probability that a job that joins the queue now starts in time; None if too little is known.

        Args:
            cores: of the job.
            length: microseconds that it may run.
            begin: earliest begin.
            latest: latest start.
            now: the present.
        """
        plan = self._plan
        assert plan is not None, "the queue is looked at first"
        shape = QueuedJob("", min(cores, plan.capacity), max(length, 1))
        begin = max(begin, now)
        wait = max(plan.earliest(shape, now) - begin, 0)
        return self._predictor.chance(QueuedJob("", cores, length, wait), max(latest - begin, 0))

    def _learn(
        self, picture: SystemSnapshot, waiting: list[WaitingJob], planned: dict[str, Duration], now: Instant
    ) -> None:
        running = {job.job_id: job for job in picture.running}
        for job_id in [each for each in self._waiting if each not in planned]:
            joined, since, bound = self._waiting.pop(job_id)
            if job_id in running:
                self._started(joined, max(running[job_id].start - since, 0), bound)
        if self._begun:  # jobs that ran before the first picture were not seen waiting
            for job_id, job in running.items():
                if job_id not in self._seen and not job.reservation and job.submitted is not None:
                    # it joined and started between two pictures, and so was never planned
                    joined = QueuedJob("", max(job.cores, 1), max(_end_of(job) - job.start, 1), 0)
                    self._started(joined, max(job.start - job.submitted, 0), self._predictor.bound(joined))
        for waits in waiting:
            if waits.job_id not in self._waiting:
                joined = QueuedJob("", max(waits.cores, 1), max(waits.time_limit or FOREVER, 1), planned[waits.job_id])
                self._waiting[waits.job_id] = joined, now, self._predictor.bound(joined)
        self._seen, self._begun = {*running, *(job.job_id for job in picture.waiting)}, True

    def _started(self, job: QueuedJob, wait: Duration, bound: int | None) -> None:
        """Learn a wait, and keep it in the file."""
        self._predictor.started(job, wait, bound)
        self.waits += 1
        if self._path is not None:
            with storing(self._path), self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([job.size, job.length, job.planned, wait]) + "\n")

    def _recall(self, path: Path) -> None:
        """Learn again from the file; invalid lines are ignored."""
        with storing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = path.read_text("utf-8", errors="replace").splitlines() if path.exists() else []
            if len(lines) > 2 * WAITS_KEPT:
                path.write_text("\n".join(lines[-WAITS_KEPT:]) + "\n", "utf-8")
        bad = 0
        for line in lines[-WAITS_KEPT:]:
            try:
                size, length, planned, wait = (int(value) for value in json.loads(line))
            except (ValueError, TypeError, OverflowError):
                size = length = planned = wait = -1
            if min(size, length) < 1 or min(planned, wait) < 0:
                bad += 1
                continue
            job = QueuedJob("", size, length, planned)
            self._predictor.started(job, wait, self._predictor.bound(job))
            self.waits += 1
        if bad:
            _log.warning("%s: skipped %d invalid lines", path, bad)


def _expected_end(job: RunningJob, now: Instant) -> Instant:
    """Return the end of a job's time limit; a job that runs on is given twice the time, repeatedly."""
    length = max(_end_of(job) - job.start, 1)
    while job.start + length <= now:
        length *= 2
    return job.start + length


def _end_of(job: RunningJob) -> Instant:
    return job.start + FOREVER if job.end is None else job.end
