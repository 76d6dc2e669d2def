"""The command itself: verbs found lazily, errors as one line and an exit code."""

import json
import subprocess
import sys
from importlib import metadata

import click
import pytest

from ramp.cli import main as command
from ramp.cli.main import VERBS, cli, main
from ramp.errors import ConfigurationError, TransportError
from tests.unit.cli.every_command import COMMANDS

OWN = {words: command for words, command in COMMANDS.items() if words and words[0] in VERBS}
"""The commands of `ramp` itself."""


@pytest.fixture
def foreign(monkeypatch):
    """Lets a test bring verbs of its own by entry point."""

    def bring(**places):
        group = command.VERB_GROUP
        found = {group: {name: metadata.EntryPoint(name, place, group) for name, place in places.items()}}
        monkeypatch.setattr(command, "entry_points_by_name", lambda group: found.get(group, {}))

    return bring


@pytest.fixture
def failing(monkeypatch):
    """Makes `ramp ps` raise what a test wants."""

    def fail(error):
        def run():
            raise error

        monkeypatch.setattr("ramp.cli.verbs.launch.ps", click.Command("ps", callback=run))

    return fail


@pytest.mark.parametrize("name", sorted(VERBS))
def test_every_verb_loads_and_its_help_has_an_example(name, ramp):
    text = ramp(name, "--help").out
    assert "Example:" in text
    assert f"ramp {name}" in text.partition("Example:")[2]
    assert "<=None" not in text  # a number without bounds


def test_every_verb_that_reports_has_json():
    without = {
        " ".join(path)
        for path, verb in OWN.items()
        if not isinstance(verb, click.Group) and not any("--json" in option.opts for option in verb.params)
    }
    # they print a document and a script, and serve pages until Ctrl-C
    assert without == {"rfq new", "completion", "web demo"}


def test_flags_that_mean_the_same_are_named_the_same():
    places = {}
    for verb in OWN.values():
        for option in verb.params:
            if isinstance(option, click.Option) and option.opts[0] in ("--json", "--user"):
                places.setdefault(option.opts[0], set()).add(option.help)
    assert all(len(helps) == 1 for helps in places.values())


def test_help_imports_neither_the_verbs_nor_what_is_heavy():
    probe = (
        "import sys; from ramp.cli.main import main; main(['--help'])\n"
        "heavy = ('rich', 'numpy', 'spade', 'lxml', 'cryptography', 'simulation', 'ramp.agents', 'ramp.runtime')\n"
        "sys.stderr.write(','.join(name for name in heavy if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert "submit" in done.stdout
    assert done.stderr == ""


def test_verbs_of_other_packages_come_in_by_entry_point(foreign, ramp):
    foreign(extra="ramp.cli.completion:completion")
    assert "_RAMP_COMPLETE" in ramp("extra", "bash").out


def test_a_broken_verb_says_so_and_breaks_no_other(foreign, ramp):
    foreign(broken="no_such_package.verbs:go", odd="ramp.cli.main:VERBS")
    assert "broken, odd" in ramp("--help").out
    assert main(["completion", "bash"]) == 0
    assert "cannot load the command 'broken' from no_such_package.verbs:go" in ramp("broken", code=2).err
    assert "is not a click command" in ramp("odd", code=2).err


def test_a_foreign_verb_cannot_take_the_place_of_our_own(foreign, ramp):
    foreign(submit="no_such_package:submit")
    ramp("submit", "--help")
    assert "other commands" not in ramp("--help").out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["sumbit"], "did you mean 'submit'?"),
        (["xyzzy"], "unknown command 'xyzzy'"),
        (["submit"], "missing argument"),
        (["submit", "--rounds", "0", "x.xml"], "0 is not in the range"),
        (["submit", "no-such-file.xml"], "no-such-file.xml"),
        (["ps", "--colour"], "no such option"),
        (["qstat", "m", "--horizon", "never"], "invalid duration: got 'never'"),
        (["balance", "--statement", "--since", "lately"], "invalid time: got 'lately'"),
        (["bank", "overview", "--since", "2026-12-02", "--until", "2026-12-01"], "--since must be before --until"),
    ],
)
def test_bad_input_is_one_line_on_standard_error_and_exit_code_2(arguments, told, capsys):
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("ramp: ")
    assert said.err.count("\n") == 1
    assert told in said.err


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (ConfigurationError("users: there is none", path="a.toml"), 2, "ramp: a.toml: users: there is none\n"),
        (TransportError("no market is running"), 1, "ramp: no market is running\n"),
        (click.Abort(), 130, "ramp: interrupted\n"),
        (KeyboardInterrupt(), 130, "ramp: interrupted\n"),
    ],
)
def test_errors_become_a_line_and_their_exit_code(failing, capsys, error, code, told):
    failing(error)
    assert main(["ps"]) == code
    assert capsys.readouterr().err.lstrip() == told


def test_a_fault_of_the_program_is_70_and_hints_at_debug(failing, ramp):
    failing(ZeroDivisionError("no"))
    assert ramp("ps", code=70).err == "ramp: internal error: no (see the traceback with --debug)\n"
    assert "Traceback" in ramp("ps", "--debug", code=70).err


def test_debug_also_shows_where_an_expected_error_came_from(failing, ramp, monkeypatch):
    failing(TransportError("cut"))
    monkeypatch.setenv(command.DEBUG_VARIABLE, "1")
    assert "Traceback" in ramp("ps", code=1).err


def test_a_reader_that_goes_away_early_is_no_fault():
    shell = f"{sys.executable} -m ramp.cli.main config table2 --json | head -n 1"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
    assert done.stdout == "{\n"
    assert done.stderr == ""


def test_completion_offers_verbs_without_loading_any(foreign):
    foreign(stranger="no_such_package:verb")
    found = {item.value for item in cli.shell_complete(click.Context(cli), "s")}
    assert found == {"submit", "status", "show", "stranger"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(shell, ramp):
    assert "_RAMP_COMPLETE" in ramp("completion", shell).out


def test_nothing_running_is_said_by_every_verb_that_needs_a_market(tmp_path, ramp):
    state = ["--state-dir", str(tmp_path)]
    verbs = ["balance", "balance --statement", "status", "reservations", "resources", "qstat m", "show x", "cancel x"]
    for arguments in map(str.split, verbs):
        said = ramp(*arguments, *state, code=1)
        assert said.out == ""
        assert "no market is running" in said.err
    assert json.loads(ramp("ps", "--json", *state, code=1).out)["running"] is False
    assert json.loads(ramp("down", "--json", *state).out)["stopped"] is False


def test_the_state_folder_comes_from_the_environment(monkeypatch):
    from ramp.runtime.state_folder import state_folder

    environment = {"RAMP_STATE": "/a", "XDG_STATE_HOME": "/b", "HOME": "/home/carol"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for name, expected in zip(environment, ("/a", "/b/ramp", "/home/carol/.local/state/ramp"), strict=True):
        assert str(state_folder(None).path) == expected
        monkeypatch.delenv(name)
