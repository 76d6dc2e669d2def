"""Scripts in processes of their own, forked from one that has imported the ledger already.

A process that begins from nothing spends most of a second on imports, and the contract suites need scores of them.
"""

import multiprocessing
import os
import sys
from multiprocessing.connection import Connection
from typing import TextIO

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["ramp.runtime.ledger.store", "sqlite3", "psycopg", "forked_script"])


class ForkedScript:
    """A script that runs beside the tests, with its standard input and output at hand.

    Args:
        script: Python text.
        arguments: its `sys.argv[1:]`.
        environment: variables that it has beside those of the fork server.
    """

    def __init__(self, script: str, *arguments: object, **environment: str) -> None:
        given, give = _CONTEXT.Pipe(duplex=False)
        say, said = _CONTEXT.Pipe(duplex=False)
        words = [str(argument) for argument in arguments]
        self._process = _CONTEXT.Process(target=_play, args=(script, words, environment, given, said), daemon=True)
        self._process.start()
        for end in (given, said):
            end.close()  # the child has them now, and its end is theirs
        self.stdin: TextIO = os.fdopen(os.dup(give.fileno()), "w")
        self.stdout: TextIO = os.fdopen(os.dup(say.fileno()))
        for end in (give, say):
            end.close()

    def kill(self) -> None:
        """End it at once (SIGKILL)."""
        self._process.kill()

    def communicate(self) -> str:
        """Close its input, and wait for its end; returns what it has said since."""
        self.stdin.close()
        with self.stdout:
            rest = self.stdout.read()
        self._process.join()
        return rest

    @property
    def returncode(self) -> int | None:
        """Its exit status, the negative number of the signal that ended it, or None while it runs."""
        return self._process.exitcode


def _play(script: str, words: list[str], environment: dict[str, str], given: Connection, said: Connection) -> None:
    os.dup2(given.fileno(), 0)
    os.dup2(said.fileno(), 1)
    for end in (given, said):
        end.close()
    os.environ.update(environment)
    sys.argv = ["script", *words]
    with os.fdopen(0, closefd=False) as sys.stdin, os.fdopen(1, "w", closefd=False) as sys.stdout:
        exec(compile(script, "script", "exec"), {"__name__": "__main__"})
