"""Experiments that are run from the pages: the command line in a process of its own, one at a time, by the keeper.

`ramp` knows nothing of the simulated world, so what runs is `ramp experiment run`, which another package brings. It
writes its results whole or not at all, so that a run which is stopped leaves nothing. A run goes on without the server,
however that ends, and the next server goes on with it.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ramp.errors import ConfigurationError, RampError
from ramp.runtime.clock import SystemClock
from ramp.web.laboratory.command_line import COMMAND, printed
from ramp.web.laboratory.folder import ResultsFolder
from ramp.web.laboratory.kept_runs import KeptRuns
from ramp.web.laboratory.options import OfferedExperiment, RunOptions, arguments, offered_experiments
from ramp.web.laboratory.run import Run, RunState
from ramp.web.laboratory.run_process import STOP_LIMIT_S, RunProcess, SaidLines
from ramp.web.security.sessions import Role, Session

NICENESS: Final = 5
"""Of a run: the market's agents, which may share the computer, come first."""

PROGRESS_S: Final = "1"
"""How often a run tells its progress, in seconds."""

LOOK_S: Final = 0.2
"""Pause between two looks at what a run says, in seconds."""

SAID_MAX: Final = 12
"""Lines that are kept of what a run has said, the last."""

PAST_MAX: Final = 20
"""Runs that are kept, the last."""

_PROGRESS: Final = re.compile(r"[^:]+: (\d{1,9}) of (\d{1,9})(?:, about (.{1,20}) left)?")


class NotTheKeeper(RampError):
    """Somebody else than the keeper wants to start or stop a run."""

    exit_code = 1


@dataclass(slots=True)
class Runs:
    """The runs of a market's laboratory.

    Attributes:
        folder: where results are written.
        kept: where runs are on record.
        command: of the command line; tests have another.
        past: the runs, the latest last.
    """

    folder: ResultsFolder
    kept: KeptRuns
    command: Sequence[str] = COMMAND
    past: list[Run] = field(default_factory=list)
    _process: RunProcess | None = None
    _task: asyncio.Task[None] | None = None
    _offered: asyncio.Task[tuple[OfferedExperiment, ...]] | None = None
    _listeners: set[Callable[[], None]] = field(default_factory=set)

    def take_up(self) -> None:
        """Go on with what an earlier server has left: follow the run that goes on, or say how it has ended."""
        record = self.kept.load()
        self.past = list(record.runs)
        if not self.past or self.past[-1].is_over:
            return
        mark = record.process
        self._process = None if mark is None else RunProcess(mark)
        if self.past[-1].state is RunState.STOPPING:
            self._end_process()
        self._task = asyncio.create_task(self._follow())

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
        number = self.past[-1].number + 1 if self.past else 1
        run = Run(number, experiment.name, told, RunState.RUNNING, SystemClock().now())
        self.past = [*self.past, run][-PAST_MAX:]
        out = ("--out", str(self.folder.path), "--progress-every", PROGRESS_S)
        words = ("experiment", "run", *told, *out, "--json")
        try:
            self.kept.prepare()
            self._process = RunProcess.begin(self.command, words, self.kept.said, self.kept.answer, NICENESS)
            self._keep()
        except OSError as error:
            if self._process is not None:
                self._process.kill()
            self._end(RunState.FAILED, f"it cannot be started: {error.strerror}")
            return self.past[-1]
        self._process.let_go()
        self._task = asyncio.create_task(self._follow())
        self._tell()
        return run

    def stop(self, session: Session) -> None:
        """Stop the run that goes on; what it has written so far is gone.

        Raises:
            NotTheKeeper: if it is not the keeper who wants it.
        """
        _check_keeper(session)
        self._stop()

    async def leave(self) -> None:
        """The server ends: what goes on does so without it."""
        await self._cancel()
        process = self._process
        if process is not None and process.is_going():
            logging.getLogger(__name__).warning(
                "%s goes on as process %d; the next `ramp web` of this market finds it",
                self.past[-1].experiment,
                process.mark.pid,
            )

    async def end(self) -> None:
        """Stop what goes on and wait for it: nothing is to be left."""
        self._stop()
        if self._task is not None:
            await asyncio.wait({self._task})
        await self._cancel()

    # -- the process ---------------------------------------------------------------------------------------------

    def _offered_well(self) -> bool:
        asked = self._offered
        return asked is not None and not asked.cancelled() and asked.exception() is None

    async def _ask_offered(self) -> tuple[OfferedExperiment, ...]:
        return offered_experiments(await printed(self.command, "experiment", "list", "--json"))

    async def _follow(self) -> None:
        """Hear what the process says until it has ended, and say how it did."""
        said: deque[str] = deque(maxlen=SAID_MAX)
        written = SaidLines(self.kept.said)
        try:
            while True:
                going = self._process is not None and self._process.is_going()
                for line in written.new(ended=not going):
                    self._heard(line, said)
                if not going:
                    break
                await asyncio.sleep(LOOK_S)
            self._end(*self._how_it_ended(said))
        except Exception as error:
            logging.getLogger(__name__).exception("a run")
            if self._process is not None:
                self._process.kill()
            self._end(RunState.FAILED, f"a fault of the program: {type(error).__name__}: {error}")

    def _how_it_ended(self, said: Sequence[str]) -> tuple[RunState, str]:
        """How the process has ended, and why it has failed.

        How it did is told to who has begun it only. Of a run that another server has begun, the answer tells: it is the
        last that a run prints, and only one that is done does.
        """
        code = None if self._process is None else self._process.exit_code
        if code == 0 or (code is None and self.kept.has_answered()):
            return RunState.DONE, ""
        if self.past[-1].state is RunState.STOPPING:
            return RunState.STOPPED, ""  # what is asked to end says that it was interrupted
        how = "without an answer" if code is None else f"with exit code {code}"
        return RunState.FAILED, "\n".join(said) or f"it ended {how} and said nothing"

    def _end(self, state: RunState, problem: str) -> None:
        adopted = self._process is None or self._process.exit_code is None
        ended_at = self.kept.last_word_at() if adopted and state is not RunState.STOPPED else None
        begun_at = self.past[-1].begun_at
        now = SystemClock().now()
        self._process = None
        self._change(state=state, problem=problem, ended_at=max(ended_at or now, begun_at), left="")
        self._keep_if_possible()

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
        self._keep_if_possible()
        self._end_process()

    def _end_process(self) -> None:
        """Ask the process to end; it is killed where it does not."""
        process = self._process
        if process is not None:
            process.end()
            asyncio.get_running_loop().call_later(STOP_LIMIT_S, process.kill)

    async def _cancel(self) -> None:
        """Ask and follow no more."""
        tasks = [each for each in (self._offered, self._task) if each is not None and not each.done()]
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _keep(self) -> None:
        self.kept.keep(self.past, None if self._process is None else self._process.mark)

    def _keep_if_possible(self) -> None:
        try:
            self._keep()
        except OSError as error:
            logging.getLogger(__name__).warning("runs cannot be put on record: %s", error)

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
