"""The command and files of a job, and the orders to run it."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ramp.errors import ConfigurationError
from ramp.model.agreement import Agreement
from ramp.model.contents import JobArgument, JobInput, JobOrder, JobPeer
from ramp.model.contents.jobs import INPUT_BYTES_MAX, limits_problem


@dataclass(frozen=True, slots=True)
class Work:
    """A command with its files, to run on a slot.

    Attributes:
        arguments: the command and its arguments; `./NAME` for a staged file.
        inputs: staged files.
        cores: number of cores on each slot; None for all.
        together: whether the units of a request begin together, when the last of their slots has begun.
    """

    arguments: tuple[str, ...]
    inputs: tuple[JobInput, ...] = ()
    cores: int | None = None
    together: bool = True


def work_of(
    command: str | Sequence[str],
    *,
    script: str | Path | None = None,
    inputs: Sequence[str | Path] = (),
    cores: int | None = None,
    together: bool = True,
) -> Work:
    """Read a command or script and its files; raises `ConfigurationError` for no command or bad files."""
    words = tuple(shlex.split(command) if isinstance(command, str) else command)
    files = [_staged(Path(each), executable=False) for each in inputs]
    if script is not None:
        staged = _staged(Path(script), executable=True)
        files.append(staged)
        words = (f"./{staged.name}", *words)
    if not words:
        raise ConfigurationError('nothing to run: give a command, such as "hostname", or a script')
    return Work(words, tuple(files), cores, together)


def _staged(path: Path, *, executable: bool) -> JobInput:
    try:
        with path.open("rb") as file:
            data = file.read(INPUT_BYTES_MAX + 1)
            mode = path.stat().st_mode
    except OSError as error:
        raise ConfigurationError(f"cannot be read: {error.strerror}", path=path) from error
    if len(data) > INPUT_BYTES_MAX:
        raise ConfigurationError(
            f"is too large: all staged files together may have at most {INPUT_BYTES_MAX} bytes", path=path
        )
    return JobInput(path.name, base64.b64encode(data).decode("ascii"), executable or bool(mode & 0o100))


def orders_of(agreements: Sequence[Agreement], work: Work, new_id: Callable[[str], str]) -> tuple[JobOrder, ...]:
    """The orders of one work on slots of a request, one a slot, in the order of their units.

    Slots that overlap begin together, when the last of them has begun, unless the work says otherwise.
    """
    units = sorted(agreements, key=lambda each: each.offer.unit)
    begin = max(each.offer.start for each in units)
    together = work.together and begin < min(each.offer.end for each in units)
    peers = tuple(JobPeer(each.offer.unit, each.resource, each.reservation_id, each.offer.cores) for each in units)
    orders = tuple(
        JobOrder(
            job_id=new_id("job"),
            agreement_id=each.agreement_id,
            cores=work.cores or each.offer.cores,
            unit=each.offer.unit,
            begin_at=begin if together else each.offer.start,
            arguments=tuple(JobArgument(word) for word in work.arguments),
            inputs=work.inputs,
            peers=peers if together or len(peers) == 1 else (peer,),
        )
        for each, peer in zip(units, peers, strict=True)
    )
    for order in orders:
        problem = limits_problem(order)
        if problem:
            raise ConfigurationError(problem)
    return orders
