"""Experiments that are run from the pages: the command line in a process of its own, one at a time, by the keeper.

`ramp` knows nothing of the simulated world, so what runs is `ramp experiment run`, which another package brings. It
writes its results whole or not at all, so that a run which is stopped, or ends with the server, leaves nothing.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from ramp.errors import ConfigurationError, RampError
from ramp.model.instant import Instant
from ramp.runtime.clock import SystemClock
from ramp.web.laboratory.command_line import COMMAND, begin, drained, end, kill, lines, printed
from ramp.web.laboratory.folder import ResultsFolder
from ramp.web.laboratory.options import OfferedExperiment, RunOptions, arguments, offered_experiments
from ramp.web.security.sessions import Role, Session

NICENESS: Final = 5
"""Of a run: the market's agents, which may share the computer, come first."""

PROGRESS_S: Final = "1"
"""How often a run tells its progress, in seconds."""

SAID_MAX: Final = 12
"""Lines that are kept of what a run has said, the last."""

PAST_MAX: Final = 20
"""Runs that are kept, the last."""

_PROGRESS: Final = re.compile(r"[^:]+: (\d{1,9}) of (\d{1,9})(?:, about (.{1,20}) left)?")


class RunState(StrEnum):
    """How a run is."""

    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Run:
    """A run.

    Attributes:
        number: tells runs of this server apart.
        experiment: its name.
        arguments: of the command line behind `ramp experiment run`, without the folder.
        state: how it is.
        begun_at: when it was begun.
        ended_at: when it ended, or None.
        done: simulations that have ended.
        total: of all simulations, 0 as long as that is not known.
        left: how long the rest will take, in words, or empty.
        problem: why it has failed, as the command says it, or empty.
    """

    number: int
    experiment: str
    arguments: tuple[str, ...]
    state: RunState
    begun_at: Instant
    ended_at: Instant | None = None
    done: int = 0
    total: int = 0
    left: str = ""
    problem: str = ""

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.state in (RunState.STOPPED, RunState.FAILED, RunState.DONE)


class NotTheKeeper(RampError):
    """Somebody else than the keeper wants to start or stop a run."""

    exit_code = 1


@dataclass(slots=True)
class Runs:
    """The runs of one server.

    Attributes:
        folder: where results are written.
        command: of the command line; tests have another.
        past: the runs, the latest last.
    """

    folder: ResultsFolder
    command: Sequence[str] = COMMAND
    past: list[Run] = field(default_factory=list)
    _process: asyncio.subprocess.Process | None = None
    _task: asyncio.Task[None] | None = None
    _offered: asyncio.Task[tuple[OfferedExperiment, ...]] | None = None
    _listeners: set[Callable[[], None]] = field(default_factory=set)
    _count: int = 0

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Tell a page of everything that changes; returns what ends that."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    async def offered(self) -> tuple[OfferedExperiment, ...]:
        """The experiments that can be run, as `ramp experiment list` has them; asked for once.

        Raises:
            ConfigurationError: if there is no such command, or it fails.
        """
        if self._offered is None or (self._offered.done() and not self._offered_well()):
            self._offered = asyncio.create_task(self._ask_offered())
        return await asyncio.shield(self._offered)

    def start(self, session: Session, experiment: OfferedExperiment, options: RunOptions) -> Run:
        """Start a run.

        Args:
            session: who wants it.
            experiment: which.
            options: with what.

        Raises:
            NotTheKeeper: if it is not the keeper who wants it.
            ConfigurationError: if an option is not what it should be, or a run goes on.
        """
        _check_keeper(session)
        if self.past and not self.past[-1].is_over:
            raise ConfigurationError(f"{self.past[-1].experiment} is still {self.past[-1].state}; one runs at a time")
        told = tuple(arguments(experiment, options))
        self._count += 1
        run = Run(self._count, experiment.name, told, RunState.RUNNING, SystemClock().now())
        self.past = [*self.past, run][-PAST_MAX:]
        self._task = asyncio.create_task(self._carry_out(told))
        self._tell()
        return run

    def stop(self, session: Session) -> None:
        """Stop the run that goes on; what it has written so far is gone.

        Raises:
            NotTheKeeper: if it is not the keeper who wants it.
        """
        _check_keeper(session)
        self._stop()

    async def end(self) -> None:
        """Stop what goes on and wait for it: the server ends."""
        self._stop()
        if self._offered is not None and not self._offered.done():
            self._offered.cancel()
        if self._task is not None:
            await asyncio.wait({self._task})

    # -- the process ---------------------------------------------------------------------------------------------

    def _offered_well(self) -> bool:
        asked = self._offered
        return asked is not None and not asked.cancelled() and asked.exception() is None

    async def _ask_offered(self) -> tuple[OfferedExperiment, ...]:
        return offered_experiments(await printed(self.command, "experiment", "list", "--json"))

    async def _carry_out(self, told: Sequence[str]) -> None:
        """Run the command to its end."""
        said: deque[str] = deque(maxlen=SAID_MAX)
        problem, state = "", RunState.STOPPED  # also where this is cancelled, as at the server's end
        try:
            out = ("--out", str(self.folder.path), "--progress-every", PROGRESS_S)
            self._process = process = await begin(
                self.command, "experiment", "run", *told, *out, "--json", niceness=NICENESS
            )
            if self.past[-1].state is RunState.STOPPING:  # stopped while it was being started
                end(process)
            assert process.stderr is not None
            assert process.stdout is not None
            answer = asyncio.create_task(drained(process.stdout))
            async for line in lines(process.stderr):
                self._heard(line, said)
            await process.wait()
            await answer
            state = RunState.DONE
            if process.returncode != 0:
                state = RunState.FAILED
                problem = "\n".join(said) or f"it ended with exit code {process.returncode} and said nothing"
        except OSError as error:
            state, problem = RunState.FAILED, f"it cannot be started: {error.strerror}"
        except Exception as error:
            logging.getLogger(__name__).exception("a run")
            state, problem = RunState.FAILED, f"a fault of the program: {type(error).__name__}: {error}"
        finally:
            if self._process is not None:
                kill(self._process)
            self._process = None
            if state is RunState.FAILED and self.past[-1].state is RunState.STOPPING:
                state, problem = RunState.STOPPED, ""  # what is asked to end says that it was interrupted
            self._change(state=state, problem=problem, ended_at=SystemClock().now(), left="")

    def _heard(self, line: str, said: deque[str]) -> None:
        told = _PROGRESS.fullmatch(line)
        if told is None:
            if line:
                said.append(line)
            return
        done, total = int(told[1]), int(told[2])
        if done <= total:
            self._change(done=done, total=total, left=told[3] or "")

    def _stop(self) -> None:
        if not self.past or self.past[-1].state is not RunState.RUNNING:
            return
        self._change(state=RunState.STOPPING)
        process = self._process
        if process is not None and process.returncode is None:
            end(process)

    def _change(self, **changes: object) -> None:
        self.past[-1] = replace(self.past[-1], **changes)  # type: ignore[arg-type]
        self._tell()

    def _tell(self) -> None:
        for listener in list(self._listeners):
            try:
                listener()
            except Exception:
                logging.getLogger(__name__).exception("telling a page")
                self._listeners.discard(listener)


def _check_keeper(session: Session) -> None:
    if session.role is not Role.KEEPER:
        raise NotTheKeeper("only the market's keeper starts and stops experiments")
