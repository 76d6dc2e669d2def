"""Runs of experiments, with a program in place of the command line that does as it is told."""

import asyncio
import sys
import time

import pytest

from ramp.errors import ConfigurationError
from ramp.web.laboratory.runs import Runs, answer_of, arguments

LIMIT_S = 300.0

PROGRAM = """
import json, pathlib, signal, sys, time
words = sys.argv[1:]
if words[1] == "list":
    print(json.dumps([{"name": name, "about": "", "options": []} for name in ("good", "bad")]))
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
    say("ramp: a log is missing")
    sys.exit(2)
else:
    def end(*_):
        (out / "cleared").touch()
        sys.exit(143)
    signal.signal(signal.SIGTERM, end)
    (out / "ready").touch()
    time.sleep(600)
"""


@pytest.fixture
async def runs(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    found = Runs(tmp_path, (sys.executable, str(program)))
    yield found
    await found.end()


async def until(holds):
    end = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


async def test_a_run_tells_its_progress_and_ends(runs, tmp_path):
    assert list(await runs.offered()) == ["good", "bad"]
    runs.start("good", {"seed": 5.0, "quick": True})
    assert (runs.latest.state, runs.latest.total) == ("running", 0)
    await until(lambda: runs.latest.is_over)
    assert (runs.latest.state, runs.latest.done, runs.latest.total, runs.latest.left) == ("done", 4, 4, "")
    words = f"experiment run good --seed=5 --quick --out {tmp_path} --progress-every 1"
    assert (tmp_path / "words").read_text() == words


async def test_why_a_run_has_failed_is_told_in_its_own_words(runs):
    runs.start("bad", {})
    await until(lambda: runs.latest.is_over)
    assert (runs.latest.state, list(runs.latest.said)) == ("failed", ["ramp: a log is missing", "exit code 2"])


async def test_results_are_replaced_only_if_that_is_chosen(runs, tmp_path):
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "summary.json").touch()
    with pytest.raises(ConfigurationError, match="good has results"):
        runs.start("good", {"replace": False})
    assert runs.latest is None
    runs.start("good", {"replace": True})
    await until(lambda: runs.latest.is_over)
    assert runs.latest.state == "done"


async def test_a_run_that_is_stopped_clears_up_and_then_another_may_begin(runs, tmp_path):
    runs.start("long", {})
    await until((tmp_path / "ready").exists)
    await until(lambda: runs.latest.left == "30 s")
    with pytest.raises(ConfigurationError, match="long is still running"):
        runs.start("good", {})
    runs.stop()
    assert runs.latest.state == "stopping"
    await until(lambda: runs.latest.is_over)
    assert (runs.latest.state, (tmp_path / "cleared").exists()) == ("stopped", True)
    runs.start("good", {})
    await until(lambda: runs.latest.is_over)
    assert runs.latest.state == "done"


async def test_a_run_that_is_stopped_at_once_has_no_results(runs, tmp_path):
    runs.start("good", {})
    runs.stop()
    await until(lambda: runs.latest.is_over)
    assert (runs.latest.state, (tmp_path / "words").exists()) == ("stopped", False)


async def test_a_run_ends_with_its_server(runs, tmp_path):
    runs.start("long", {})
    await until((tmp_path / "ready").exists)
    await runs.end()
    assert (runs.latest.state, (tmp_path / "cleared").exists()) == ("stopped", True)


async def test_a_command_that_fails_is_told_in_its_own_words():
    with pytest.raises(ConfigurationError, match="`ramp smap x` failed: no such verb"):
        await answer_of("smap", "x", command=(sys.executable, "-c", 'import sys; sys.exit("no such verb")'))


def test_options_are_those_of_the_command_line():
    values = {"seed": 7.0, "repeat": None, "xmpp": True, "replace": False, "rule": "second-price", "log": "CTC-3.1:338"}
    assert arguments({**values, "pricing": ""}) == ["--seed=7", "--xmpp", "--rule=second-price", "--log=CTC-3.1:338"]


@pytest.mark.parametrize("value", ["/tmp/rule.py:Rule", "os:system", "../secret.toml", "--out", "a b", "a\n", ["a"]])
def test_a_browser_names_no_file(value):
    with pytest.raises(ConfigurationError, match="--rule: expected a name"):
        arguments({"rule": value})
