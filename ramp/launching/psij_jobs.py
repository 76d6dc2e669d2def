"""Jobs of one account on a batch system, through PSI/J: submitted into reservations, looked up and ended.

This is a separate program because the versions that PSI/J and SPADE require exclude one another. The worker runs it as
the buyer's local account, with the interpreter that has psij-python 0.9.11. It reads one question as JSON from standard
input, prints one answer and keeps no state. The queue knows a job by name. So a job whose number was not recorded,
because a process was killed, is found again and not submitted twice.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import re
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, Final

COMMAND_LIMIT_S: Final = 10
"""Timeout of a command of a batch system in seconds: Slurm's own; Grid Engine's commands have none."""

HANDED_OVER_S: Final = 10.0
"""Seconds to retry with a reservation that the buyer's account cannot use yet."""

JOB_PREFIX: Final = "ramp_"
"""Prefix of a job's name in a batch system; the name of its folder follows."""

NOT_YET: Final = re.compile("Access denied to requested reservation|no suitable queues")
"""Refusal of an account that may not use a reservation yet: the handover follows the payment, at about that time."""

_NO_MEMORY_SETTING: Final = ("DefMemPerNode", "MaxMemPerNode")
"""Settings that Slurm shows as unlimited if a site sets no default and no limit for the memory of a job."""

DOUBT: Final = re.compile(
    "Unable to contact|timed out|Unexpected message|Zero Bytes|temporarily|unable to (send|receive|contact)|commlib",
    re.IGNORECASE,
)
"""Complaints after which a job may or may not have been submitted; it is looked up by name."""

GONE: Final = re.compile("does not exist|Invalid job id")
"""Refusal to end a job that has ended."""

ONE_NODE: Final = re.compile(r"^#SBATCH --(nodes|ntasks|ntasks-per-node)=1\n", re.MULTILINE)
"""Lines of PSI/J for a job without resources; our own options have quotation marks there."""

POLLING: Final = {"queue_polling_interval": 2, "initial_queue_polling_delay": 1}
"""Polling intervals of PSI/J in seconds; the default is half a minute."""


def main() -> int:
    """Answer one question."""
    question = json.load(sys.stdin)
    folder, system = Path(question["folder"]), SYSTEMS[question["system"]]()
    answer: dict[str, Any]
    try:
        with contextlib.redirect_stdout(sys.stderr):  # for the output of PSI/J
            if question["verb"] == "submit":
                answer = {"refused": system.submit(folder, question["job"])}
            elif question["verb"] == "end":
                system.end(folder)
                answer = {}
            else:
                alive, detail, native = system.lives(folder)
                answer = {"alive": alive, "detail": detail, "native": native}
    except ImportError as error:
        answer = {"error": f"{sys.executable} has no PSI/J: {error}"}
    except (OSError, ValueError) as error:
        answer = {"error": " ".join(str(error).split())}
    print(json.dumps(answer))
    return 0


