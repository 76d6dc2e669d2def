"""Jobs of one account inside a job of a queue, which it has bought instead of a reservation.

This program uses the standard library only. The worker runs it as the buyer's local account and asks it the same
questions as `psij_jobs.py`. An order is a file with the earliest start and the job's folder; the script of the job in
the queue (`queue_script.py`) looks for orders each second.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

COMMAND_LIMIT_S: Final = 20
"""Timeout of a command of a batch system in seconds."""

NAME: Final = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_.@-]{0,199}")
LISTED: Final = {"slurm": ("squeue", "-h", "-o", "%T", "-j"), "gridengine": ("qstat", "-j")}
"""Commands that list a job by its number."""

ENDED: Final = re.compile("|COMPLETED|CANCELLED|FAILED|TIMEOUT|NODE_FAIL|PREEMPTED|OUT_OF_MEMORY|DEADLINE|BOOT_FAIL")
"""States of ended jobs in Slurm, squeue(1); the output is empty for a forgotten job."""

UNKNOWN: Final = re.compile("Invalid job id|do(es)? not exist")


def main() -> int:
    """Answer one question."""
    question = json.load(sys.stdin)
    folder, system = Path(question["folder"]), str(question["system"])
    answer: dict[str, Any] = {}
    try:
        if question["verb"] == "submit":
            answer = {"refused": submit(folder, question["job"])}
        elif question["verb"] == "look":
            number = str(question["job"]["reservation_id"])
            alive, detail = lives(folder, system, number)
            answer = {"alive": alive, "detail": detail, "native": number}
        # a job that must end has the mark `cancelled` in its folder, which the script looks for
    except (OSError, ValueError, KeyError) as error:
        answer = {"error": " ".join(str(error).split())}
    print(json.dumps(answer))
    return 0


def submit(folder: Path, job: dict[str, Any]) -> str:
    """Leave an order for the script of the job in the queue; return why that is impossible, or an empty string."""
    key, number = str(job["queue_key"]), str(job["reservation_id"])
    if not NAME.fullmatch(key) or not number.isdecimal():
        return f"invalid job of a queue: {key!r}, {number!r}"
    orders = folder.parents[1] / "queued" / key
    orders.mkdir(parents=True, exist_ok=True)
    new = orders / f".{folder.name}"
    new.write_text(f"{-(-int(job['begin_at']) // 1_000_000)}\n{folder}\n", "utf-8")
    new.rename(orders / folder.name)
    (folder / "ordered").touch()
    return ""


def lives(folder: Path, system: str, number: str) -> tuple[bool | None, str]:
    """Return whether the job in the queue runs (None: it has no order), and a sentence if it has ended.

    Raises:
        OSError: the state is unknown.
    """
    if not (folder / "ordered").exists():
        return None, ""
    command = [*LISTED[system], number]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_LIMIT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise OSError(f"{command[0]} does not answer within {COMMAND_LIMIT_S} s") from error
    said = done.stdout.strip() or done.stderr.strip()
    if done.returncode and not UNKNOWN.search(said):
        raise OSError(f"{command[0]}: {said[:300] or done.returncode}")
    if done.returncode or (system == "slurm" and ENDED.fullmatch(said)):
        return False, f"job {number} of the queue has ended"
    return True, ""


if __name__ == "__main__":
    sys.exit(main())
