"""Experiments that the market's keeper runs from the pages, one at a time, as child processes of the server.

`ramp` may not import the simulated world, so it asks the command line about experiments.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ramp.errors import ConfigurationError

COMMAND: Final = (sys.executable, "-m", "ramp.cli.main")
"""The command line of this installation."""

SUMMARY_FILE: Final = "summary.json"
"""What a run writes last into the folder of its results."""

LINES_KEPT: Final = 12

STOP_LIMIT_S: Final = 15.0
"""Seconds that the server waits at its end for a run to clean up."""

_PROGRESS: Final = re.compile(r"[^:]+: (\d+) of (\d+)(?:, about (.+) left)?")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(:[0-9]+)?")


@dataclass(slots=True)
class Run:
    """A run of an experiment; its state is running, stopping, stopped, failed or done.

    `done` of `total` simulations have ended; `total` is 0 until the run reports it, and `left` is the remaining time in
    words. `said` keeps the last lines of standard error without progress.
    """

    experiment: str
    state: str = "running"
    done: int = 0
    total: int = 0
    left: str = ""
    said: deque[str] = field(default_factory=lambda: deque(maxlen=LINES_KEPT))

    @property
    def is_over(self) -> bool:
        return self.state not in ("running", "stopping")

    def hear(self, line: str) -> None:
        """Take a line of the run's standard error."""
        progress = _PROGRESS.fullmatch(line)
        if progress is None:
            self.said.append(line)
        else:
            self.done, self.total, self.left = int(progress[1]), int(progress[2]), progress[3] or ""


def arguments(values: Mapping[str, object]) -> list[str]:
    """Write options as arguments of `ramp experiment run`, which checks their values.

    Args:
        values: by option; empty ones are left out, and True is a flag.

    Raises:
        ConfigurationError: if a text is not a plain name. Paths are for the command line only: a browser must not
            choose which file of this computer is read or executed.
    """
    found = []
    for option, value in values.items():
        if value is True:
            found.append(f"--{option}")
        elif isinstance(value, int | float) and value is not False:
            found.append(f"--{option}={int(value)}")
        elif value:
            if not _NAME.fullmatch(str(value)):
                raise ConfigurationError(f"expected a name, got {value}", key=f"--{option}")
            found.append(f"--{option}={value}")
    return found


async def answer_of(*words: str, command: Sequence[str] = COMMAND) -> Any:
    """Run a command with `--json` and read its answer.

    Raises:
        ConfigurationError: if the command fails, with its last line of standard error.
    """
    process = await asyncio.create_subprocess_exec(*command, *words, "--json", stdout=PIPE, stderr=PIPE)
    answer, said = await process.communicate()
    if process.returncode != 0:
        last = said.decode(errors="replace").strip().rpartition("\n")[2]
        raise ConfigurationError(f"`ramp {' '.join(words)}` failed: {last or f'exit code {process.returncode}'}")
    return json.loads(answer)


class Runs:
    """The runs of this server into the folder of results; `latest` is the one in progress, or the last that was."""

    def __init__(self, folder: Path, command: Sequence[str] = COMMAND) -> None:
        self._folder = folder
        self._command = command
        self.latest: Run | None = None
        self._offered: dict[str, Mapping[str, Any]] = {}
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None

    async def offered(self) -> Mapping[str, Mapping[str, Any]]:
        """The experiments by name, with the names of their options; errors as of `answer_of`."""
        if not self._offered:
            told = await answer_of("plugins", "list", "experiment", command=self._command)
            self._offered = {
                each["name"]: {**each, "options": [option["name"] for option in each["options"]]} for each in told
            }
        return self._offered

    def start(self, experiment: str, values: Mapping[str, object]) -> None:
        """Start a run with options as for `arguments`.

        Raises:
            ConfigurationError: if a value is not a name, a run is in progress, or there are results to replace.
        """
        if self.latest is not None and not self.latest.is_over:
            raise ConfigurationError(f"{self.latest.experiment} is still running; stop it first")
        options = arguments(values)
        if (self._folder / experiment / SUMMARY_FILE).exists() and not values.get("replace"):
            raise ConfigurationError(f"{experiment} has results; choose to replace them", key="--replace")
        self.latest = Run(experiment)
        self._task = asyncio.create_task(self._follow(self.latest, options))

    def stop(self) -> None:
        """Stop the run in progress; it leaves no results."""
        if self.latest is not None and not self.latest.is_over:
            self.latest.state = "stopping"
            if self._process is not None:
                with contextlib.suppress(ProcessLookupError):  # it has just ended
                    self._process.terminate()

    async def end(self) -> None:
        """Stop the run in progress and wait for it, at the server's end."""
        self.stop()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=STOP_LIMIT_S)

    async def _follow(self, run: Run, options: Sequence[str]) -> None:
        if run.state == "stopping":
            run.state = "stopped"
            return
        words = ("experiment", "run", run.experiment, *options, "--out", str(self._folder), "--progress-every", "1")
        self._process = await asyncio.create_subprocess_exec(*self._command, *words, stdout=DEVNULL, stderr=PIPE)
        if run.state == "stopping":  # while the process began
            self._process.terminate()
        assert self._process.stderr is not None
        async for line in self._process.stderr:
            run.hear(line.decode(errors="replace").strip())
        code = await self._process.wait()
        self._process = None
        if code == 0:
            run.state = "done"
        elif run.state == "stopping":
            run.state = "stopped"
        else:
            run.said.append(f"exit code {code}")
            run.state = "failed"
