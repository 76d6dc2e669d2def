"""Runs of experiments, with a program in place of the command line that does as it is told."""

import asyncio
import sys
import time
from dataclasses import replace

import pytest

from ramp.errors import ConfigurationError
from ramp.web.laboratory.folder import ResultsFolder
from ramp.web.laboratory.kept_runs import KeptRuns
from ramp.web.laboratory.options import OfferedExperiment, RunOptions
from ramp.web.laboratory.run import RunState
from ramp.web.laboratory.run_process import ProcessMark, RunProcess
from ramp.web.laboratory.runs import NotTheKeeper, Runs
from ramp.web.security.sessions import Role, Session

KEEPER = Session("key", "keeper", Role.KEEPER, 0)
BOB = Session("other", "bob", Role.USER, 0)
LIMIT_S = 300.0

PROGRAM = """
import json, os, pathlib, signal, sys, time
words = sys.argv[1:]
if words[1] == "list":
    print(json.dumps([{"name": name, "about": "", "options": []} for name in ("good", "bad", "long", "silent")]))
    sys.exit()
out = pathlib.Path(words[words.index("--out") + 1])
def say(text):
    print(text, file=sys.stderr, flush=True)
say(f"{words[2]}: 1 of 4, about 30 s left")
if words[2] == "good":
    say(f"{words[2]}: 4 of 4")
    print("x" * 300_000)
    (out / "words").write_text(" ".join(words))
elif words[2] == "bad":
    say("ramp: a log is missing: \\x1b[31mCTC")
    say("y" * 10_000)
    sys.exit(2)
elif words[2] == "silent":
    sys.exit(3)
elif words[2] == "later":
    (out / "ready").touch()
    while not (out / "go").exists():
        time.sleep(0.01)
    say(f"{words[2]}: 3 of 4")
    word = (out / "go").read_text()
    if word == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    print(json.dumps({"experiment": "later"}))
else:
    def end(*_):
        (out / "cleared").touch()
        sys.exit(143)
    signal.signal(signal.SIGTERM, end)
    (out / "ready").touch()
    time.sleep(600)
"""


def experiment(name):
    return OfferedExperiment(name, "", frozenset())


@pytest.fixture
async def server(tmp_path):
    """Begins servers one after the other: `server()` gives the runs of the next one, which takes up what is there."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    begun = []

    def begin():
        runs = Runs(ResultsFolder(tmp_path), KeptRuns(tmp_path / "kept"), (sys.executable, str(program)))
        runs.take_up()
        begun.append(runs)
        return runs

    yield begin
    for each in begun:
        await each.end()


@pytest.fixture
async def runs(server):
    return server()


def die(runs):
    """The server of these runs is killed: it hears and says nothing more, and its processes are nobody's children."""
    runs._task.cancel()
    runs._process._child = None
    runs._process = None


async def until(holds):
    end = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


async def test_a_run_tells_its_progress_and_ends(runs, tmp_path):
    told = []
    runs.listen(lambda: told.append((runs.past[-1].state, runs.past[-1].done, runs.past[-1].left)))
    assert [each.name for each in await runs.offered()] == ["good", "bad", "long", "silent"]
    runs.start(KEEPER, experiment("good"), RunOptions(seed=5))
    await until(lambda: runs.past[-1].is_over)
    assert told[0] == (RunState.RUNNING, 0, "")
    assert (RunState.RUNNING, 1, "30 s") in told
    assert told[-1] == (RunState.DONE, 4, "")
    assert (tmp_path / "words").read_text() == (
        f"experiment run good --seed 5 --quick --out {tmp_path} --progress-every 1 --json"
    )


async def test_why_a_run_has_failed_is_told_in_its_own_words(runs):
    runs.start(KEEPER, experiment("bad"), RunOptions())
    await until(lambda: runs.past[-1].is_over)
    assert runs.past[-1].state is RunState.FAILED
    first, second = runs.past[-1].problem.split("\n")
    assert first == "ramp: a log is missing:  [31mCTC"
    assert set(second) == {"y"}
    assert len(second) < 10_000
    runs.start(KEEPER, experiment("silent"), RunOptions())
    await until(lambda: runs.past[-1].is_over)
    assert "exit code 3" in runs.past[-1].problem


async def test_a_run_that_is_stopped_clears_up_and_then_another_may_begin(runs, tmp_path):
    runs.start(KEEPER, experiment("long"), RunOptions())
    await until((tmp_path / "ready").exists)
    with pytest.raises(ConfigurationError, match="long is still running; one runs at a time"):
        runs.start(KEEPER, experiment("good"), RunOptions())
    runs.stop(KEEPER)
    assert runs.past[-1].state is RunState.STOPPING
    await until(lambda: runs.past[-1].is_over)
    assert (runs.past[-1].state, runs.past[-1].problem) == (RunState.STOPPED, "")
    assert (tmp_path / "cleared").exists()
    runs.start(KEEPER, experiment("good"), RunOptions())
    await until(lambda: runs.past[-1].is_over)
    assert runs.past[-1].state is RunState.DONE


