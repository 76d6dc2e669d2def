"""The state of a live machine, kept beside its book of reservations: a start continues from there.

Without it a machine lives through all its history again, which takes longer with every job and every reservation. The
file holds the machine, its queue and its scheduler as they are in memory (pickle, checked by a digest), and says of
what they were made: the options, the machine's file, the log, this very program, and the part of the book that has been
lived through. Where anything of that is not the same, or the file is damaged, it is as if there were none: the machine
lives through the whole book, which for that reason is never shortened, and reaches the same state.

What is read from the file is of the project, of numpy, or one of a few things of Python's; so schedulers and allocators
of other packages are not kept, for a new version of theirs would not be noticed, and their machines live through their
history at every start. Who can write in the folder of the reservations is the market's owner.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import pickle
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from ramp.errors import StorageFailed
from ramp.model.instant import Instant
from ramp.runtime.atomic_writes import write_whole
from ramp.runtime.storage_errors import storing
from simulation.resource.live_machine import LiveMachine

_FORMAT: Final = "ramp-machine-life"
_PACKAGES: Final = ("ramp.", "simulation.", "numpy.")
_PYTHONS: Final = {
    ("builtins", "getattr"),  # a bound method
    ("builtins", "iter"),
    ("collections", "deque"),
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
}


@dataclass(frozen=True, slots=True)
class Life:
    """A machine in the middle of its life.

    Attributes:
        live: the machine with its queue; its users' further submissions are given to it by `go_on`.
        numbers: of the market's reservations in the queue, by the caller's keys.
        expiries: when those of them that are holds run out.
    """

    live: LiveMachine
    numbers: dict[str, int]
    expiries: dict[str, Instant]


class KeptLife:
    """The file of one machine's life.

    Args:
        path: of the file.
        book: the machine's book of reservations.
        made_of: everything besides the book that the life depends on, as text.
    """

    def __init__(self, path: Path, book: Path, made_of: str) -> None:
        self._path = path
        self._book = book
        self._made_of = hashlib.sha256(f"{made_of}/{_program()}".encode()).hexdigest()

    def read(self) -> tuple[Life, int] | None:
        """Return the life, and how many bytes of the book it has lived through; None where no kept one may be used."""
        try:
            header, _, body = self._path.read_bytes().partition(b"\n")
            said = json.loads(header)
            told = int(said["book_bytes"])
            if said != self._header(told, body):
                return None
            life = _Reader(io.BytesIO(body)).load()
        except Exception:  # whatever a damaged file, or classes that are not those of today, lead to
            return None
        return (life, told) if isinstance(life, Life) else None

    def keep(self, life: Life, book_bytes: int) -> None:
        """Put a life in the place of the one before; where that fails, the next start takes longer, no more.

        Args:
            life: the machine after everything in that part of the book.
            book_bytes: how much of the book that is.
        """
        with contextlib.suppress(StorageFailed, pickle.PicklingError, AttributeError, TypeError), storing(self._path):
            body = pickle.dumps(life, protocol=pickle.HIGHEST_PROTOCOL)
            header = json.dumps(self._header(book_bytes, body)).encode()
            write_whole(self._path, header + b"\n" + body, private=True)

    def _header(self, book_bytes: int, body: bytes) -> dict[str, Any]:
        lived = b""
        if book_bytes:
            with self._book.open("rb") as book:
                lived = book.read(book_bytes)
        return {
            "format": _FORMAT,
            "made_of": self._made_of,
            "book_bytes": len(lived),
            "book": hashlib.sha256(lived).hexdigest(),
            "life": hashlib.sha256(body).hexdigest(),
        }


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _PYTHONS or module.startswith(_PACKAGES):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is not kept")


@cache
def _program() -> str:
    """Return a digest of the program's source and Python's version, read once, as a process keeps its program."""
    digest = hashlib.sha256(sys.version.encode())
    folder = Path(__file__).parents[1]
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
