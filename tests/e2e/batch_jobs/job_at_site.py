"""Asks the worker about one job as an agent that runs as root does, and has it act as another account."""

import base64
import json
import os
import pwd
import subprocess
import time
from pathlib import Path
from typing import Any

from ramp.launching import worker
from ramp.launching.acting import system_python
from tests.e2e.batch_jobs.psij_environment import ACCOUNT
from tests.waiting import LIMIT_S, until

SECOND = 1_000_000
FINAL = {"done", "failed", "cancelled"}


class JobAtSite:
    """One job on a batch system.

    Args:
        system: `slurm` or `gridengine`.
        variables: by which the system's commands find it.
        root: folder of the job folders, the account's own.
        job_id: the job's name.
        reservation: the slot.
        cores: of the job.
        command: what the shell runs.
        after: seconds from now until it is due.
        seconds: from now until its slot ends.
        gres: GPUs of each node.
        queue_key: where no slot is reserved, the key of the job in a queue in which this one runs.
    """

    def __init__(
        self,
        system: str,
        variables: dict[str, str],
        root: Path,
        job_id: str,
        reservation: str,
        cores: int,
        command: str,
        *,
        after: int = 0,
        seconds: int = 540,
        gres: str = "none",
        queue_key: str = "",
    ) -> None:
        self.folder = root / "res" / job_id
        now = int(time.time())
        self.job = {
            "job_id": job_id,
            "resource": "res",
            "reservation_id": reservation,
            "cores": cores,
            "begin_at": (now + after) * SECOND,
            "end_at": (now + seconds) * SECOND,
            "arguments": ["sh", "-c", command],
            "environment": [["RAMP_UNIT", "1"]],
            "gres": gres,
        }
        if queue_key:
            self.job["queue_key"] = queue_key
        self._asked = {"version": 1, "executor": system, "root": str(root), "variables": variables}

    def ask(self, verb: str, **more: Any) -> dict[str, Any]:
        """The worker's answer, an error too."""
        text = json.dumps({**self._asked, "verb": verb, "job": self.job, **more}).encode()
        command = [system_python(), "-I", "-c", Path(worker.__file__).read_text("utf-8")]
        account = pwd.getpwnam(ACCOUNT)
        groups = os.getgrouplist(ACCOUNT, account.pw_gid)
        done = subprocess.run(
            command, input=text, capture_output=True, check=True, timeout=LIMIT_S, cwd="/",
            env={"PATH": worker.PATH}, user=account.pw_uid, group=account.pw_gid, extra_groups=groups,
        )  # fmt: skip
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def seen(self, verb: str = "look_up") -> dict[str, Any]:
        """How the job is."""
        answer = self.ask(verb)
        assert "error" not in answer, answer
        seen: dict[str, Any] = answer["seen"] or {"state": "unknown"}
        return seen

    def until(self, *states: str) -> dict[str, Any]:
        """How the job is as soon as it is in one of some states."""

        def reached() -> dict[str, Any] | None:
            seen = self.seen()
            if seen["state"] in states:
                return seen
            assert seen["state"] not in FINAL, seen
            return None

        found: dict[str, Any] = until(reached, lambda: f"{states}, but it is {self.seen()}")
        return found

    def output(self, name: str = "stdout") -> str:
        """What it has printed."""
        return base64.b64decode(self.ask("read", name=name, offset=0)["data"]).decode()
