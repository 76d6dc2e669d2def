"""Completion of ids and names, and what the verbs that only list names may import."""

import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from click.shell_completion import ShellComplete

from ramp.cli import completing
from ramp.cli.main import cli
from ramp.client import access
from ramp.client.market import Market
from ramp.errors import NoMarket
from tests.unit.cli.every_command import COMMANDS

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
    monkeypatch.setattr(completing, "LIMIT_S", 0)
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
