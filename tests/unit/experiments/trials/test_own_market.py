"""The experiment on rounds with another rule, price strategy, requests and machines than the paper's."""

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ramp.errors import ConfigurationError
from ramp.model.instant import HOUR, MINUTE
from simulation.cli.experiment import experiment
from simulation.experiments.market import rounds
from simulation.experiments.trials.own_market import OwnMarket

RFQ = """<RequestForQuotation xmlns="http://www.realitygrid.org/AHE/RFQ">
<Request><CPUHourCost>65</CPUHourCost><EndDate>2030-01-01</EndDate><EndTime>16:00:00Z</EndTime>
<StartDate>2030-01-01</StartDate><StartTime>12:00:00Z</StartTime><WallTime>10800</WallTime>
<Cores><TotalCores>32</TotalCores></Cores></Request>
<Request><CPUHourCost>70</CPUHourCost><EndDate>2030-01-01</EndDate><EndTime>16:00:00Z</EndTime>
<Cores><Nodes><NodeCount>2</NodeCount><NodeCores>4</NodeCores></Nodes></Cores></Request>
</RequestForQuotation>"""


@pytest.fixture
def requests_file(tmp_path: Path) -> Path:
    path = tmp_path / "job.xml"
    path.write_text(RFQ)
    return path


def test_a_files_units_are_requests_of_their_own(requests_file: Path) -> None:
    first, second = OwnMarket(requests=str(requests_file)).wishes()
    assert (first.price, first.cores, first.lead, first.wall, first.slack) == (65, 32, 5 * MINUTE, 3 * HOUR, HOUR)
    assert (second.price, second.cores, second.wall, second.slack) == (70, 8, HOUR, 0)


def test_what_is_not_there_is_said_with_what_is() -> None:
    with pytest.raises(ConfigurationError, match="did you mean 'second-price'"):
        OwnMarket(rule="second_price")
    with pytest.raises(ConfigurationError, match="fragmentation"):
        OwnMarket(pricing="cheap")
    with pytest.raises(ConfigurationError, match=r"a file or one of .*table2"):
        OwnMarket(swarm="table3").resources()


def test_machines_and_prices_of_ones_own() -> None:
    found = OwnMarket(pricing="ramp-2014", swarm="quickstart").resources()
    assert {each.pricing for each in found} == {"ramp-2014"}
    assert [each.name for each in found] != [each.name for each in OwnMarket().resources()]


@pytest.mark.slow
def test_rounds_by_another_rule(tmp_path: Path, requests_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All auctions of a sealed rule have one round, so all pay alike in one market."""
    monkeypatch.setattr(rounds, "SPACING", 2 * MINUTE)
    command = "run rounds --quick --json --processes 1 --repeat 1"
    arguments = [*command.split(), "--out", str(tmp_path / "out")]
    arguments += ["--rule", "second-price", "--requests", str(requests_file), "--pricing", "ramp-2014"]
    result = CliRunner().invoke(experiment, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert summary["parameters"]["rule"] == "second-price"
    assert summary["parameters"]["requests"] == ["32 cores at 65", "8 cores at 70"]
    with (tmp_path / "out" / "rounds" / "auctions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 40  # in sequence, and in fresh markets
    assert {row["status"] for row in rows} == {"committed"}
    assert sum(summary["verdicts"].values()) == 0, "the paper says nothing of this"
    assert all(float(row["best_acceptable"]) <= float(row["price"]) <= float(row["asking_price"]) for row in rows)


def test_other_experiments_know_no_rule(tmp_path: Path) -> None:
    result = CliRunner().invoke(experiment, ["run", "units", "--rule", "second-price", "--out", str(tmp_path)])
    assert result.exit_code != 0
    assert "has no such option" in str(result.exception)
