"""Texts and values of other parties: no verb passes a control character on, no generated script runs one."""

import dataclasses
import enum
import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from ramp.cli.main import main
from ramp.cli.options import ReadAs, RealNumber, WholeNumber
from ramp.cli.views.launch_snippets import SNIPPETS, snippet
from ramp.cli.views.output import console, visible_output
from ramp.client.dialogues import converse
from ramp.client.machine_state import parse_snapshot
from ramp.client.market import call
from ramp.control import events as ev
from ramp.control.requests import Request
from ramp.control.status import ServerStatus, SwarmStatus
from ramp.errors import RampError
from ramp.model import contents
from ramp.model.contents.jobs import Delivery, JobState
from ramp.model.instant import HOUR
from ramp.model.request import RequestUnit, TotalCores
from ramp.protocol.outcome import ChangeOutcome
from ramp.protocol.progress import RequestEnded
from ramp.runtime import logs as events
from ramp.runtime.logs import keep_events, record
from ramp.runtime.state_folder import StateFolder
from ramp.text import is_printable, one_line, printable, visible
from tests.hostile import NUMBERS, TEXTS, TIMES
from tests.unit.cli.every_command import COMMANDS
from tests.unit.cli.test_qstat import SNAPSHOT
from tests.unit.conftest import START, Script, agreement, offer

ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\x08\r\u202e\u2066\u200b\u2028\ufeff\U000e0041"
SHELL = "; touch OWNED # $(touch OWNED) `touch OWNED` ' \" \\ {0} %s\ntouch OWNED\nopen('OWNED', 'w')\n"
MARKUP = "[red]x[/red] <img src=x onerror=alert(1)>"
HOSTILE = ESCAPES + SHELL + MARKUP
OWN_WORDS = ("source", "state", "user", "kind")
"""Fields with words of a closed list, or of the user's own."""


def poisoned(value: Any) -> Any:
    """The same value with hostile text behind every text in it; ids keep their beginning, by which they are found."""
    match value:
        case enum.Enum() | Mapping():
            return value
        case str():
            return f"{value.partition('@')[0]}{HOSTILE}"
        case tuple():
            return tuple(map(poisoned, value))
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            changes = {each.name: poisoned(getattr(value, each.name)) for each in dataclasses.fields(value)}
            kept = {name: getattr(value, name) for name in OWN_WORDS if name in changes}
            return replace(value, **{**changes, **kept})
    return value


AGREEMENT = agreement(
    replace(offer(), placement="n[1-4]", source="live"),
    RequestUnit(1, 70, START + HOUR, TotalCores(64), wall_time=HOUR),
    "r1",
)
ENDED: RequestEnded = Script.ended()
ORDER = contents.JobOrder("job-1", "agreement-1", 1, 1, START, ("hostname",))
STATUS = contents.JobStatus(
    "job-1", "agreement-1", JobState.DONE, "slurm", "alice", START, Delivery.ON_TIME, "12", 1, START, START, 0, "done"
)  # fmt: skip
LINE = contents.StatementLine("payment:1", START, "payment", "thunder1@localhost", "agreement-1", -200, 300)
TRADE = contents.TradeLine("payment:1", START, "payment", "alice@localhost", "ricc@localhost", "agreement-1", "o", 200)
HOSTILE_JOBS = [{**SNAPSHOT["running"][0], "job": HOSTILE, "user": HOSTILE}]  # type: ignore[index]
NOT_DONE = ChangeOutcome("agreement-1", 0, False, 1, START, code="no", detail="not now")
ANSWERS: dict[str, tuple[ev.Event, ...]] = {
    "Submit": (Script.submitted, Script.opened, Script.closed, Script.advanced, ENDED),
    "ListRequests": (
        ev.RequestsListed((ev.RequestStanding("request-1", "committed", "doubt", 1, START, ENDED.outcome),)),
    ),
    "Watch": (ENDED,),
    "ListAgreements": (
        ev.AgreementsListed(
            (
                ev.AgreementStanding(
                    AGREEMENT, "active", "doubt", moved=contents.SlotMoved("agreement-1", "r1", "n[5-8]", START)
                ),
            )
        ),
    ),
    "AgreementCancelled": (ev.ChangesEnded((replace(NOT_DONE, ends=True),)),),
    "AgreementResized": (ev.ChangesEnded((NOT_DONE,)),),
    "ListJobs": (ev.JobsListed((ev.JobStanding(ORDER, "request-1", "thunder1@localhost", START, STATUS),)),),
    "JobQuery": (STATUS,),
    "JobCancellation": (STATUS,),
    "JobSubmitted": (ev.Refused(ev.MarketRefusalCode.JOB_REFUSED, "no account"),),
    "AccountAsked": (contents.AccountStatement("nonce", "alice@localhost", START, 300, 0, 0, (LINE,)),),
    "MachineAsked": (contents.MachineStatus("query-1", json.dumps({**SNAPSHOT, "running": HOSTILE_JOBS})),),
    "ResourcesAsked": (contents.DirectoryListing("query-1", "resource-trader", ("thunder1@localhost",)),),
    "OverviewQuery": (
        contents.MarketOverview(
            "query-1", START, (contents.AccountLine("alice@localhost", "user", 300, 0, 70_000),), (TRADE,)
        ),
    ),
    "DepositOrder": (contents.DepositMade("deposit-1", "deposit:1", 5),),
    "RefundOrder": (contents.ChangePosted("agreement-1", 0, "refund:1", -5),),
}


