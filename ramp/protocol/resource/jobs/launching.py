"""A site's terms for launching jobs on its slots: applications, local accounts of buyers, delays that count as late.

The seller has installed the applications of its catalogue (paper section 7), and says how they are started. A buyer's
words become arguments of the started program, and no shell reads them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ramp.errors import ConfigurationError
from ramp.model.instant import MINUTE, SECOND, Duration
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit

INPUT: Final = "{input}"
"""Word of a template that stands for all words of the buyer."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}")
_MODULE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+/-]{0,199}")


@dataclass(frozen=True, slots=True)
class Application:
    """An application that a seller has installed.

    Attributes:
        name: by which requests name it.
        command: the words that start it. `{cores}`, `{gpus}` (of the job, in all) and, as a word of its own, `{input}`
            (the buyer's words; by default at the end) are replaced.
        version: its version; empty for none. A buyer that names no version gets the first entry of the name.
        modules: environment modules to load before, such as `namd/2.12`.
        container: image in which Apptainer runs the command; empty for none.
    """

    name: str
    command: tuple[str, ...]
    version: str = ""
    modules: tuple[str, ...] = ()
    container: str = ""

    def __post_init__(self) -> None:
        for key, value in (("name", self.name), ("version", self.version)):
            if not _NAME.fullmatch(value) and (key, value) != ("version", ""):
                right = "expected letters, digits, dots, underscores, plus signs and hyphens"
                raise ConfigurationError(f"got {value!r}, {right}", key=key)
        if not self.command or self.command[0] in ("", INPUT):
            raise ConfigurationError("expected a command whose first word is the program", key="command")
        for module in self.modules:
            if not _MODULE.fullmatch(module):
                raise ConfigurationError(f"got {module!r}, expected a module such as namd/2.12", key="modules")

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}".strip()

    def command_for(self, words: Sequence[str], cores: int, gpus: int) -> tuple[str, ...]:
        """Return the command of a job."""
        template = self.command if INPUT in self.command else (*self.command, INPUT)
        filled: list[str] = []
        for word in template:
            own = word.replace("{cores}", str(cores)).replace("{gpus}", str(gpus))
            filled += words if word == INPUT else (own,)
        if self.container:
            filled = ["apptainer", "exec", self.container, *filled]
        if self.modules:  # `module` is a function of a login shell, which gets the words as its parameters
            load = f'module load {" ".join(self.modules)} && exec "$@"'
            filled = ["bash", "-lc", load, self.name, *filled]
        return tuple(filled)


def found(catalogue: Sequence[Application], name: str, version: str) -> Application | None:
    """Return the first entry of a name and, unless it is empty, a version; None without one."""
    return next((each for each in catalogue if each.name == name and version in ("", each.version)), None)


def titles(catalogue: Sequence[Application], name: str) -> str:
    """List a catalogue for people: the versions of a name if it has some, else all; empty for an empty one."""
    return ", ".join(each.title for each in catalogue if each.name == name or found(catalogue, name, "") is None)


def application_refusal(unit: RequestUnit, catalogue: Sequence[Application]) -> Refusal | None:
    """Refuse a unit that names an application that is not in a catalogue, with what is; else None."""
    name, version = unit.application, unit.application_version or ""
    if name is None or found(catalogue, name, version) is not None:
        return None
    has = titles(catalogue, name)
    detail = f"the request needs {f'{name} {version}'.strip()}, the resource has {has or 'no applications'}"
    return Refusal(unit.number, RefusalCode.APPLICATION, has, detail)


OWN_ACCOUNT: Final = "@own"
"""The Resource Agent's own account (`nobody` for root), for simulated machines only; not a Unix account name."""

EVERYBODY: Final = "*"
"""Local name that stands for all buyers of a domain without a line of their own. No party has this name."""

LOCAL: Final = "local"
"""The executor that runs jobs on the agent's own computer, each under a keeper of the site."""

NONE: Final = "none"
"""The executor of a resource that launches no jobs."""

HANDOVER: Final = "handover"
"""The executor that launches nothing: buyers run their own jobs on the slots handed over to their accounts."""


@dataclass(frozen=True, slots=True)
class LaunchTerms:
    """How a resource launches jobs.

    Attributes:
        executor: `local` (the agent's own computer, for simulated machines), a batch system, or `handover` to the
            buyers.
        accounts: local account of each buyer by full name, and `*@DOMAIN` for all others of that domain; other buyers
            are refused.
        grace: a local job that starts within this time after it was due is on time.
        delivery_limit: if the site could not start a local job within this time after it was due, or by the slot's
            end, the slot is undelivered; a job that is due later than that before the end shows nothing, except in the
            first half of a short slot.
        applications: the seller's catalogue.
    """

    executor: str
    accounts: Mapping[str, str] = field(default_factory=dict)
    grace: Duration = 10 * SECOND
    delivery_limit: Duration = 5 * MINUTE
    applications: tuple[Application, ...] = ()

    @property
    def launches(self) -> bool:
        return self.executor not in (NONE, HANDOVER)

    @property
    def keeps_jobs(self) -> bool:
        """Whether the site starts the jobs itself, so that their starts show the delivery of their slot."""
        return self.executor == LOCAL

    def account(self, user: str) -> str:
        """Return the local account of a buyer, or the empty string."""
        return self.accounts.get(user) or self.accounts.get(f"{EVERYBODY}@{user.rpartition('@')[2]}", "")

    def problem(self, user: str) -> str:
        """Return why a buyer is refused, or the empty string."""
        if self.account(user):
            return ""
        return f"no local account for {user} here; [accounts] of the seller's configuration maps buyers"
