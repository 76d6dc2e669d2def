"""Where simulations run: in processes of this computer, or on the workers of a dask cluster.

Every study, swarm and sweep hands its tasks to `worker_processes.run_all`, which asks here who does them. What a task
answers depends on its arguments alone, so the results are the same wherever it was done.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from importlib import metadata
from typing import Any, Final, TypeVar

from ramp.errors import ConfigurationError, TransportError

TaskT = TypeVar("TaskT")
AnswerT = TypeVar("AnswerT")

LOCAL: Final = "local"
DASK: Final = "dask:"
CONNECT_LIMIT_S: Final = 30
"""How long the cluster's scheduler may take to answer, in seconds."""

_DISTRIBUTION: Final = "ramp-market"
_ADDRESS: Final = re.compile(r"(?:(?:tcp|tls|ws|wss)://)?(?:[\w.-]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}")


_CHOSEN: Final[ContextVar[DaskExecutor | None]] = ContextVar("executor", default=None)


def chosen_executor() -> DaskExecutor | None:
    """Who does the tasks of this context; None: processes of this computer."""
    return _CHOSEN.get()


def check_executor(text: str) -> str:
    """The address of a cluster's scheduler, or an empty string for this computer.

    Args:
        text: `local`, or `dask:ADDRESS`.

    Raises:
        ConfigurationError: it is neither.
    """
    if text == LOCAL:
        return ""
    address = text.removeprefix(DASK)
    if not text.startswith(DASK) or _ADDRESS.fullmatch(address) is None:
        raise ConfigurationError(
            f"got '{text}', expected {LOCAL} or {DASK}ADDRESS, as in {DASK}tcp://10.0.0.5:8786", key="--executor"
        )
    return address


@contextlib.contextmanager
def working_on(text: str) -> Iterator[None]:
    """Let the tasks of this context be done there.

    Args:
        text: `local`, or `dask:ADDRESS` of the scheduler of a running dask cluster.

    Raises:
        ConfigurationError: it is neither, or the package dask.distributed is not installed.
        TransportError: nobody answers at the address, it has no workers, or they cannot run this program.
    """
    address = check_executor(text)
    with contextlib.ExitStack() as stack:
        executor = stack.enter_context(_dask(address)) if address else None
        token = _CHOSEN.set(executor)
        try:
            yield
        finally:
            _CHOSEN.reset(token)


def installed_here() -> tuple[str, str]:
    """The versions of Python and of this program where it is called."""
    return f"{sys.version_info.major}.{sys.version_info.minor}", metadata.version(_DISTRIBUTION)


@contextlib.contextmanager
def _dask(address: str) -> Iterator[DaskExecutor]:
    try:
        from distributed import Client
    except ImportError as error:
        reason = f"dask.distributed is not installed; pip install '{_DISTRIBUTION}[dask]'"
        raise ConfigurationError(reason, key="--executor") from error
    try:
        client = Client(address, timeout=CONNECT_LIMIT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise TransportError(f"--executor: no dask scheduler answers at {address}: {error}") from error
    with client:
        _check_workers(client, address)
        yield DaskExecutor(client, address)


def _check_workers(client: Any, address: str) -> None:
    """Refuse a cluster whose workers would answer otherwise than this computer, or not at all."""
    if not client.scheduler_info(n_workers=-1)["workers"]:
        raise TransportError(f"--executor: the dask cluster at {address} has no workers")
    try:
        found = client.run(installed_here)
    except Exception as error:  # whatever a worker raises, at worst that there is no such module
        reason = f"its workers cannot run this program: {type(error).__name__}: {error}"
        raise TransportError(f"--executor: the dask cluster at {address}: {reason}") from error
    here = installed_here()
    for worker, there in found.items():
        if tuple(there) != here:
            versions = f"Python {there[0]} and {_DISTRIBUTION} {there[1]}; here are {here[0]} and {here[1]}"
            raise TransportError(f"--executor: the worker {worker} has {versions}")


class DaskExecutor:
    """Does tasks on a dask cluster."""

    def __init__(self, client: Any, address: str) -> None:
        self._client = client
        self._address = address

    def run(
        self,
        function: Callable[[TaskT], AnswerT],
        tasks: Sequence[TaskT],
        on_progress: Callable[[int, int], None] | None,
        on_answer: Callable[[int, AnswerT], None] | None,
    ) -> list[AnswerT]:
        """Answers for all tasks, in their order; the first task that raises ends all others.

        Args:
            function: of a module, so that other processes can import it.
            tasks: arguments.
            on_progress: told how many of how many tasks are done.
            on_answer: given each answer as it comes, with the index of its task.

        Raises:
            TransportError: the cluster is lost, or a task has ended its workers again and again.
        """
        from distributed import CancelledError, KilledWorker, as_completed

        # not pure: a task asked for a second time is done again, as it would be here
        futures = self._client.map(function, list(tasks), pure=False)
        index_of = {future.key: index for index, future in enumerate(futures)}
        answers: dict[int, AnswerT] = {}
        try:
            for future in as_completed(futures, loop=self._client.loop):
                index = index_of[future.key]
                answers[index] = future.result()
                if on_answer is not None:
                    on_answer(index, answers[index])
                if on_progress is not None:
                    on_progress(len(answers), len(tasks))
        except (KilledWorker, CancelledError, OSError) as error:
            self._client.cancel(futures)
            reason = f"{type(error).__name__}: {error}"
            raise TransportError(f"--executor: the dask cluster at {self._address} has failed: {reason}") from error
        except BaseException:
            self._client.cancel(futures)
            raise
        return [answers[index] for index in range(len(tasks))]
