"""The command itself: verbs found lazily, completion, errors as one line, full disks, and the extra `lab` missing."""

import errno
import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete

from ramp.cli import main as command
from ramp.cli import options
from ramp.cli.main import VERBS, cli, main
from ramp.client import access
from ramp.client.market import Market
from ramp.client.swarm import start_detached
from ramp.errors import ConfigurationError, NoMarket, StorageFailed, TransportError
from ramp.runtime.atomic_writes import write_output
from ramp.runtime.state_folder import state_folder
from simulation.lab import AS_WRITTEN, INSTALL_LAB, tell_loops
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
    foreign(extra="ramp.cli.options:completion")
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
def test_bad_input_is_one_line_on_standard_error_and_exit_code_2(arguments, told, ramp):
    said = ramp(*arguments, code=2)
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
def test_errors_become_a_line_and_their_exit_code(failing, ramp, error, code, told):
    failing(error)
    assert ramp("ps", code=code).err.lstrip() == told


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
    environment = {"RAMP_STATE": "/a", "XDG_STATE_HOME": "/b", "HOME": "/home/carol"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for name, expected in zip(environment, ("/a", "/b/ramp", "/home/carol/.local/state/ramp"), strict=True):
        assert str(state_folder(None).path) == expected
        monkeypatch.delenv(name)


assert COMMANDS  # all verbs are loaded before anything is replaced, or they would keep the replacement


def completed(*words: str) -> list[str]:
    shell = ShellComplete(cli, {}, "ramp", "_RAMP_COMPLETE")
    return [each.value for each in shell.get_completions(list(words[:-1]), words[-1])]


@pytest.fixture
def one_market(monkeypatch: pytest.MonkeyPatch) -> None:
    agents = [SimpleNamespace(name=name, role=role) for name, role in (("alice", "user"), ("curie1", "resource"))]
    monkeypatch.setattr(access, "running", lambda _: SimpleNamespace(agents=agents))
    monkeypatch.setattr(access, "find_market", lambda *_: None)
    bought = SimpleNamespace(agreement_id="agreement-1a", reservation_id="curie1-7", state="active")
    asked = SimpleNamespace(request_id="request-1f0c", outcome=None, stage="auction")
    ran = SimpleNamespace(job_id="job-77", state="running")
    for name, listed in (("requests", asked), ("reservations", bought), ("jobs", ran)):
        monkeypatch.setattr(Market, name, lambda _, found=listed: [found])


@pytest.mark.usefixtures("one_market")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("status", ""), ["request-1f0c"]),
        (("show", "1"), ["1f0c", "1a"]),
        (("cancel", "agr"), ["agreement-1a"]),
        (("resize", "cur"), ["curie1-7"]),
        (("launch", "curie1-"), ["curie1-7"]),
        (("jobs", ""), ["job-77"]),
        (("qstat", ""), ["curie1"]),
        (("resource", "drain", "c"), ["curie1"]),
        (("user", "remove", ""), ["alice"]),
        (("restart", ""), ["alice", "curie1"]),
        (("balance", "--user", ""), ["alice"]),
    ],
)
def test_ids_and_names_are_completed(words: tuple[str, ...], expected: list[str]) -> None:
    assert completed(*words) == expected


