"""The command, files and variables of a job, and the orders to run it; files go before the orders, as one archive."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ramp.client.jobs.files import archive_of, files_below
from ramp.errors import ConfigurationError
from ramp.model.agreement import Agreement
from ramp.model.contents import JobOrder, JobPeer, JobVariable
from ramp.model.contents.jobs import limits_problem, path_problem


@dataclass(frozen=True, slots=True)
class Work:
    """A command with its files, to run on a slot.

    Attributes:
        arguments: the command and its arguments; `./NAME` for a staged file.
        cores: number of cores on each slot; None for all.
        together: whether the units of a request begin together, when the last of their slots has begun.
        variables: environment variables.
        archive: staged files, a compressed archive; empty without any.
        application: name and version of an application of the resource, whose input the arguments are; may be empty.
    """

    arguments: tuple[str, ...]
    cores: int | None = None
    together: bool = True
    variables: tuple[JobVariable, ...] = ()
    archive: bytes = b""
    application: tuple[str, str] = ("", "")


def work_of(
    command: str | Sequence[str],
    *,
    script: str | Path | None = None,
    inputs: Sequence[str | Path] = (),
    cores: int | None = None,
    together: bool = True,
    environment: Mapping[str, str] | None = None,
    application: str = "",
    version: str = "",
) -> Work:
    """Read a command or script and its files; raises `ConfigurationError` for no command or bad files."""
    words = tuple(shlex.split(command) if isinstance(command, str) else command)
    files: dict[str, Path] = {}
    for given in inputs if script is None else (*inputs, script):
        for name, path in files_below(Path(given)):
            problem = path_problem(name)
            if problem or name in files:
                raise ConfigurationError(problem or f"two input files are called {name!r}", path=path)
            files[name] = path
    if script is not None:
        words = (f"./{Path(script).name}", *words)
    if application and script is not None:
        raise ConfigurationError("an application and a script exclude each other; give the script as an input")
    if not words and not application:
        raise ConfigurationError('nothing to run: give a command, such as "hostname", or a script')
    variables = tuple(JobVariable(name, value) for name, value in (environment or {}).items())
    starter = None if script is None else Path(script).name
    return Work(words, cores, together, variables, archive_of(files, starter) if files else b"", (application, version))


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
            arguments=work.arguments,
            peers=peers if together or len(peers) == 1 else (peer,),
            variables=work.variables,
            archive=hashlib.sha256(work.archive).hexdigest() if work.archive else "",
            application=work.application[0],
            application_version=work.application[1],
        )
        for each, peer in zip(units, peers, strict=True)
    )
    for order in orders:
        problem = limits_problem(order)
        if problem:
            raise ConfigurationError(problem)
    return orders
