"""What plug-ins are declared and isolated, and what the configuration of them and of all else refuses."""

import re
import shutil
from importlib import metadata
from pathlib import Path

import pytest

from ramp.entry_points import entry_points
from ramp.errors import ConfigurationError, RampError
from ramp.model.instant import SECOND
from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration.values import PLUGIN_GROUP, GuestLimits, entry_point, has_own_process
from ramp.shipped_files import find_config
from tests.packages import install
from tests.tiny_market import config_of, tiny_market

SWARM = tiny_market({"alice": 1}, prices={"site": (40, 20)})


def foreign(folder: Path, name: str) -> metadata.EntryPoint:
    found = metadata.PathDistribution(install(folder, name, f"[{PLUGIN_GROUP}]\nother = other:Machine\n"))
    (entry,) = found.entry_points
    return entry


def test_what_comes_with_ramp_has_none_unless_told() -> None:
    entry = entry_point(PLUGIN_GROUP, "steady")
    assert not has_own_process(entry, "auto")
    assert has_own_process(entry, "process")


@pytest.mark.parametrize(("name", "has"), [("other-site", True), ("RAMP_Market", False), ("ramp-market-two", True)])
def test_what_another_distribution_brings_has_one_unless_told(tmp_path: Path, name: str, has: bool) -> None:
    entry = foreign(tmp_path, name)
    assert has_own_process(entry, "auto") is has
    assert not has_own_process(entry, "none")


def test_one_of_unknown_origin_has_one() -> None:
    assert has_own_process(metadata.EntryPoint("other", "other:Machine", PLUGIN_GROUP), "auto")


def test_limits_are_read() -> None:
    config = config_of(
        f'{SWARM}isolation = "process"\n[guests]\nquote_s = 2.5\nwaiting_max = 9\nmemory_mb = 900\n'
        'environment = ["SGE_ROOT"]\n'
    )
    assert config.resources[0].isolation == "process"
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


GROUP = "ramp.test_group"


def test_they_are_those_of_the_standard_library() -> None:
    for group in ("ramp.pricing", "ramp.commands", "console_scripts"):
        assert entry_points(group) == list(metadata.entry_points(group=group)) != []
    assert entry_points(GROUP) == []


def test_what_comes_and_goes_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "site"
    first = install(folder, "first", f"[{GROUP}]\none = first:thing\n")
    monkeypatch.syspath_prepend(str(folder))
    assert [entry.name for entry in entry_points(GROUP)] == ["one"]
    install(folder, "second", f"[{GROUP}]\ntwo = second:thing\n")
    assert sorted(entry.name for entry in entry_points(GROUP)) == ["one", "two"]
    shutil.rmtree(first)
    assert [entry.value for entry in entry_points(GROUP)] == ["second:thing"]


def test_no_file_is_read_a_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    before = entry_points("ramp.pricing")
    monkeypatch.setattr(metadata, "entry_points", lambda **_: pytest.fail("read again"))
    assert entry_points("ramp.pricing") == before != []


HOSTILE = (
    *(
        "-1",
        "0",
        "nan",
        "inf",
        "1e400",
        "70.5",
        "1" + "0" * 30,
        "true",
        "[]",
        "{}",
        "1979-05-27",
        "1979-05-27T07:32:00Z",
    ),
    *(
        "1979-05-27T07:32:00Z",
        '""',
        '"\\u0000"',
        '"x"',
        '"-5"',
        '"1e15"',
        '"+99999999d"',
        '"/dev/full"',
        '"ünï"',
        '"' + "x" * 300 + '"',
    ),
)
KEY = re.compile(r"(?m)^([a-z_]+) = (.+)$")


def keys() -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    for name in ("real", "torus", "table2", "quickstart"):
        found |= {match[1]: name for match in KEY.finditer(find_config(name).read_text("utf-8"))}
    return sorted(found.items())


@pytest.mark.parametrize(("key", "name"), keys())
def test_no_value_of_a_key_is_a_fault_of_the_program(key: str, name: str, tmp_path: Path) -> None:
    text = find_config(name).read_text("utf-8")
    place = next(match for match in KEY.finditer(text) if match[1] == key)
    for value in HOSTILE:
        path = tmp_path / "market.toml"
        path.write_text(f"{text[: place.start(2)]}{value}{text[place.end(2) :]}", "utf-8")
        told = ""
        try:
            load_config(path)
        except RampError as error:
            told = str(error)
        assert len(told) < 4000, (key, value)
