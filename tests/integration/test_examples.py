"""The examples run as their first lines say, and are as short as they should be."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

import ramp
from simulation.cli.simulate import simulate

FOLDER = Path(__file__).parents[2] / "examples"
LINES_MAX = 40


@pytest.mark.parametrize("name", ["own_scheduler.py", "own_allocator.py"])
def test_an_example_runs_as_it_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (FOLDER / name).read_text("utf-8")
    assert len(text.splitlines()) < LINES_MAX
    command = re.search(r"^ramp simulate ((?:.*\\\n)*.*)", text, re.MULTILINE)
    assert command is not None
    monkeypatch.chdir(FOLDER.parent)
    arguments = [*shlex.split(command[1].replace("\\\n", " ")), "--json"]
    arguments += [] if "--max-jobs" in arguments else ["--max-jobs", "300"]
    result = CliRunner().invoke(simulate, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["jobs"] == 300


@pytest.mark.slow
def test_an_auction_rule_of_ones_own_buys_by_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (FOLDER / "own_auction_rule.py").read_text("utf-8")
    assert len(text.splitlines()) < LINES_MAX
    (place,) = re.findall(r"^ramp submit request.xml --rule (\S+)$", text, re.MULTILINE)
    monkeypatch.chdir(FOLDER.parent)
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
