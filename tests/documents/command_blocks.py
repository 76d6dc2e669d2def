"""The commands of a page, as a reader would type them, and what the page shows as their answer.

Blocks fenced as `console` are read: `$ ` begins a command, `> ` goes on with it, other lines are shown output. Blocks
fenced as `python` are whole programs, run by `python` in their turn. A block
behind the line `*Not run by the tests: REASON.*`, which readers see too, is left out. In shown output a line of `...`
stands for any lines; of the others the words must appear, numbers and names with digits may differ.
"""

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

LIMIT_S: Final = 1500
"""How long the commands of a page may take together, in seconds."""

_BLOCK: Final = re.compile(
    r"(?:^\*Not run by the tests: (?P<reason>[^*]+)\.\*\n+)?^```(?P<kind>\w+)[^\n]*\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_LEFT_OUT: Final = re.compile(r"^\*Not run\b[^\n]*", re.MULTILINE)
_END: Final = "END_OF_THE_PROGRAM"
_WORD: Final = re.compile(r"[A-Za-z]{3,}")
_EXIT: Final = re.compile(r"#\s*exit code (\d+)")


@dataclass(slots=True)
class Command:
    """A command, its line in the page, and the output that the page shows."""

    text: str
    line: int
    shown: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """The exit code that the page states; 0 where it states none."""
        found = _EXIT.search(self.text)
        return int(found[1]) if found else 0


@dataclass(frozen=True, slots=True)
class Page:
    """What a page has to run, and why some of its blocks are not run."""

    commands: list[Command]
    left_out: list[str]


def read_page(text: str) -> Page:
    """Collect the commands of a page in their order.

    Raises:
        ValueError: for a block whose commands have no prompt, a kind of block that hides commands, or a line that looks
            as if it left out a block and leaves out none.
    """
    commands: list[Command] = []
    left_out: list[str] = []
    blocks = list(_BLOCK.finditer(text))
    effective = {block.start() for block in blocks if block["reason"]}
    for line in _LEFT_OUT.finditer(text):
        if line.start() not in effective:
            number = text[: line.start()].count("\n") + 1
            right = "'*Not run by the tests: REASON.*' right before one"
            raise ValueError(f"line {number}: {line[0]!r} leaves out no block; right would be {right}")
    for block in blocks:
        line = text[: block.start("text")].count("\n") + 1
        if block["kind"] in {"sh", "bash", "shell"}:
            raise ValueError(f"line {line}: commands stand in blocks of the kind console, with prompts")
        if block["kind"] not in {"console", "python"}:
            continue
        if block["reason"]:
            left_out.append(block["reason"])
        elif block["kind"] == "python":
            commands.append(Command(f"python - <<'{_END}'\n{block['text']}{_END}", line))
        else:
            commands += _commands(block["text"], line)
    return Page(commands, left_out)


def _commands(text: str, first_line: int) -> list[Command]:
    found: list[Command] = []
    for number, line in enumerate(text.splitlines(), first_line):
        if line.startswith("$ "):
            found.append(Command(line[2:], number))
        elif not found:
            raise ValueError(f"line {number}: output before any command; right would be '$ ' before a command")
        elif line.startswith("> ") or line == ">":
            found[-1].text += "\n" + line[2:]
        else:
            found[-1].shown.append(line)
    return found


def run(commands: list[Command], folder: Path, environment: Mapping[str, str]) -> list[str]:
    """Run commands one after the other in one shell; stops at the first that ends otherwise than the page says.

    Args:
        commands: the commands.
        folder: where to begin.
        environment: of the shell.

    Returns:
        What was wrong, one text a finding: a command with its output.
    """
    outputs = folder.parent / "outputs"
    outputs.mkdir()
    script = [f"cd {shlex.quote(str(folder))}"]
    for number, command in enumerate(commands):
        file = shlex.quote(str(outputs / str(number)))
        script += [
            f"{{ {command.text}\n}} >{file}.out 2>&1 </dev/null",
            f"code=$?; echo $code >{file}.code; [ $code = {command.exit_code} ] || exit 99",
        ]
    shell = subprocess.Popen(["bash", "-c", "\n".join(script)], env=dict(environment), start_new_session=True)
    try:
        shell.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        pass  # told below: the command that did not end has no exit code
    finally:
        with suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)  # also what the page left in the background
        shell.wait()
    return [finding for number, command in enumerate(commands) for finding in _judge(command, outputs / str(number))]


def _judge(command: Command, file: Path) -> list[str]:
    where = f"line {command.line}: {command.text}"
    code, out = file.with_name(f"{file.name}.code"), file.with_name(f"{file.name}.out")
    output = out.read_text("utf-8", errors="replace") if out.exists() else ""
    if not code.exists():
        return [f"{where}\ndid not end; so far:\n{output}"] if out.exists() else []
    ended = int(code.read_text())
    if ended != command.exit_code:
        return [f"{where}\nended with {ended}, not {command.exit_code}:\n{output}"]
    missing = missing_lines(command.shown, output)
    return [f"{where}\ndoes not say {missing!r}, but\n{output}"] if missing else []


def missing_lines(shown: list[str], output: str) -> list[str]:
    """The shown lines whose words no line of the output has in that order."""
    lines = [_WORD.findall(line) for line in output.splitlines()]
    wanted = [(line, _WORD.findall(_no_names(line))) for line in shown if line.strip() not in {"", "..."}]
    return [line for line, words in wanted if not any(_within(words, each) for each in lines)]


def _no_names(line: str) -> str:
    """A line without the tokens that have digits: ids, times, amounts, names of machines."""
    return " ".join(token for token in line.split() if not any(sign.isdigit() for sign in token))


def _within(words: list[str], line: list[str]) -> bool:
    rest = iter(line)
    return all(word in rest for word in words)
