"""A launcher in virtual time: jobs that start, run and end as their fates say, also without their agent.

It keeps jobs as the keepers of a site do: what has not started by its latest start never starts.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass

from ramp.model.contents.jobs import JobState
from ramp.model.instant import SECOND, Duration, Instant
from ramp.protocol import effects as fx
from ramp.protocol import events as ev


@dataclass(slots=True)
class JobFate:
    """The fate of a job.

    Attributes:
        starts_after: delay after its earliest start; None: never.
        runs: its run time.
        exit_code: of its command.
        refused: whether its account cannot run it.
        lost: whether the launcher loses it after accepting it.
        doubts: number of questions that are answered in doubt first.
        silences: number of questions after those that are never answered.
    """

    starts_after: Duration | None = SECOND
    runs: Duration = 60 * SECOND
    exit_code: int = 0
    refused: bool = False
    lost: bool = False
    doubts: int = 0
    silences: int = 0


@dataclass(slots=True)
class _Launched:
    job: fx.JobToRun
    starts_at: Instant | None
    ends_at: Instant | None
    cancelled_at: Instant | None = None


class VirtualLauncher:
    """A guest of a simulated resource; `fate` returns a job's fate, the same object for the same job.

    `launches` says how often the batch system started each job; more than once is a fault.
    """

    def __init__(self, fate: Callable[[fx.JobToRun], JobFate]) -> None:
        self._fate = fate
        self._jobs: dict[str, _Launched] = {}
        self.launches: dict[str, int] = {}

    def ask(self, question: fx.AskLauncher, now: Instant) -> ev.Answer | None:
        job = question.job
        fate = self._fate(job)
        if fate.doubts:
            fate.doubts -= 1
            return self._in_doubt(question)
        if fate.silences:
            fate.silences -= 1
            return None
        match question:
            case fx.SubmitJob():
                self._submit(job, fate, now)
            case fx.CancelJob():
                launched = self._jobs.get(job.job_id)
                if launched is not None and launched.cancelled_at is None:
                    launched.cancelled_at = now
            case fx.ReadJobFile(call_id, _, name):
                if job.job_id not in self._jobs:
                    return ev.JobFileRead(call_id, None, code="no_file", detail=f"no file {name}")
                data = base64.b64encode(b"done\n").decode("ascii")
                return ev.JobFileRead(call_id, data, 5, True)
            case fx.StageJobInput(call_id, _, offset, data):
                return ev.JobFileRead(call_id, "", offset + len(base64.b64decode(data)))
            case _:
                pass
        if fate.refused:
            failed = ev.JobSight(JobState.FAILED, "v", job.cores, now, now, 125, "the account cannot run it")
            return ev.JobSeen(job.job_id, failed)
        return ev.JobSeen(job.job_id, None if fate.lost else self._sight(job.job_id, fate, now))

    def _in_doubt(self, question: fx.AskLauncher) -> ev.Answer:
        if isinstance(question, fx.ReadJobFile | fx.StageJobInput):
            return ev.JobFileRead(question.call_id, None, code="in_doubt", detail="the launcher does not answer")
        return ev.JobSeen(question.job.job_id, ev.MachineInDoubt("the launcher does not answer"))

    def _submit(self, job: fx.JobToRun, fate: JobFate, now: Instant) -> None:
        if job.job_id in self._jobs or fate.refused:
            return
        starts = None if fate.starts_after is None else max(job.begin_at, now) + fate.starts_after
        starts = None if starts is None or starts >= job.start_by else starts
        self._jobs[job.job_id] = _Launched(job, starts, None if starts is None else min(starts + fate.runs, job.end_at))
        self.launches[job.job_id] = self.launches.get(job.job_id, 0) + 1

    def _sight(self, job_id: str, fate: JobFate, now: Instant) -> ev.JobSight | None:
        launched = self._jobs.get(job_id)
        if launched is None:
            return None
        job, ended = launched.job, launched.ends_at
        started = launched.starts_at if launched.starts_at is not None and launched.starts_at <= now else None
        over = ended is not None and ended <= now
        if launched.cancelled_at is not None and (ended is None or launched.cancelled_at < ended):
            seen = started if started is not None and started <= launched.cancelled_at else None
            return ev.JobSight(JobState.CANCELLED, "v", 0, seen, launched.cancelled_at)
        if started is None and launched.starts_at is None and now >= job.start_by:
            return ev.JobSight(JobState.FAILED, "v", detail="the site could not start it")
        if started is None:
            return ev.JobSight(JobState.QUEUED, "v")
        if not over:
            return ev.JobSight(JobState.RUNNING, "v", job.cores, started)
        state = JobState.FAILED if fate.exit_code else JobState.DONE
        return ev.JobSight(state, "v", job.cores, started, ended, fate.exit_code)
