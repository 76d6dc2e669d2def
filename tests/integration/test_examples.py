"""The examples and the page on simulating run as they say, and the examples are as short as they should be."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner

import ramp
from ramp.cli.main import main
from ramp.plugins.interface import PluginSettings
from simulation.cli.simulate import simulate
from simulation.resource.modelled import open_plugin
from tests.packages import install

EXAMPLES = Path(__file__).parents[2] / "examples"
LINES_MAX = 40


@pytest.mark.parametrize(
    "name", ["own_allocator", "own_auction_rule", "own_experiment", "own_price", "own_scheduler", "purchase"]
)
def test_an_example_is_short(name: str) -> None:
    assert len((EXAMPLES / f"{name}.py").read_text("utf-8").splitlines()) < LINES_MAX


@pytest.mark.parametrize("name", ["own_scheduler.py", "own_allocator.py"])
def test_an_example_runs_as_it_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (EXAMPLES / name).read_text("utf-8")
    command = re.search(r"^ramp simulate ((?:.*\\\n)*.*)", text, re.MULTILINE)
    assert command is not None
    monkeypatch.chdir(EXAMPLES.parent)
    arguments = [*shlex.split(command[1].replace("\\\n", " ")), "--json"]
    arguments += [] if "--max-jobs" in arguments else ["--max-jobs", "300"]
    result = CliRunner().invoke(simulate, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["jobs"] == 300


@pytest.mark.slow
def test_an_auction_rule_of_ones_own_buys_by_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (EXAMPLES / "own_auction_rule.py").read_text("utf-8")
    (place,) = re.findall(r"^ramp submit request.xml --rule (\S+)$", text, re.MULTILINE)
    monkeypatch.chdir(EXAMPLES.parent)
    wanted = ramp.request(cores=64, wall_time="1h", start="+10min", price=70)
    with ramp.launch("table2", transport="simulated") as market:
        usual = market.quote(wanted, rounds=1)
        bought = market.submit(wanted, rounds=1, rule=place)
        second = market.quote(wanted, rule="second-price")
        mean = market.quote(wanted, rule=place.replace("AsLongAsItFalls", "HalfWay"))
        with pytest.raises(ramp.MarketRefused, match="did you mean 'second-price'"):
            market.quote(wanted, rule="secondprice")
    assert bought.committed
    assert len(usual.rounds) == 1
    assert len(bought.rounds) > 3, "it goes on as long as the price falls, whatever the user wants"
    asked = [dict(record.asked)[1] for record in bought.rounds]
    assert asked == sorted(asked, reverse=True)
    assert bought.units[0].price_paid == min(asked)
    assert bought.outcome.rule.endswith("own_auction_rule.py:AsLongAsItFalls")
    assert all(not record.refusals or record.offers for record in second.rounds)
    (best,) = second.units
    offers = sorted(offer.cost for offer in second.rounds[0].offers)
    assert (best.bought.offer.cost, best.cost) == (offers[0], offers[1])
    (half,) = mean.units
    assert (half.bought.offer.cost, half.cost) == (offers[0], (offers[0] + offers[1]) // 2)


@pytest.mark.slow
def test_a_price_of_ones_own_sells(tmp_path: Path) -> None:
    """On Table 2's machines a request in four sizes is sold by both rules; the dearest is within what was asked."""
    example = EXAMPLES / "own_price.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, cwd=tmp_path, check=True)
    line = r"^(the paper's rule|by load): sold at ([\d, ]+) credits .* with (\d+) messages$"
    told = re.findall(line, done.stdout, re.MULTILINE)
    assert [name for name, _, _ in told] == ["the paper's rule", "by load"]
    for _, prices, messages in told:
        sold = [int(price) for price in prices.split(", ")]
        assert len(sold) == 4
        assert max(sold) <= 75
        assert int(messages) > 0
    assert told[0][1] != told[1][1]


@pytest.mark.slow
def test_an_experiment_of_ones_own_draws_its_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = EXAMPLES / "own_experiment.py"
    assert main(["experiment", "run", f"{example}:STUDY", "--out", str(tmp_path), "--quick"]) == 0
    assert "rounds  price" in capsys.readouterr().out
    folder = tmp_path / "own-rounds"
    summary = json.loads((folder / "summary.json").read_text())
    first, *_, last = summary["runs"]
    assert last["price"] < first["price"] <= 70
    assert (folder / "prices.png").read_bytes().startswith(b"\x89PNG")
    assert "| `price` | credits per core hour |" in (folder / "columns.md").read_text()


