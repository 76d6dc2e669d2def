"""A keeper as the agent starts it, with a job of this account."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ramp.launching.acting import worker_inside
from ramp.launching.keeper import KeeperTask, keeper_of, read_record
from ramp.launching.worker import is_over

LIMIT_S = 300.0
PYTHON = worker_inside(sys.executable)


def until(look: Callable[[], Any], wanted: Callable[[Any], bool] = bool) -> Any:
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        found = look()
        if wanted(found):
            return found
        time.sleep(0.02)
    raise AssertionError(f"still {found}")


@dataclass
class KeptJob:
    """One job."""

    root: Path
    name: str = "job-1"

    @property
    def record(self) -> Path:
        return self.root / "records" / "res" / self.name

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
        self, *arguments: str, begin: float = 0, late: float = 60, last: float = 600, worker: Any = PYTHON, **job: Any
    ) -> None:
        """Let a keeper have the job; times are in seconds from now."""
        now = time.time()
        given = {
            "job_id": self.name, "resource": "res", "cores": 4, "arguments": arguments, "inputs": [],
            "environment": [["RAMP_JOB", self.name], ["RAMP_UNIT", "2"]], **job,
        }  # fmt: skip
        plain = {"root": str(self.root / "jobs"), "job": given}
        process: dict[str, Any] = {}
        task = KeeperTask(
            str(self.record), list(worker), process, os.geteuid(), plain, now + begin, now + late, now + last, 0.3
        )
        text = json.dumps(dataclasses.asdict(task)).encode()
        command = [sys.executable, "-m", "ramp.launching.keeper"]
        done = subprocess.run(command, input=text, capture_output=True, timeout=LIMIT_S, check=False)
        assert done.returncode == 0, done.stderr

    def ended(self) -> dict[str, Any]:
        """Return the record of the job once its keeper has gone."""
        until(lambda: self.keeper == 0)
        assert is_over(self.seen), self.seen
        return self.seen

    def running(self) -> dict[str, Any]:
        return dict(until(lambda: self.seen, lambda seen: seen["started_at"] is not None))


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
