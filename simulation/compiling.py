"""Inner loops compiled by numba.

Compiled code is kept on disk until the file of its own function changes: after a change in a function that is called
from another module, that module has to be touched as well.

On a new computer several processes want the same loops at once (live tori of a market, workers of an experiment).
One of them compiles, the others wait for it and read what it has left.

numba takes a second and 100 MB, and is loaded when a loop is first called. Without numba, an optional package, the
loops run as they are written. So they do where numba's own variable NUMBA_DISABLE_JIT is set: for tests of so few jobs
that compiling would take longer.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import update_wrapper
from typing import Any, Final, TypeVar, cast

from simulation.lab import wants_loops_as_written

_Function = TypeVar("_Function", bound=Callable[..., Any])

PATIENCE_S: Final = 120.0
"""How long to wait for another process to compile, in seconds: what the longest of the loops takes on a very busy
computer. Who has waited that long, for a process that was stopped perhaps, compiles by itself."""
LOOK_AGAIN_S: Final = 0.01

_held: dict[str, int] = {}
"""How often this process has taken each file; changed only under numba's own lock."""
_replacing: Final = threading.RLock()  # a thread must not compile loops while another has replaced half of their names


def compiled(function: _Function) -> _Function:
    """Compile a function when it is first called, and keep the machine code on disk between runs.

    A call from compiled code with a constant (`count = 0` before a loop that changes it) takes the same machine code as
    one with a variable: numba would compile the function and all that it calls once more for each such call.
    """
    if wants_loops_as_written() or importlib.util.find_spec("numba") is None:
        # bits are counted in words that overflow, of which compiled code says nothing
        warnings.filterwarnings("ignore", "overflow encountered in scalar", RuntimeWarning, r"simulation\.")
        return function
    return cast("_Function", _Loop(function))


class _Loop:
    """A function that numba gets when it is first called, with all loops of its module and of those that it calls."""

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self._function = function
        self._dispatcher: Any = None

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self.dispatcher()(*arguments, **keywords)

    def dispatcher(self) -> Any:
        """Return numba's function; the loops that its module names become numba's too, for compiled code to call."""
        with _replacing:
            if self._dispatcher is None:
                self._dispatcher = _dispatcher(self._function)
                names = self._function.__globals__
                names.update({name: each.dispatcher() for name, each in names.items() if isinstance(each, _Loop)})
            return self._dispatcher


def _dispatcher(function: Callable[..., Any]) -> Any:
    import numba

    dispatcher = numba.njit(cache=True)(function)
    compile_or_load, find_template = dispatcher.compile, dispatcher.get_call_template
    source = function.__code__.co_filename

    def compile_alone(signature: Any) -> Any:
        with _taken(source):
            return compile_or_load(signature)

    def find_template_of_variables(arguments: Any, keywords: Any) -> Any:
        of_keywords = {name: numba.types.unliteral(kind) for name, kind in keywords.items()}
        return find_template(tuple(numba.types.unliteral(kind) for kind in arguments), of_keywords)

    dispatcher.compile, dispatcher.get_call_template = compile_alone, find_template_of_variables
    return dispatcher


@contextmanager
def _taken(source: str) -> Iterator[None]:
    """Keep other processes from compiling what is in a file, where the file system can lock at all.

    A loop calls loops of its own file and of files that its own imports, never the other way round; so nobody waits
    in a circle. The lock of this process's threads comes first for the same reason.
    """
    from numba.core.compiler_lock import global_compiler_lock

    with global_compiler_lock:
        file = None if source in _held else _lock(source)
        _held[source] = _held.get(source, 0) + 1
        try:
            yield
        finally:
            _held[source] -= 1
            if not _held[source]:
                del _held[source]
            if file is not None:
                os.close(file)


def _lock(source: str) -> int | None:
    """The descriptor that holds a file's lock until it is closed; None if it cannot be had."""
    try:
        file = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(LOOK_AGAIN_S)
        except OSError:  # a file system without locks
            break
        else:
            return file
    os.close(file)
    return None
