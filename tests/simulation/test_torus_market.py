"""The protocol on live torus machines, with every checker and faults."""

from random import Random

import pytest

from ramp.model.slot import StaticTerms
from ramp.plugins.interface import PluginSettings
from ramp.protocol.resource.seller import PriceRange
from simulation import swarm
from simulation.market.specs import ResourceSpec
from simulation.market.world import START
from simulation.resource.modelled import open_plugin
from tests.swarm.markets import run


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.slow if seed > 2 else []) for seed in range(1, 7)]
)
def test_the_protocol_keeps_its_invariants_on_live_machines_under_faults(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The swarm's small markets, with every checker, where each machine is a live torus."""

    def live_resource(name: str, random: Random, _: Random | None) -> ResourceSpec:
        options = {"machine": random.choice(("angara-4x4x2", "angara-4x2x2x2")), "load": random.choice((0, 0.5))}
        settings = PluginSettings(name, 256, 8, START, options | {"base_time_s": 86_400}, seed=seed)
        minimum = random.randint(20, 60)
        prices = PriceRange(minimum + random.randint(0, 40), minimum)
        return ResourceSpec(name, open_plugin(settings), StaticTerms(256, 8, torus=True), prices)

    monkeypatch.setattr(swarm, "_draw_resource", live_resource)
    report = run(seed)
    assert report.violation is None, f"{report.checker}: {report.violation}"
    assert report.messages > 0
