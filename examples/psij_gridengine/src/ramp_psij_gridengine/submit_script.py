"""The script that is given to qsub(1)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_NO_NAME = re.compile(r"[^A-Za-z0-9._-]")
_VARIABLE = re.compile(r"[A-Za-z_]\w*")
_OPTION = re.compile(r"[a-zA-Z_]+")


@dataclass(frozen=True)
class SubmitScript:
    """What a job asks of Grid Engine, and what it runs.

    Attributes:
        folder: where its exit code and output are left, as `ID.ec` and `ID.out`.
        launch: the command to run, word by word.
        name: of the job.
        directory: where it runs; empty for the home of its owner.
        environment: variables that it sees.
        inherit: whether it sees those of who submits as well.
        slots: how many processes it may run.
        parallel_environment: of which those are; empty for a job of one slot without.
        seconds: limit of its running time; None where the reservation's end is the only one.
        queue: of which queue; empty for any.
        reservation: number of an advance reservation; empty for none.
        options: further options of qsub with their values.
    """

    folder: str
    launch: Sequence[str]
    name: str = ""
    directory: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    inherit: bool = True
    slots: int = 1
    parallel_environment: str = ""
    seconds: int | None = None
    queue: str = ""
    reservation: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """The script.

        Raises:
            ValueError: if a value cannot be written down in it.
        """
        asked = ["-S /bin/bash", f"-N {job_name(self.name)}", "-o /dev/null", "-e /dev/null", "-r n"]
        if self.directory:
            asked.append(f"-wd {_word(self.directory)}")
        if self.inherit:
            asked.append("-V")
        if self.parallel_environment:
            asked.append(f"-pe {_word(self.parallel_environment)} {self.slots}")
        elif self.slots > 1:
            raise ValueError(f"{self.slots} processes need a parallel environment")
        if self.seconds is not None:
            asked.append(f"-l h_rt={self.seconds}")
        if self.queue:
            asked.append(f"-q {_word(self.queue)}")
        if self.reservation:
            asked.append(f"-ar {_number(self.reservation)}")
        for option, value in self.options.items():
            if not _OPTION.fullmatch(option):
                raise ValueError(f"gridengine.{option} is not an option of qsub")
            asked.append(f"-{option} {_word(value)}")
        left = f"{shlex.quote(self.folder)}/$JOB_ID"
        lines = [
            "#!/bin/bash",
            *(f"#$ {each}" for each in asked),
            *(f"export {_variable(name)}={shlex.quote(value)}" for name, value in self.environment.items()),
            f"export PSIJ_NODEFILE={left}.nodefile",
            "while read -r host slots _; do",
            '    for ((slot = 0; slot < slots; slot++)); do echo "$host"; done',
            'done < "${PE_HOSTFILE:-/dev/null}" > "$PSIJ_NODEFILE"',
            '[ -s "$PSIJ_NODEFILE" ] || hostname > "$PSIJ_NODEFILE"',
            f"exec >> {left}.out 2>&1",
            shlex.join(self.launch),
            "code=$?",
            'rm -f "$PSIJ_NODEFILE"',
            f"echo $code > {left}.part && mv {left}.part {left}.ec",
        ]
        return "\n".join((*lines, ""))


def job_name(text: str | None) -> str:
    """A name that Grid Engine takes: a letter first, at most 64 of the characters that it allows."""
    plain = _NO_NAME.sub("-", text or "")
    return (plain if plain[:1].isalpha() else f"psij-{plain}".rstrip("-"))[:64]


def _word(text: str) -> str:
    """A value in a line of options; Grid Engine knows no escapes there that a shell knows.

    Raises:
        ValueError: if it has a space, a quote or a line's end in it.
    """
    if not text or re.search(r"[\s\"'\\]", text):
        raise ValueError(f"{text!r} cannot be given to qsub: it is empty, or has a space or quotation mark in it")
    return text


def _number(text: str) -> str:
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"invalid advance reservation: got {text!r}, expected its number, such as 63")
    return text


def _variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise ValueError(f"invalid variable name: {name!r}")
    return name