class BatchSystem(ABC):
    """A batch system through PSI/J; subclasses add what PSI/J lacks for each."""

    NAME = ""
    LIMITED = True
    """Whether a job states a time limit: the end of its slot."""

    @abstractmethod
    def executor(self, folder: Path) -> Any:
        """Return PSI/J's executor, which writes into the job's folder."""

    @abstractmethod
    def asked(self, job: dict[str, Any], name: str) -> tuple[dict[str, str], Any]:
        """Return the request as options of the system and as PSI/J's resources."""

    @abstractmethod
    def numbers(self) -> dict[str, str]:
        """Return the numbers of this account's jobs by name."""

    def submit(self, folder: Path, job: dict[str, Any]) -> str:
        """Submit the job's script unless it was submitted; return why it is refused, empty if it is not.

        Raises:
            OSError: the submission is impossible now, or its result is unknown.
        """
        if self.lives(folder)[0] is not None:
            return ""
        import psij

        options, resources = self.asked(job, name_of(folder))
        left = int(job["end_at"]) // 1_000_000 - max(int(job["begin_at"]) // 1_000_000, int(time.time()))
        attributes = psij.JobAttributes(reservation_id=str(job["reservation_id"]), custom_attributes=options)
        attributes.duration = timedelta(seconds=max(1, left)) if self.LIMITED else None
        spec = psij.JobSpec(str(folder / "run"), directory=folder, name=name_of(folder), launcher="single")
        spec.attributes, spec.resources = attributes, resources
        until = time.monotonic() + HANDED_OVER_S
        while True:
            submitted = psij.Job(spec)
            try:
                self.executor(folder).submit(submitted)
                break
            except psij.SubmitException as error:
                said = " ".join(str(error).split())
                waits = NOT_YET.search(said) is not None
                if DOUBT.search(said) or (waits and time.monotonic() > until):
                    raise OSError(said) from error
                if not waits:
                    return f"{self.NAME} does not take it: {said}"
                time.sleep(1)
        return ""

    def end(self, folder: Path) -> None:
        """End the job; one that is missing in the queue ends itself if it starts later."""
        native = self.numbers().get(name_of(folder), "")
        if native:
            code, said = run(self.executor(folder).get_cancel_command(native))
            if code and not GONE.search(said):
                raise OSError(said)

    def lives(self, folder: Path) -> tuple[bool | None, str, str]:
        """Return whether the job is listed and has not ended (None: not listed), why it waits or failed, its number."""
        native = self.numbers().get(name_of(folder), "")
        if not native:
            return None, "", ""
        executor = self.executor(folder)
        status = executor.parse_status_output(*run(executor.get_status_command([native]))).get(native)
        if status is None:
            return None, "", native
        return not status.state.final, str(status.message or ""), native


class Slurm(BatchSystem):
    """Slurm 22.05 and later."""

    NAME = "Slurm"

    def executor(self, folder: Path) -> Any:
        """Return PSI/J's executor with two corrections (psij-python 0.9.11).

        It expects three words in each line of the queue. A reason with more words, `ReqNodeNotAvail, May be reserved
        for other job`, hides all jobs of the account. Without a number of nodes it requests one task on one node; a
        reservation may have any cores on any nodes. (It also omits the job's name, which is among our own options.)
        """
        from psij import JobState, JobStatus
        from psij.executors.batch.slurm import SlurmExecutorConfig, SlurmJobExecutor

        class CuredSlurmExecutor(SlurmJobExecutor):  # type: ignore[misc, unused-ignore]
            _NAME_ = "slurm"

            def generate_submit_script(self, job: Any, context: dict[str, object], submit_file: IO[str]) -> None:
                whole = io.StringIO()
                super().generate_submit_script(job, context, whole)
                submit_file.write(ONE_NODE.sub("", whole.getvalue()))

            def parse_status_output(self, exit_code: int, out: str) -> dict[str, Any]:
                if exit_code:
                    raise OSError(out)
                return {
                    number: JobStatus(self._STATE_MAP.get(state, JobState.QUEUED), message=reason)
                    for number, (state, reason) in slurm_states(out).items()
                }

        return limited(CuredSlurmExecutor(config=SlurmExecutorConfig(work_directory=folder / "psij", **POLLING)))

    def asked(self, job: dict[str, Any], name: str) -> tuple[dict[str, str], Any]:
        """Return the request; PSI/J's resources cannot express a number of cores on any nodes."""
        import psij

        cores = int(job["cores"])
        begin = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(int(job["begin_at"]) / 1e6))
        options = {"ntasks": str(cores), "nodes": f"1-{cores}", "begin": begin, "job-name": name}
        options["gres"] = str(job["gres"])
        with contextlib.suppress(OSError):  # a site may hide its reservations
            if memory := slurm_memory(str(job["reservation_id"])):
                options["mem-per-cpu"] = f"{memory}M"
        return {f"slurm.{option}": value for option, value in options.items()}, psij.ResourceSpecV1()

    def numbers(self) -> dict[str, str]:
        lines = printed(["squeue", "--me", "-h", "-t", "all", "-o", "%A %j"]).splitlines()
        return {name: number for number, _, name in (line.partition(" ") for line in reversed(lines))}


