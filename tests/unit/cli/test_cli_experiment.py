"""`ramp experiment`: what is listed, what is refused before a study begins, what tells its progress."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ramp.errors import ConfigurationError
from simulation.cli import experiment as cli
from simulation.cli.experiment import experiment
from simulation.cli.papers import papers
from simulation.cli.plugins import list_installed
from simulation.cli.progress import progress_lines
from simulation.experiments.comparison import Comparison
from simulation.experiments.result import Column, write_summary
from simulation.experiments.study import Study


def test_experiments_are_found_by_their_files() -> None:
    """The list is what the modules of simulation.experiments declare."""
    result = CliRunner().invoke(list_installed, ["experiment", "--json"], catch_exceptions=False)
    found = json.loads(result.stdout)
    options = {entry["name"]: {option["name"] for option in entry["options"]} for entry in found}
    assert options["bluegene"] == {"whole_logs"}
    assert {"mode", "repeat", "rule"} <= set(options["rounds"])
    names = list(options)
    assert {"bluegene", "angara", "malleable"} <= set(names)
    with pytest.raises(ConfigurationError, match="there are angara, bluegene"):
        CliRunner().invoke(experiment, ["run", "nonsense", "--out", "unused"], catch_exceptions=False)


def test_progress_without_a_terminal_is_a_line_now_and_then(capsys):
    now = [0.0]
    advance = progress_lines("users", lambda: now[0])
    for second in range(31):
        now[0] = float(second)
        advance(second, 90)
    told = capsys.readouterr()
    assert told.err.splitlines() == [
        "users: 10 of 90, about 80 s left",
        "users: 20 of 90, about 70 s left",
        "users: 30 of 90, about 60 s left",
    ]
    assert told.out == ""


def test_progress_is_told_as_often_as_is_asked_for(capsys):
    now = [0.0]
    advance = progress_lines("users", lambda: now[0], 0.5)
    for step in range(5):
        now[0] = step / 4
        advance(step, 4)
    assert capsys.readouterr().err.splitlines() == ["users: 2 of 4, about 0 s left", "users: 4 of 4, about 0 s left"]


def test_long_waits_are_told_in_minutes(capsys):
    now = [0.0]
    advance = progress_lines("bluegene", lambda: now[0])
    now[0] = 100.0
    advance(10, 70)
    assert capsys.readouterr().err == "bluegene: 10 of 70, about 10 min left\n"


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What is said of options with which no study may begin."""

    def begin(*_: Any, **__: Any) -> dict[str, Any]:
        raise AssertionError("the study has begun")

    monkeypatch.setattr("simulation.cli.experiment.run_into", begin)

    def run(*options: str) -> str:
        arguments = ["run", *options, "--out", str(tmp_path)]
        with pytest.raises(ConfigurationError) as caught:
            CliRunner().invoke(experiment, arguments, catch_exceptions=False)
        return str(caught.value)

    return run


def test_both_modes_at_once_are_refused(refused: Callable[..., str]) -> None:
    assert "--simulated and --xmpp exclude each other" in refused("rounds", "--xmpp", "--simulated")


@pytest.mark.parametrize("options", [(), ("rounds", "--all")])
def test_either_one_experiment_or_all(refused: Callable[..., str], options: tuple[str, ...]) -> None:
    assert "give the name of an experiment, or --all" in refused(*options)


@pytest.mark.parametrize(("name", "option"), [("bluegene", "--xmpp"), ("rounds", "--whole-logs")])
def test_options_of_other_experiments_are_refused(refused: Callable[..., str], name: str, option: str) -> None:
    assert f"{option}: the experiment {name} has no such option" in refused(name, option)


@pytest.mark.parametrize("in_the_way", ["folder", "file"])
def test_what_is_no_result_is_never_replaced(in_the_way: str, tmp_path: Path, refused: Callable[..., str]) -> None:
    path = tmp_path / "rounds"
    path.mkdir() if in_the_way == "folder" else path.write_text("mine")
    said = refused("rounds", "--replace")
    assert str(path) in said
    assert "is needed for the results of rounds" in said


