"""Every key of the shipped configurations is tried with hostile values: each is taken, or refused with its name."""

import re
from pathlib import Path

import pytest

from ramp.errors import RampError
from ramp.runtime.configuration.file import load_config
from ramp.runtime.shipped_swarms import find_config

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