class HostileMarket:
    """A market whose every answer is hostile; access and connection at once."""

    user = "alice"
    domain = "localhost"
    users = ("alice",)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def now(self) -> int:
        return START - 2 * HOUR

    def new_id(self, kind: str) -> str:
        return f"{kind}-1"

    async def open(self) -> Self:
        return self

    reopen = open  # noqa: A003

    async def events(self, request: Request) -> AsyncGenerator[ev.Event, None]:
        for event in ANSWERS[type(getattr(request, "word", request)).__name__]:
            hostile = poisoned(event)
            if isinstance(event, contents.MachineStatus):
                hostile = event  # a JSON object, hostile within
            if isinstance(event, contents.DirectoryListing):
                hostile = replace(hostile, names=event.names + hostile.names)
            yield hostile


SERVER = ServerStatus("embedded", "127.0.0.1", 5222, 2)
UP = SwarmStatus("up", "2026-12-01T10:00:00Z", 1, "swarm.toml", SERVER, (), "localhost")
VERBS = [
    "status", "reservations", "reservations --all", "show request-1", "show agreement-1",
    "cancel agreement-1", "resize agreement-1 --cores 1", "jobs", "jobs job-1", "balance", "balance --statement",
    "launch agreement-1 -- hostname", "qstat thunder1", "resources", "submit {job}", "quote {job}", "events",
    "bank overview", "bank deposit alice 5", "bank refund agreement-1 --reason lost", "doctor",
    *(f"show agreement-1 --as {style}" for style in SNIPPETS),
]  # fmt: skip


