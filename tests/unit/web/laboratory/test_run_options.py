"""What a browser asks of a run becomes arguments of a command, and nothing else."""

import json

import pytest

from ramp.errors import ConfigurationError
from ramp.web.laboratory.options import OfferedExperiment, RunOptions, arguments, offered_experiments

ROUNDS = OfferedExperiment("rounds", "", frozenset({"mode", "repeat", "rule", "pricing", "swarm", "requests"}))
PLAIN = OfferedExperiment("bluegene", "", frozenset({"whole_logs"}))


def test_options_are_those_of_the_command_line():
    assert arguments(PLAIN, RunOptions()) == ["bluegene", "--seed", "1", "--quick"]
    asked = RunOptions(
        quick=False, replace=True, seed=7.0, processes=2, repeat=3, mode="xmpp", words={"rule": "second-price"}
    )
    assert arguments(ROUNDS, asked) == [
        "rounds", "--seed", "7", "--replace", "--processes", "2", "--repeat", "3", "--xmpp", "--rule", "second-price",
    ]  # fmt: skip
    assert "--whole-logs" in arguments(PLAIN, RunOptions(whole_logs=True))
    logs = OfferedExperiment("queue-bound", "", frozenset({"log"}))
    assert arguments(logs, RunOptions(words={"log": "CTC-SP2-1996-3.1-cln:338"}))[-2:] == [
        "--log",
        "CTC-SP2-1996-3.1-cln:338",
    ]


@pytest.mark.parametrize(
    ("experiment", "options", "told"),
    [
        (ROUNDS, RunOptions(words={"rule": "/tmp/rule.py:Rule"}), "--rule: '/tmp/rule.py:Rule'"),
        (ROUNDS, RunOptions(words={"rule": "os:system"}), "--rule: 'os:system'"),
        (ROUNDS, RunOptions(words={"swarm": "../secret.toml"}), "--swarm"),
        (ROUNDS, RunOptions(words={"pricing": "--out"}), "--pricing: '--out'"),
        (ROUNDS, RunOptions(words={"requests": "etc"}), "requests: no option"),
        (ROUNDS, RunOptions(words={"log": "CTC"}), "--log: the experiment rounds knows no such option"),
        (PLAIN, RunOptions(mode="xmpp"), "--xmpp: the experiment bluegene knows no such option"),
        (ROUNDS, RunOptions(mode="--out"), "mode: '--out'"),
        (ROUNDS, RunOptions(whole_logs=True), "--whole-logs"),
        (PLAIN, RunOptions(repeat=2), "--repeat"),
        (ROUNDS, RunOptions(seed=-1), "--seed: -1"),
        (ROUNDS, RunOptions(seed=None), "--seed: None"),
        (ROUNDS, RunOptions(seed="1; rm"), "--seed"),
        (ROUNDS, RunOptions(repeat=1.5), "--repeat: 1.5"),
        (ROUNDS, RunOptions(processes=True), "--processes: True"),
        (ROUNDS, RunOptions(processes=10**9), "--processes"),
    ],
)
def test_anything_else_is_refused_by_name(experiment, options, told):
    with pytest.raises(ConfigurationError) as caught:
        arguments(experiment, options)
    assert told in str(caught.value)


def test_the_list_of_experiments_is_checked():
    listed = [
        {"name": "rounds", "about": "a", "options": ["repeat"]},
        {"name": "--help", "about": "a", "options": []},
        {"name": "old", "about": "a"},
        7,
    ]
    assert offered_experiments(json.dumps(listed)) == (OfferedExperiment("rounds", "a", frozenset({"repeat"})),)
    assert offered_experiments("{}") == ()
    with pytest.raises(ConfigurationError, match="no JSON"):
        offered_experiments("Experiment  About")