class GridEngine(BatchSystem):
    """Grid Engine 8.1, by the executor of the package ramp-psij-gridengine."""

    NAME = "Grid Engine"
    LIMITED = False  # it refuses jobs beyond the end of their reservation, and ends all jobs there by itself

    def executor(self, folder: Path) -> Any:
        """The package's, which PSI/J finds by its name."""
        import psij
        from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig

        config = BatchSchedulerExecutorConfig(work_directory=folder / "psij", **POLLING)
        return limited(psij.JobExecutor.get_instance("gridengine", config=config))

    def asked(self, job: dict[str, Any], name: str) -> tuple[dict[str, str], Any]:
        """See `BatchSystem`; slots are those of the parallel environment that the reservation has."""
        import psij

        shown = printed(["qrstat", "-ar", str(job["reservation_id"])])
        found = re.search(r"^granted_parallel_environment\s+(\S+)", shown, re.MULTILINE)
        begin = time.strftime("%Y%m%d%H%M.%S", time.gmtime(int(job["begin_at"]) / 1e6))
        options = {"gridengine.a": begin} | ({"gridengine.pe": found[1]} if found else {})
        return options, psij.ResourceSpecV1(process_count=int(job["cores"]))

    def numbers(self) -> dict[str, str]:
        """See `BatchSystem`."""
        listed = re.findall(r"<(JB_job_number|JB_name)>([^<]*)<", printed(["qstat", "-u", os.environ["USER"], "-xml"]))
        pairs = itertools.pairwise(listed)
        return {name[1]: number[1] for number, name in pairs if (number[0], name[0]) == ("JB_job_number", "JB_name")}


def name_of(folder: Path) -> str:
    """Return a job's name in the batch system."""
    return f"{JOB_PREFIX}{folder.name}"


def slurm_memory(reservation: str) -> int:
    """Return the share in MB of a CPU of a reservation's nodes; 0 if Slurm allots no memory, or the site has a default.

    Without either a job gets all memory of its nodes, and waits if another job has some.
    """
    config = printed(["scontrol", "show", "config"])
    if not re.search(r"^SelectTypeParameters\s*=.*MEMORY", config, re.MULTILINE | re.IGNORECASE):
        return 0
    shown = printed(["scontrol", "-o", "show", "reservation", reservation])
    nodes, partition = (re.search(rf"\b{name}=(\S+)", shown) for name in ("Nodes", "PartitionName"))
    if nodes is None or partition is None:
        return 0
    settings = [config, printed(["scontrol", "-o", "show", "partition", partition[1]])]
    if not all(re.search(rf"\b{name}\s*=\s*UNLIMITED", text) for text in settings for name in _NO_MEMORY_SETTING):
        return 0
    listed = printed(["sinfo", "-h", "-N", "-n", nodes[1], "-p", partition[1], "-o", "%m %c"])
    return min((int(memory) // int(cpus) for memory, cpus in map(str.split, listed.splitlines())), default=0)


def slurm_states(out: str) -> dict[str, tuple[str, str]]:
    """Parse state and reason of jobs by number from the output of `squeue -O JobArrayID,StateCompact,Reason`."""
    rows = (line.split(None, 2) for line in out.splitlines()[1:])
    return {row[0]: (row[1], row[2].strip() if len(row) > 2 else "") for row in rows if len(row) > 1}


def run(command: list[str]) -> tuple[int, str]:
    """Return exit code and output of a command, with errors if it fails; `OSError` if it cannot run or is too slow."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_LIMIT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise OSError(f"{command[0]} does not answer within {COMMAND_LIMIT_S} s") from error
    return done.returncode, done.stdout + (done.stderr if done.returncode else "")


def printed(command: list[str]) -> str:
    """Return the output of a command; `OSError` if it fails."""
    code, said = run(command)
    if code:
        raise OSError(f"{command[0]}: {' '.join(said.split()) or code}")
    return said


def limited(executor: Any) -> Any:
    """Return an executor with a timeout for its commands; PSI/J's own has none."""

    def checked(command: list[str]) -> str:
        code, said = run(command)
        if code:
            raise subprocess.CalledProcessError(code, command, output=said or "no output")
        return said

    executor._run_command = checked  # noqa: SLF001 - PSI/J has no other place for it
    return executor


SYSTEMS: Final = {"slurm": Slurm, "gridengine": GridEngine}

if __name__ == "__main__":
    sys.exit(main())