def test_earlier_results_are_refused(tmp_path: Path, refused: Callable[..., str]) -> None:
    (tmp_path / "rounds").mkdir()
    (tmp_path / "rounds" / "summary.json").write_text('{"experiment": "rounds"}')
    assert "holds results already" in refused("rounds")
    assert "holds results already" in refused("--all")


def test_a_comparison_without_a_paper_has_its_header(tmp_path: Path) -> None:
    write_summary(
        tmp_path, experiment="new", seed=1, quick=True, parameters={}, comparisons=[], findings={}, columns={}
    )
    assert (tmp_path / "comparison.csv").read_text() == "what,paper,ours,unit,agrees_if,verdict,why,picture\n"


@pytest.fixture
def studies(monkeypatch: pytest.MonkeyPatch) -> dict[str, Study]:
    """Two experiments that take no time: all of `agreeing` agrees, one row of `differing` does not; one cannot run."""

    def study(name: str, ours: float, measure: Any = lambda _: {"x": 1}) -> Study:
        rows = [Comparison("what", 5, ours, "", tolerance=1, why="so it is")]
        return Study(
            name=name,
            about=f"about {name}",
            cases=lambda _: [0],
            measure=measure,
            columns={"x": Column("", "a number")},
            comparisons=lambda _: rows,
        )

    def fail(_: Any) -> dict[str, Any]:
        raise ConfigurationError("the log is not on this computer", key="log")

    found = {"agreeing": study("agreeing", 5.0), "differing": study("differing", 9.0)}
    found["missing"] = study("missing", 5.0, fail)
    monkeypatch.setattr(cli, "find_experiment", lambda name: found[name])
    monkeypatch.setattr(cli, "experiment_names", lambda: list(found))
    return found


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(experiment, arguments, catch_exceptions=False)


@pytest.mark.usefixtures("studies")
def test_a_difference_ends_with_1_only_where_that_is_wanted(tmp_path: Path) -> None:
    out = str(tmp_path)
    assert invoke("run", "differing", "--out", out).exit_code == 0
    assert invoke("run", "differing", "--out", out, "--replace", "--strict").exit_code == 1
    assert invoke("run", "agreeing", "--out", out, "--strict").exit_code == 0


@pytest.mark.usefixtures("studies")
def test_all_experiments_make_one_page_and_one_that_cannot_run_stops_no_other(tmp_path: Path) -> None:
    result = invoke("run", "--all", "--out", str(tmp_path), "--quick", "--json")
    assert result.exit_code == 1
    assert list(json.loads(result.stdout)) == ["agreeing", "differing"]
    assert "missing was not run: log: the log is not on this computer" in result.stderr
    page = (tmp_path / "index.html").read_text()
    assert "about agreeing" in page
    assert "DIFFERS (quick)" in page
    assert "missing was not run" in page
    assert str(tmp_path / "index.html") in result.stderr


@pytest.mark.usefixtures("studies")
def test_all_tells_how_many_rows_agree(tmp_path: Path) -> None:
    lines = invoke("run", "--all", "--out", str(tmp_path)).stdout.splitlines()
    assert [line.split()[:4] for line in lines[1:3]] == [["agreeing", "1", "0", "0"], ["differing", "0", "1", "0"]]


def test_the_headlines_of_the_papers_are_a_table(
    tmp_path: Path, studies: dict[str, Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simulation.cli.papers.HEADLINES", tuple(studies.values()))
    result = CliRunner().invoke(papers, ["--out", str(tmp_path), "--json"], catch_exceptions=False)
    assert result.exit_code == 1
    assert "missing was not run" in result.stderr
    assert json.loads(result.stdout) == [
        {"result": "about agreeing", "paper": "5", "here": "5.0", "verdict": "agrees", "experiment": "agreeing"},
        {"result": "about differing", "paper": "5", "here": "9.0", "verdict": "DIFFERS", "experiment": "differing"},
    ]
    assert "about differing" in (tmp_path / "index.html").read_text()
