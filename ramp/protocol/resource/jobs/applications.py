"""A seller's catalogue of applications (paper section 7): what it has installed, and how it is started.

A template belongs to the seller. The buyer's words become arguments of the started program, and no shell reads them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ramp.errors import ConfigurationError
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
            if not _NAME.fullmatch(value or "-" * (key == "name") or "0"):
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
        """Return the command of a job.

        Args:
            words: of the buyer.
            cores: of the job.
            gpus: of the job.
        """
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


def found(catalogue: Sequence[Application], name: str, version: str = "") -> Application | None:
    """Return the first entry of a name and, unless it is empty, a version; None without one."""
    return next((each for each in catalogue if each.name == name and version in ("", each.version)), None)


def titles(catalogue: Sequence[Application], name: str = "") -> str:
    """List a catalogue for people: the versions of a name if it has some, else all; empty for an empty one."""
    return ", ".join(each.title for each in catalogue if each.name == name or found(catalogue, name) is None)


def application_refusal(unit: RequestUnit, catalogue: Sequence[Application]) -> Refusal | None:
    """Refuse a unit that names an application that is not in a catalogue, with what is; else None."""
    name, version = unit.application, unit.application_version or ""
    if name is None or found(catalogue, name, version) is not None:
        return None
    has = titles(catalogue, name)
    detail = f"the request needs {f'{name} {version}'.strip()}, the resource has {has or 'no applications'}"
    return Refusal(unit.number, RefusalCode.APPLICATION, has, detail)
