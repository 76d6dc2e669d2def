"""A keeper as the agent starts it, with a job of this account."""

import dataclasses
import json
import os
import secrets
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ramp.launching import worker
from ramp.launching.acting import worker_inside
from ramp.launching.keeper import KeeperTask, keeper_of, read_record
from ramp.launching.worker import is_over
from tests.waiting import LIMIT_S, until

WORKER = (sys.executable, "-I", worker.__file__)
PYTHON = worker_inside(sys.executable)
HASTY = """
import pathlib, sys, time
from ramp.launching import keeper
now, path, text = time.time, pathlib.Path(sys.argv[1]), sys.argv[2]
time.time = lambda: now() + (3600 if path.exists() and text in path.read_text() else 0)
keeper.WAIT_MAX_S = 0.05
sys.exit(keeper.main())
"""
"""A keeper whose clock is an hour ahead as soon as a file has a text."""


def answer_to(question: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(question).encode()
    done = subprocess.run(WORKER, input=text, capture_output=True, check=True, timeout=LIMIT_S)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@dataclass
class KeptJob:
    """One job."""

    root: Path
    name: str = field(default_factory=lambda: f"job-{secrets.token_hex(8)}")  # other runs end jobs of the same name
    worker: tuple[str, ...] = PYTHON
    uid: int = field(default_factory=os.geteuid)
    python: tuple[str, ...] = (sys.executable,)

    @property
    def record(self) -> Path:
        return self.root / "records" / "res" / self.name

    @property
    def record_file(self) -> Path:
        return self.record.with_name(f"{self.name}.json")

    @property
    def folder(self) -> Path:
        return self.root / "jobs" / "res" / self.name

    @property
    def seen(self) -> dict[str, Any]:
        found = read_record(self.record)
        assert found is not None
        return found

    @property
    def keeper(self) -> int:
        return keeper_of(self.record)

    def start(
        self,
        *arguments: str,
        begin: float = 0,
        last: float = 600,
        late_when: tuple[Path, str] | None = None,
        worker: Any = (),
        **job: Any,
    ) -> None:
        """Let a keeper have the job.

        Args:
            arguments: the command.
            begin, last: begin and end of the slot, in seconds from now.
            late_when: the latest start and the end of the slot have passed as soon as this file has this text.
            worker: instead of the job's own.
            job: more values of the job.
        """
        now = time.time()
        given = {
            "job_id": self.name, "resource": "res", "cores": 4, "arguments": arguments,
            "environment": [["RAMP_JOB", self.name], ["RAMP_UNIT", "2"]], **job,
        }  # fmt: skip
        plain = {"root": str(self.root / "jobs"), "job": given}
        command, times = list(worker or self.worker), (now + begin, now + 60, now + last)
        task = KeeperTask(str(self.record), command, self.uid, plain, *times, patience_s=0.3)
        text = json.dumps(dataclasses.asdict(task)).encode()
        program = ("-m", "ramp.launching.keeper") if late_when is None else ("-c", HASTY, *map(str, late_when))
        done = subprocess.run(
            (*self.python, *program), input=text, capture_output=True, timeout=LIMIT_S, check=False, cwd="/"
        )
        assert done.returncode == 0, done.stderr

    def ended(self) -> dict[str, Any]:
        """Return the record of the job once its keeper has gone."""
        until(lambda: self.keeper == 0)
        assert is_over(self.seen), self.seen
        return self.seen

    def running(self) -> dict[str, Any]:
        until(lambda: self.seen["started_at"] is not None)
        return self.seen