@pytest.fixture
def ramp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Run a verb against the hostile market; return what it printed."""
    state = StateFolder(tmp_path / "state")
    state.prepare()
    end = keep_events(state.events / "curie1.jsonl", rotate_bytes=100_000, keep=1, in_log=False)
    record("curie1", f"refusal{ESCAPES}", f"refused{HOSTILE}", reason=HOSTILE)
    end()
    market = HostileMarket()
    monkeypatch.setenv("RAMP_STATE", str(state.path))
    monkeypatch.setattr("ramp.cli.connection.find_market", lambda *_: market)
    monkeypatch.setattr("ramp.cli.connection.status", lambda _: UP)
    monkeypatch.setattr("ramp.cli.verbs.accounts.running", lambda _: UP)
    monkeypatch.setattr("ramp.cli.verbs.accounts.ask_keeper", lambda _, dialogue: call(converse, market, dialogue))
    job = tmp_path / "job.xml"
    made = ["rfq", "new", "--cores", "8", "--price", "70", "--start", "+1h", "--walltime", "1h", "-o", str(job)]
    assert main(made) == 0
    capsys.readouterr()

    def run(verb: str, *more: str) -> tuple[int, str, str]:
        code = main([*(word.format(job=job) for word in verb.split()), *more])
        return (code, *capsys.readouterr())

    return run


SAYS_NOTHING_OF_OTHERS = ("balance", "bank deposit", "doctor")


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_passes_a_control_character_on(verb: str, ramp: Callable[..., Any]) -> None:
    code, out, err = ramp(verb)
    assert code in (0, 1), err
    assert all(is_printable(line) for line in (out + err).split("\n"))
    assert "OWNED" in out + err or verb.startswith(SAYS_NOTHING_OF_OTHERS)
    if "--" not in verb.replace("--all", ""):
        _, out, err = ramp(verb, "--json")
        assert all(is_printable(line) for line in (out + err).split("\n"))
        json.loads(out)


def test_json_stays_the_same_json(ramp: Callable[..., Any]) -> None:
    (found,) = json.loads(ramp("reservations", "--json")[1])
    assert found["placement"] == f"n[1-4]{HOSTILE}"


def test_tables_at_a_terminal_take_no_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = io.StringIO()
    monkeypatch.setattr(sys, "stdout", drawn)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with visible_output():
        console().print(Text(HOSTILE, style="red"))
        print(HOSTILE)
    coloured, plain = drawn.getvalue().split("\x1b[0m", 1)
    assert coloured.startswith("\x1b[31m")
    assert "\\u001b[2J" in coloured
    assert all(
        is_printable(line) for line in (coloured[5:] + plain).replace("\x1b[31m", "").replace("\x1b[0m", "").split("\n")
    )


@given(st.text())
def test_what_is_shown_has_no_hidden_character(text: str) -> None:
    assert all(is_printable(line) for line in visible(text).replace("\t", "").split("\n"))
    assert is_printable(printable(text))
    assert is_printable(one_line(text))
    assert json.loads(visible(json.dumps(text, ensure_ascii=False))) == text


WORDS = (
    "r1; touch OWNED #",
    "$(touch OWNED)",
    "`touch OWNED`",
    "' ; touch OWNED ; '",
    '" ; touch OWNED ; "',
    "r1\ntouch OWNED\n",
    "\\'; open('OWNED', 'w') #",
    "{open('OWNED', 'w')}",
    HOSTILE,
)
STUBS = {
    "psij.py": "class Any:\n    def __init__(self, *_, **__): pass\n"
    "    get_instance = submit = lambda *_, **__: Any()\n"
    "Job = JobAttributes = JobExecutor = JobSpec = ResourceSpecV1 = Any\n",
    **{
        f"parsl/{name}.py": f"{kind} = lambda *_, **given: given\n"
        for name, kind in {
            "__init__": "Nothing", "config": "Config", "executors": "HighThroughputExecutor",
            "launchers": "SrunLauncher", "providers": "SlurmProvider",
        }.items()
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Launchers and libraries that do nothing."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "parsl").mkdir()
    for name, text in STUBS.items():
        (folder / name).write_text(text)
    for name in ("sbatch", "qsub", "mpirun", "scontrol"):
        (folder / name).write_text("#!/bin/sh\necho ' NodeCnt=2 '\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.parametrize("word", WORDS, ids=range(len(WORDS)))
@pytest.mark.parametrize("style", SNIPPETS)
def test_nothing_of_the_seller_s_runs(style: str, word: str, programs: Path, tmp_path: Path) -> None:
    """A certified seller's reservation id, placement and name, in every snippet that the buyer pastes."""
    bought = replace(
        AGREEMENT,
        agreement_id=f"agreement-1{word}",
        reservation_id=word,
        resource=f"thunder1{word}",
        offer=replace(AGREEMENT.offer, placement=word),
    )
    for source in ("live", "log"):
        shown = snippet(style, replace(bought, offer=replace(bought.offer, source=source)), str)
        command = [sys.executable, "-c", shown] if style in ("psij", "parsl") else ["bash", "-ec", shown]
        environment = {"PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(programs)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert list(tmp_path.iterdir()) == []


def test_the_environment_holds_the_very_id(tmp_path: Path) -> None:
    bought = replace(AGREEMENT, reservation_id="r1; touch OWNED #")
    shown = snippet("env", bought, str) + '\nprintf %s "$RAMP_RESERVATION"'
    done = subprocess.run(["bash", "-ec", shown], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "r1; touch OWNED #"


def test_a_log_line_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(logging.getLogger(), "level", logging.WARNING)
    events.log_to_stderr(logging.WARNING)
    logging.getLogger("ramp").warning("refused by %s", HOSTILE)
    events.as_json_lines()
    logging.getLogger("ramp").warning("refused by %s", HOSTILE)
    text, plain = capsys.readouterr().err.splitlines()
    assert is_printable(text)
    assert is_printable(plain)
    assert json.loads(plain)["message"] == f"refused by {HOSTILE}"


def test_a_machine_s_own_words_are_printable() -> None:
    said = {**SNAPSHOT, "architecture": HOSTILE, "running": HOSTILE_JOBS, HOSTILE: [HOSTILE]}
    state = parse_snapshot(json.dumps(said), "thunder1")
    assert is_printable(f"{state.architecture}{state.running}{state.snapshot}")
    assert state.running[0].job == printable(HOSTILE)


NEVER_RIGHT = {
    "numbers": ("0", "1,", "1.5", "-1", "x"),
    "moment": TIMES,
    "duration": (*TIMES, "-1"),
    "credits": NUMBERS,
}
"""Values that no option of a type takes, by the type's name."""

STARTS_SOMETHING = {
    "up", "demo", "web", "demo-slurm", "swarm", "simulate", "sweep", "smap", "experiment", "papers", "plugins", "logs",
}  # fmt: skip
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