@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells one after the other, each shown value kept; it is stored without outputs, as the format says."""
    notebook = json.loads((EXAMPLES / "market_and_machine.ipynb").read_text("utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert sum(len(cell["source"]) for cell in cells) < LINES_MAX
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for cell in cells:
        exec("".join(cell["source"]), names)
    study, runs = names["study"], names["runs"]
    assert study.prices["round"].tolist() == [*range(1, 11)]
    assert study.purchases[0].committed
    assert runs["easy"].metrics.mean_wait_s < runs["fcfs"].metrics.mean_wait_s
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "transport", [pytest.param("simulated", marks=pytest.mark.slow), pytest.param("embedded", marks=pytest.mark.e2e)]
)
def test_a_purchase_simulated_and_over_xmpp(transport: str, tmp_path: Path) -> None:
    example = EXAMPLES / "purchase.py"
    done = subprocess.run(
        [sys.executable, example, transport], capture_output=True, text=True, cwd=tmp_path, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr
    quoted, bought, reserved, left, back = done.stdout.splitlines()
    assert re.fullmatch(r"3 rounds; the best offer costs [\d ]+\.\d\d credits", quoted)
    resource = re.fullmatch(r"bought 64 cores on (\w+) from (.*):(.*) to (.*)", bought)[1]
    assert reserved.startswith("active: ")
    assert f"--reservation={resource}-" in reserved
    paid = re.fullmatch(r"given back: ([\d ]+\.\d\d) credits", back)[1]
    assert float(paid.replace(" ", "")) > 0
    assert left.endswith("credits are left")
    assert not list(tmp_path.iterdir())


PAGE = Path(__file__).parents[2] / "docs" / "simulating-and-extending.md"
FILE = re.compile(r"^`([^`]+)`[^\n]*:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
READER = """
import contextlib, io, json, sys
from ramp.cli.main import main
for command, python in json.load(sys.stdin):
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        code = exec(python, {}) if python else main(command)
    assert not code and told.getvalue(), f"{command or python} ended with {code} and told {told.getvalue()!r}"
"""
"""Runs what it reads in one process: the start of each costs more than what it does."""


def install_page(folder: Path) -> None:
    """What pip makes of the page's pyproject.toml, as far as anybody looks at it."""
    text = (folder / "pyproject.toml").read_text()
    groups = re.sub(r'\[project\.entry-points\."([^"]+)"\]', r"[\1]", text[text.index("[project.entry-points") :])
    install(folder, "my-policies", groups.replace('"', ""))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_file_and_command_of_the_page_works(tmp_path: Path) -> None:
    page = PAGE.read_text("utf-8")
    files = {match.start(2): match for match in FILE.finditer(page)}
    for match in files.values():
        (tmp_path / match[1]).write_text(match[2])
    shutil.copy(PAGE.parents[1] / "examples" / "own_machine.py", tmp_path)
    install_page(tmp_path)
    steps: list[tuple[list[str], str]] = []
    for block in BLOCK.finditer(page):
        if block[1] == "console":
            steps += [(shlex.split(line)[2:], "") for line in block[2].splitlines() if line.startswith("$ ramp ")]
        elif block.start(2) not in files:
            steps.append(([], block[2]))
    assert len(steps) > 15
    done = subprocess.run(
        [sys.executable, "-c", READER],
        input=json.dumps(steps),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "gantt.png").stat().st_size > 10_000
    assert len((tmp_path / "trace.jsonl").read_text().splitlines()) == 501  # the machine, then the jobs


def test_the_files_of_the_page_work_by_name_and_in_a_live_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for match in FILE.finditer(PAGE.read_text("utf-8")):
        if match[1].endswith((".py", ".toml")):
            (tmp_path / match[1]).write_text(match[2])
    install_page(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert {entry.name for entry in metadata.entry_points(group="ramp.schedulers")} >= {"shortest"}
    options = {"machine": "bgl", "load": 0, "scheduler": "shortest", "scheduler_options": {"patience_h": 2}}
    machine = open_plugin(PluginSettings("mine", 128 * 1024, 2, 0, options))
    assert machine.live.queue._scheduler.patience == 2 * 3600 * 1_000_000
