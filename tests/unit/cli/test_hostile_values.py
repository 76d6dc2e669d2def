"""Every option and argument of every verb is tried with one table of hostile values; a new one is covered by itself."""

import io
from pathlib import Path

import click
import pytest

from ramp.cli.main import main
from ramp.cli.options import ReadAs, RealNumber, WholeNumber
from ramp.errors import RampError
from tests.unit.cli.every_command import COMMANDS

TIMES = ("+99999999d", "-99999999d", "9999-12-31T23:59", "0001-01-01", "9" * 400, "tomorrow 25:00", "monday monday")
NUMBERS = ("1" + "0" * 30, "-1", "nan", "inf", "1e400", "1e15", "9" * 5000, "0x10", "٣", "1,5", "--", "-5")
TEXTS = (
    *("", " ", "\n", "ünï", "x" * 300, "../..", "/", ".", "'", "$(id)", "\x1b[31m", "..", "=", "a=", "1..", "[", "{x}"),
)
NEVER_RIGHT = {
    "numbers": ("0", "1,", "1.5", "-1", "x"),
    "moment": TIMES,
    "duration": (*TIMES, "-1"),
    "credits": NUMBERS,
}
"""Values that no option of a type takes, by the type's name."""

STARTS_SOMETHING = {
    "up",
    "demo",
    "web",
    "demo-slurm",
    "swarm",
    "simulate",
    "sweep",
    "smap",
    "experiment",
    "papers",
    "plugins",
    "logs",
}
"""Verbs that are parsed, but not carried out here."""

PARAMETERS = [
    pytest.param(words, command, parameter, id=" ".join((*words, parameter.name or "")))
    for words, command in COMMANDS.items()
    for parameter in command.params
    if not getattr(parameter, "is_flag", False) and not isinstance(command, click.Group)
]


def parse(words: tuple[str, ...], command: click.Command, arguments: list[str]) -> str:
    """Parse a command line; returns the error, or "" if there is none."""
    try:
        with command.make_context(" ".join(words), list(arguments)):
            return ""
    except (click.ClickException, RampError) as error:
        return error.format_message() if isinstance(error, click.ClickException) else str(error)


@pytest.mark.parametrize(("words", "command", "parameter"), PARAMETERS)
def test_a_value_that_is_never_right_is_refused_with_the_parameters_name(
    words: tuple[str, ...], command: click.Command, parameter: click.Parameter
) -> None:
    wrong = NEVER_RIGHT[parameter.type.name] if isinstance(parameter.type, ReadAs) else ()
    if isinstance(parameter.type, click.types.IntParamType | click.types.FloatParamType):
        assert isinstance(parameter.type, WholeNumber | RealNumber), "bounded types only"
        wrong = tuple(each for each in NUMBERS if each not in ("-1", "-5", "1e15", "٣", "1" + "0" * 30))
        if isinstance(parameter.type, WholeNumber):
            wrong += ("1" + "0" * 30, "1e15")
    for value in wrong:
        if isinstance(parameter, click.Option):
            told = parse(words, command, [parameter.opts[-1], value])
            assert told.startswith("Invalid value for '-"), (value, told)
            assert "\n" not in told


@pytest.mark.parametrize(("words", "command", "parameter"), PARAMETERS)
def test_no_value_is_a_fault_of_the_program(
    words: tuple[str, ...], command: click.Command, parameter: click.Parameter, tmp_path: Path,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    needed = [each for each in command.params if each.required and each is not parameter]
    others = [word for each in needed if isinstance(each, click.Option) for word in (each.opts[-1], fitting(each))]
    others += ["--state-dir", str(tmp_path / "state")] * any(
        each.name == "state" for each in command.params if each is not parameter
    )
    for value in (*TIMES, *NUMBERS, *TEXTS):
        arguments = [*others]
        if isinstance(parameter, click.Option):
            arguments += [parameter.opts[-1], value]
        arguments += ["--"]
        for each in command.params:
            if isinstance(each, click.Argument) and (each.required or each is parameter):
                arguments.append(value if each is parameter else fitting(each))
        if words[0] in STARTS_SOMETHING:
            parse(words, command, arguments)
            continue
        code = main([*words, *arguments])
        said = capsys.readouterr().err
        assert code in (0, 1, 2), (value, said)
        assert "internal error" not in said


def fitting(parameter: click.Parameter) -> str:
    if isinstance(parameter.type, click.Choice):
        return str(parameter.type.choices[0])
    return "5" if not isinstance(parameter.type, click.Path) else "/dev/null"
