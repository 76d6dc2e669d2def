"""Runs of experiments, with a program in place of the command line that does as it is told."""

import asyncio
import sys
import time

import pytest

from ramp.errors import ConfigurationError
from ramp.web.laboratory.folder import ResultsFolder
from ramp.web.laboratory.options import OfferedExperiment, RunOptions
from ramp.web.laboratory.runs import NotTheKeeper, Runs, RunState
from ramp.web.security.sessions import Role, Session

KEEPER = Session("key", "keeper", Role.KEEPER, 0)
BOB = Session("other", "bob", Role.USER, 0)
LIMIT_S = 300.0

PROGRAM = """
import json, pathlib, signal, sys, time
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
async def runs(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    found = Runs(ResultsFolder(tmp_path), (sys.executable, str(program)))
    yield found
    await found.end()


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


async def test_a_run_ends_with_the_server(runs, tmp_path):
    runs.start(KEEPER, experiment("long"), RunOptions())
    await until((tmp_path / "ready").exists)
    await runs.end()
    assert runs.past[-1].state is RunState.STOPPED
    assert (tmp_path / "cleared").exists()


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
    nothing = Runs(ResultsFolder(tmp_path), (sys.executable, "-c", 'import sys; sys.exit("there is no verb")'))
    with pytest.raises(ConfigurationError, match="has failed: there is no verb"):
        await nothing.offered()
    with pytest.raises(ConfigurationError, match="cannot be begun"):
        await Runs(ResultsFolder(tmp_path), (str(tmp_path / "none"),)).offered()


async def test_a_program_that_cannot_be_begun_is_a_failure_of_the_run(tmp_path):
    runs = Runs(ResultsFolder(tmp_path), (str(tmp_path / "none"),))
    runs.start(KEEPER, experiment("good"), RunOptions())
    await until(lambda: runs.past[-1].is_over)
    assert (runs.past[-1].state, "cannot be started" in runs.past[-1].problem) == (RunState.FAILED, True)