async def test_a_run_ends_with_a_demonstration(runs, tmp_path):
    runs.start(KEEPER, experiment("long"), RunOptions())
    await until((tmp_path / "ready").exists)
    await runs.end()
    assert runs.past[-1].state is RunState.STOPPED
    assert (tmp_path / "cleared").exists()


@pytest.mark.parametrize("in_good_order", [True, False])
async def test_a_run_goes_on_without_its_server_and_the_next_one_finds_it(in_good_order, server, tmp_path):
    first = server()
    first.start(KEEPER, experiment("later"), RunOptions(seed=7))
    await until((tmp_path / "ready").exists)
    await until(lambda: first.past[-1].done == 1)
    pid = first._process.mark.pid
    if in_good_order:
        await first.leave()
    die(first)
    second = server()
    assert (second.past[-1].state, second.past[-1].arguments) == (RunState.RUNNING, ("later", "--seed", "7", "--quick"))
    await until(lambda: second.past[-1].done == 1)
    with pytest.raises(ConfigurationError, match="later is still running"):
        second.start(KEEPER, experiment("good"), RunOptions())
    (tmp_path / "go").write_text("")
    await until(lambda: second.past[-1].is_over)
    assert (second.past[-1].state, second.past[-1].done) == (RunState.DONE, 3)
    assert ProcessMark.of(pid) is None
    assert server().past == second.past  # it is on record


async def test_a_run_that_was_found_again_can_be_stopped(server, tmp_path):
    first = server()
    first.start(KEEPER, experiment("long"), RunOptions())
    await until((tmp_path / "ready").exists)
    die(first)
    second = server()
    second.stop(KEEPER)
    await until(lambda: second.past[-1].is_over)
    assert (second.past[-1].state, (tmp_path / "cleared").exists()) == (RunState.STOPPED, True)


@pytest.mark.parametrize(("word", "state"), [("", RunState.DONE), ("die", RunState.FAILED)])
async def test_how_a_run_has_ended_while_no_server_was_there_is_told(word, state, server, tmp_path):
    first = server()
    first.start(KEEPER, experiment("later"), RunOptions())
    await until((tmp_path / "ready").exists)
    mark = first._process.mark
    die(first)
    (tmp_path / "go").write_text(word)
    await until(lambda: not mark.is_going())
    second = server()
    await until(lambda: second.past[-1].is_over)
    assert second.past[-1].state is state
    assert ("ended without an answer" in second.past[-1].problem) is (state is RunState.FAILED)


async def test_another_process_of_the_same_number_is_not_taken_for_the_run(runs, tmp_path):
    runs.start(KEEPER, experiment("long"), RunOptions())
    mark = runs._process.mark
    assert mark.is_going()
    assert not replace(mark, started=mark.started - 1).is_going()
    assert not replace(mark, boot="an earlier one").is_going()


def test_a_server_that_dies_before_the_run_is_on_record_leaves_none(tmp_path):
    words = ("-c", f"open({str(tmp_path / 'begun')!r}, 'w')")
    process = RunProcess.begin((sys.executable,), words, tmp_path / "said", tmp_path / "answer", 5)
    process._child.stdin.close()  # as when the server is gone
    assert process._child.wait(LIMIT_S) != 0
    assert not (tmp_path / "begun").exists()


async def test_a_record_that_makes_no_sense_is_left_aside(server, tmp_path, caplog):
    kept = tmp_path / "kept"
    kept.mkdir()
    for text, why in (('{"version": 1, "runs": [{"number": "x"}]}', "number"), ('{"version": 9}', "version is 9")):
        (kept / "runs.json").write_text(text)
        assert server().past == []
        assert why in caplog.text
        assert (kept / "runs.unread").read_text() == text


async def test_nobody_but_the_keeper_starts_or_stops_anything(runs, tmp_path):
    with pytest.raises(NotTheKeeper):
        runs.start(BOB, experiment("good"), RunOptions())
    assert runs.past == []
    runs.start(KEEPER, experiment("long"), RunOptions())
    await until((tmp_path / "ready").exists)
    with pytest.raises(NotTheKeeper):
        runs.stop(BOB)
    assert runs.past[-1].state is RunState.RUNNING


async def test_without_the_simulated_world_there_are_no_experiments(tmp_path):
    kept = KeptRuns(tmp_path / "kept")
    nothing = Runs(ResultsFolder(tmp_path), kept, (sys.executable, "-c", 'import sys; sys.exit("there is no verb")'))
    with pytest.raises(ConfigurationError, match="has failed: there is no verb"):
        await nothing.offered()
    with pytest.raises(ConfigurationError, match="cannot be begun"):
        await Runs(ResultsFolder(tmp_path), kept, (str(tmp_path / "none"),)).offered()


async def test_a_program_that_cannot_be_begun_is_a_failure_of_the_run(tmp_path):
    runs = Runs(ResultsFolder(tmp_path), KeptRuns(tmp_path / "kept"), (str(tmp_path / "none"),))
    runs.start(KEEPER, experiment("good"), RunOptions())
    await until(lambda: runs.past[-1].is_over)
    assert (runs.past[-1].state, "cannot be started" in runs.past[-1].problem) == (RunState.FAILED, True)
