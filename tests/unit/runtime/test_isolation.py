"""Which plug-ins and price strategies have processes of their own, and what the configuration says of guests."""

from importlib import metadata
from pathlib import Path

import pytest

from ramp.errors import ConfigurationError
from ramp.model.instant import SECOND
from ramp.runtime.configuration.values import PLUGIN_GROUP, GuestLimits, Isolation, entry_point, has_own_process
from tests.packages import install
from tests.tiny_market import config_of, tiny_market

SWARM = tiny_market({"alice": 1}, prices={"site": (40, 20)})


def foreign(folder: Path, name: str) -> metadata.EntryPoint:
    """An entry point of another distribution."""
    found = metadata.PathDistribution(install(folder, name, f"[{PLUGIN_GROUP}]\nother = other:Machine\n"))
    (entry,) = found.entry_points
    return entry


def test_what_comes_with_ramp_has_none_unless_told() -> None:
    entry = entry_point(PLUGIN_GROUP, "steady")
    assert not has_own_process(entry, Isolation.AUTO)
    assert has_own_process(entry, Isolation.PROCESS)


@pytest.mark.parametrize(("name", "has"), [("other-site", True), ("RAMP_Market", False), ("ramp-market-two", True)])
def test_what_another_distribution_brings_has_one_unless_told(tmp_path: Path, name: str, has: bool) -> None:
    entry = foreign(tmp_path, name)
    assert has_own_process(entry, Isolation.AUTO) is has
    assert not has_own_process(entry, Isolation.NONE)


def test_one_of_unknown_origin_has_one() -> None:
    assert has_own_process(metadata.EntryPoint("other", "other:Machine", PLUGIN_GROUP), Isolation.AUTO)


def test_limits_are_read() -> None:
    config = config_of(
        f'{SWARM}isolation = "process"\n[guests]\nquote_s = 2.5\nwaiting_max = 9\nmemory_mb = 900\n'
        'environment = ["SGE_ROOT"]\n'
    )
    assert config.resources[0].isolation is Isolation.PROCESS
    assert config.guests == GuestLimits(quote=5 * SECOND // 2, waiting_max=9, memory_mb=900, environment=("SGE_ROOT",))
    assert [config.guests.of(kind) // SECOND for kind in ("quote", "price", "change", "snapshot")] == [2, 5, 30, 5]


def test_what_is_wrong_is_told_with_what_would_be_right() -> None:
    with pytest.raises(ConfigurationError) as caught:
        config_of(
            f'{SWARM}isolation = "thread"\n[guests]\nquot_s = 2\nprice_s = 0\nopen_s = inf\nenvironment = "PATH"\n'
        )
    said = str(caught.value)
    for finding in (
        "resources[0].isolation: got 'thread', expected one of auto, process, none",
        "guests.quot_s: unknown; did you mean 'quote_s'?",
        "guests.price_s: got 0, expected a number of seconds above 0",
        "guests.open_s: got inf,",
        "guests.environment: got 'PATH', expected a list",
    ):
        assert finding in said
