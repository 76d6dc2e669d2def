"""PSI/J executor for Grid Engine 8.1: qsub, qstat, qdel and qacct, with advance reservations."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

from psij import InvalidJobException, Job, JobExecutorConfig, JobState, JobStatus, SubmitException
from psij.executors.batch.batch_scheduler_executor import (
    BatchSchedulerExecutor,
    BatchSchedulerExecutorConfig,
    InvalidJobStateError,
    check_status_exit_code,
)

from ramp_psij_gridengine.submit_script import SubmitScript

ACCOUNTING_S = 10.0
"""Seconds that qacct may take to say why a job ended; it reads all that ever ran."""

PARALLEL_ENVIRONMENT = "mpi"
"""Name of the parallel environment where the configuration names none."""

_PREFIX = "gridengine."
_LISTED = re.compile(r"<(JB_job_number|state)>\s*(\w+)\s*</\1>")
_FAILED = re.compile(r"^failed\s+\d+\s*:?\s*(.*\S)\s*$", re.MULTILINE)


class GridEngineExecutorConfig(BatchSchedulerExecutorConfig):
    """How the executor asks Grid Engine.

    Args:
        parallel_environment: of which slots are taken for jobs of several processes, or in a reservation.
        **others: as of PSI/J's `BatchSchedulerExecutorConfig`; polled every two seconds if not said otherwise.
    """

    def __init__(self, parallel_environment: str = PARALLEL_ENVIRONMENT, **others: Any) -> None:
        super().__init__(**{"queue_polling_interval": 2, "initial_queue_polling_delay": 1, **others})
        self.parallel_environment = parallel_environment


class GridEngineJobExecutor(BatchSchedulerExecutor):
    """Runs jobs on Grid Engine; get it by `psij.JobExecutor.get_instance("gridengine", config=...)`."""

    _NAME_ = "gridengine"

    def __init__(self, url: str | None = None, config: JobExecutorConfig | None = None) -> None:
        super().__init__(config=config or GridEngineExecutorConfig())
        self._deleted: set[str] = set()

    # -- submitting ----------------------------------------------------------------------------------------------

    def generate_submit_script(self, job: Job, context: dict[str, Any], submit_file: IO[str]) -> None:
        """Write the script that qsub is given."""
        try:
            submit_file.write(self._script(job, context).text())
        except ValueError as error:
            raise InvalidJobException(str(error)) from error

    def _script(self, job: Job, context: dict[str, Any]) -> SubmitScript:
        spec = job.spec
        assert spec is not None
        # PSI/J loads this module by its place, so the class of a configuration may be that of another copy of it
        parallel = str(getattr(self.config, "parallel_environment", PARALLEL_ENVIRONMENT))
        attributes = spec.attributes
        custom = dict(attributes.custom_attributes or {}) if attributes else {}
        options = {key[len(_PREFIX) :]: str(value) for key, value in custom.items() if key.startswith(_PREFIX)}
        slots = int(spec.resources.computed_process_count) if spec.resources else 1
        reservation = (attributes.reservation_id or "") if attributes else ""
        environment = options.pop("pe", parallel if slots > 1 or reservation else "")
        duration = attributes.duration if attributes else None
        return SubmitScript(
            folder=context["psij"]["script_dir"],
            launch=[str(word) for word in context["psij"]["launch_command"]],
            name=spec.name or job.id,
            directory=str(spec.directory or ""),
            environment={name: str(value) for name, value in (spec.environment or {}).items()},
            inherit=bool(spec.inherit_environment),
            slots=slots,
            parallel_environment=environment,
            seconds=None if duration is None else max(1, int(duration.total_seconds())),
            queue=(attributes.queue_name or "") if attributes else "",
            reservation=reservation,
            options=options,
        )

    def get_submit_command(self, job: Job, submit_file_path: Path) -> list[str]:
        """How the script is submitted."""
        return ["qsub", "-terse", str(submit_file_path.absolute())]

    def job_id_from_submit_output(self, out: str) -> str:
        """The job's number, which stands in the last line."""
        found = re.search(r"^(\d+)\s*$", out, re.MULTILINE)
        if found is None:
            raise SubmitException(f"qsub gave no number: {out[:200]!r}")
        return found[1]

    # -- cancelling ----------------------------------------------------------------------------------------------

    def get_cancel_command(self, native_id: str) -> list[str]:
        """How a job is deleted; from now on its end is its cancellation."""
        self._deleted.add(native_id)
        return ["qdel", native_id]

    def process_cancel_command_output(self, exit_code: int, out: str) -> None:
        """What it means that qdel has failed."""
        if "does not exist" in out:
            raise InvalidJobStateError
        raise SubmitException(f"qdel ended with {exit_code}: {out}")

    # -- following -----------------------------------------------------------------------------------------------

    def get_status_command(self, native_ids: Collection[str]) -> list[str]:
        """How all jobs of this user are listed; those that have ended are not."""
        return ["qstat", "-xml"]

    def parse_status_output(self, exit_code: int, out: str) -> dict[str, JobStatus]:
        """The states of listed jobs."""
        check_status_exit_code("qstat", exit_code, out)
        return {number: _status(state) for number, state in _listed(out)}

    def get_list_command(self) -> list[str]:
        """How all jobs of this user are listed."""
        return ["qstat", "-xml"]

    def parse_list_output(self, out: str) -> list[str]:
        """Numbers of the jobs that are listed."""
        return [number for number, _ in _listed(out)]

    def _set_job_status(self, job: Job, status: JobStatus) -> None:
        """Tell apart what the base class takes for completed: a job that is listed no more."""
        number = job.native_id
        if status.state is JobState.COMPLETED and number and not (self.work_directory / f"{number}.ec").exists():
            if number in self._deleted:
                status = JobStatus(JobState.CANCELED)
            else:
                status = JobStatus(JobState.FAILED, message=f"it left no exit code: {_why_killed(number)}")
        super()._set_job_status(job, status)


def _listed(out: str) -> list[tuple[str, str]]:
    """Number and state of every job in `qstat -xml`; no job can be called like an element, for `<` is escaped there."""
    found: list[tuple[str, str]] = []
    number = ""
    for element, value in _LISTED.findall(out):
        if element == "JB_job_number":
            number = value
        elif number:
            found.append((number, value))
            number = ""
    return found


def _status(state: str) -> JobStatus:
    if "E" in state:
        return JobStatus(
            JobState.FAILED, message=f"Grid Engine could not start it (state {state}); see qstat -explain E"
        )
    waits = "q" in state or "w" in state
    return JobStatus(JobState.QUEUED if waits else JobState.ACTIVE)


def _why_killed(number: str) -> str:
    """What the accounting says of a job's failure, where it is there already."""
    try:
        done = subprocess.run(
            ["qacct", "-j", number], capture_output=True, text=True, timeout=ACCOUNTING_S, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return "killed by Grid Engine"
    found = _FAILED.search(done.stdout)
    return f"killed by Grid Engine ({found[1]})" if found else "killed by Grid Engine"