def test_without_a_market_nothing_is_completed_and_nothing_said(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def none(*_: Any) -> None:
        raise NoMarket("none")

    monkeypatch.setattr(access, "find_market", none)
    assert completed("show", "") == []
    assert capfd.readouterr() == ("", "")


def test_a_market_that_does_not_answer_does_not_hold_up_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    stays = threading.Event()

    def waits(*_: Any) -> None:
        stays.wait()
        raise NoMarket("none")

    monkeypatch.setattr(access, "find_market", waits)
    monkeypatch.setattr(options, "COMPLETION_LIMIT_S", 0)
    assert completed("show", "") == []
    stays.set()


LISTING = (
    ("plugins", "list"), ("plugins", "list", "scheduler"), ("experiment", "list"), ("logs"), ("ps",),
    ("keys", "show"), ("completion", "bash"), ("config", "--check", "quickstart"),
)  # fmt: skip


@pytest.mark.parametrize("words", LISTING, ids=" ".join)
def test_a_verb_that_lists_names_loads_no_compiler_and_no_pictures(words: tuple[str, ...], tmp_path: Any) -> None:
    probe = (
        f"import sys; from ramp.cli.main import main; main({list(words)!r})\n"
        "sys.stderr.write(','.join(each for each in ('numba', 'scipy', 'matplotlib', 'spade') if each in sys.modules))"
    )
    environment = {"PATH": "/usr/bin:/bin", "RAMP_STATE": str(tmp_path), "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, env=environment, check=True)
    assert done.stderr.rpartition("\n")[2] == ""


def test_completing_a_verb_loads_nothing_of_the_laboratory(tmp_path: Any) -> None:
    environment = {"PATH": "/usr/bin:/bin", "RAMP_STATE": str(tmp_path), "PYTHONPATH": ":".join(sys.path)}
    environment |= {"_RAMP_COMPLETE": "bash_complete", "COMP_WORDS": "ramp show ", "COMP_CWORD": "2"}
    probe = (
        "import atexit, sys; from ramp.cli.main import cli\n"
        "atexit.register(lambda: sys.stderr.write(','.join(each for each in sys.modules if 'simulation' in each)))\n"
        "cli.main(prog_name='ramp', complete_var='_RAMP_COMPLETE')"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, env=environment, check=False)
    assert (done.stdout.strip(), done.stderr) == ("", "")


NEW = ("rfq", "new", "--cores", "4", "--walltime", "1h", "--price", "5")


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.parametrize("words", [*((*words, "--help") for words in COMMANDS), NEW], ids=" ".join)
def test_an_output_that_cannot_be_written_is_an_error_about_the_output(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with Path("/dev/full").open("w") as full, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        assert main(words) == 1
    assert capsys.readouterr().err == "ramp: cannot write the output: disk full\n"


def test_messages_that_cannot_be_written_do_not_change_the_exit_code() -> None:
    with suppress(OSError), Path("/dev/full").open("w", buffering=1) as full, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", full)
        assert main(["rfq", "new", "--cores", "x"]) == 2


@pytest.mark.usefixtures("full_disk")
def test_a_request_on_a_full_disk_leaves_no_file(tmp_path, ramp):
    assert ramp(*NEW, "-o", str(tmp_path / "job.xml"), code=1).err == f"ramp: disk full: {tmp_path / 'job.xml'}\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("full_disk")
def test_an_older_file_stays_whole(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    with pytest.raises(StorageFailed, match="disk full"):
        write_output(tmp_path / "old", "new")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("old", "old")]


def test_a_device_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_output(pipe, "text")
    assert (os.read(reader, 9), pipe.is_fifo()) == (b"text", True)
    os.close(reader)


@pytest.mark.usefixtures("full_disk")
def test_a_launch_on_a_full_disk_says_so_before_it_starts_anything(tmp_path: Path) -> None:
    state = state_folder(tmp_path / "state")
    with pytest.raises(StorageFailed, match="disk full"):
        start_detached(tmp_path / "market.toml", state)
    assert not (state.logs / "supervisor.log").exists()


WITHOUT = "import sys; sys.modules['numba'] = sys.modules['matplotlib'] = None; from ramp.cli.main import main"


@pytest.mark.parametrize("machine", ["flat:64", "bgl"])
def test_simulations_run_as_written_and_say_so_once(log: Path, machine: str) -> None:
    arguments = ["simulate", "--machine", machine, "--log", str(log), "--scheduler", "easy"]
    environment = {name: value for name, value in os.environ.items() if name != AS_WRITTEN}
    done = subprocess.run(
        [sys.executable, "-c", f"{WITHOUT}; sys.exit(main({arguments!r}))"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        f"numba is not installed: inner loops run uncompiled, many times slower; install it with {INSTALL_LAB}"
    ]
    assert "utilisation" in done.stdout


def test_nothing_is_said_where_numba_is_there_or_unwanted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(AS_WRITTEN, raising=False)
    tell_loops()
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setenv(AS_WRITTEN, "1")
    tell_loops()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("simulate --machine flat:64 --log LOG --scheduler easy --gantt OUT/gantt.png", "--gantt: "),
        ("simulate --machine flat:64 --log LOG --scheduler easy --timeline OUT/timeline.png", "--timeline: "),
        ("smap bgl --png OUT/map.png", "--png: "),
        ("smap bgl --svg OUT/map.svg", "--svg: "),
        ("experiment run rounds --quick --out OUT/results", ""),
        ("sweep OUT/rounds.toml --out OUT/sweep", ""),
    ],
)
def test_pictures_are_refused_before_any_work(words, option, log, tmp_path, monkeypatch, ramp):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    (tmp_path / "rounds.toml").write_text('run = "experiment rounds"\n[vary]\nseed = [1, 2]\n')
    before = sorted(tmp_path.iterdir())
    arguments = [word.replace("LOG", str(log)).replace("OUT", str(tmp_path)) for word in words.split()]
    told = ramp(*arguments, code=2)
    assert told.out == ""
    assert told.err == f"ramp: {option}pictures need matplotlib; install it with {INSTALL_LAB}\n"
    assert sorted(tmp_path.iterdir()) == before
