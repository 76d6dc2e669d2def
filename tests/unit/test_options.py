"""Options read into dataclasses: every finding with its path, its line and the nearest right name."""

import enum
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any

import pytest

from ramp.errors import ConfigurationError
from ramp.options import (
    Bounds,
    Wanted,
    Written,
    described_options,
    line_of,
    path_of,
    read_options,
    value_of_text,
    written_seconds,
)


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Wheel:
    spokes: Annotated[int, Bounds(1, 36)]
    colour: Colour = Colour.RED


@dataclass(frozen=True)
class Bicycle:
    """A bicycle.

    Attributes:
        name: what it is called.
        wheels: one table each.
    """

    name: Annotated[str, Wanted("a name", bool)]
    wheels: tuple[Wheel, ...] = ()
    load: Annotated[float, Bounds(0, 1)] | None = None
    speed: Fraction = Fraction(1)
    bell: bool = False
    further: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.wheels) > 2:
            raise ConfigurationError("two are enough", key="wheels[2]")


TEXT = """\
name = "mine"   # a comment
load = 0.5
speed = 1.1
[further]
load = 9
[[wheels]]
spokes = 32
[[wheels]]
spokes = 28
colour = "blue"
"""


def test_a_table_becomes_its_dataclass() -> None:
    found = read_options(tomllib.loads(TEXT), Bicycle)
    assert found == Bicycle("mine", (Wheel(32), Wheel(28, Colour.BLUE)), 0.5, Fraction("1.1"), False, {"load": 9})
    assert isinstance(found.wheels[1].colour, Colour)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"mine"', "7", "b.toml:1: name: got 7, expected a text"),
        ('"mine"', '""', "b.toml:1: name: got '', expected a name"),
        ('name = "mine"', "", "b.toml: name: is missing; expected a name"),
        ("0.5", "true", "b.toml:2: load: got true, expected a number"),
        ("0.5", "1.5", "b.toml:2: load: got 1.5, expected a number from 0 to 1"),
        ("speed = 1.1", "sped = 1.1", "b.toml:3: sped: unknown; did you mean 'speed'?"),
        ("spokes = 28", "spokes = 2.5", "b.toml:9: wheels[1].spokes: got 2.5, expected a whole number"),
        ("spokes = 28", "", "b.toml:8: wheels[1].spokes: is missing"),
        ('"blue"', '"bleu"', "b.toml:10: wheels[1].colour: got 'bleu', expected one of red, blue"),
        ("[further]", "bell = 1\n[further]", "b.toml:4: bell: got 1, expected true or false"),
        ("[[wheels]]\nspokes = 28", "[[wheels]]\nspokes = 1\n[[wheels]]\nspokes = 28", "b.toml:10: wheels[2]: two are"),
    ],
)
def test_a_finding_has_its_line_and_what_would_be_right(old: str, new: str, message: str) -> None:
    text = TEXT.replace(old, new, 1)
    with pytest.raises(ConfigurationError) as caught:
        read_options(tomllib.loads(text), Bicycle, source="b.toml", text=text)
    assert str(caught.value).startswith(message)


@dataclass(frozen=True)
class Shop:
    """A shop.

    Attributes:
        break_: the pause at noon.
        open: from when on.
        closed: from when on, or never.
    """

    break_: Annotated[int, written_seconds()] = 1_500_000
    open: Annotated[int, written_seconds(2)] = 2_000_000
    closed: Annotated[int, Written("an hour", int, str, "_at")] | None = None


def test_a_value_may_be_written_in_another_form_under_another_key() -> None:
    assert read_options({}, Shop) == Shop()
    assert read_options({"break__s": 0.25, "open_s": 3, "closed_at": "7"}, Shop) == Shop(250_000, 3_000_000, 7)
    told = {each["name"]: (each["type"], each["default"]) for each in described_options(Shop)}
    assert told["break__s"] == ("a number of seconds above 0", "1.5")
    assert told["open_s"] == ("a number of seconds from 2", "2")
    assert told["closed_at"] == ("an hour", "")


@pytest.mark.parametrize(
    ("table", "told"),
    [
        *(
            ({"break__s": wrong}, "expected a number of seconds above 0")
            for wrong in (0, -1, True, "1", math.inf, None)
        ),
        ({"open_s": 1.5}, "open_s: got 1.5, expected a number of seconds from 2"),
        ({"closed_at": "noon"}, "closed_at: got 'noon', expected an hour"),
        ({"open": 3}, "open: unknown; did you mean 'open_s'?"),
    ],
)
def test_what_is_written_wrong_is_told_under_the_written_key(table: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_options(table, Shop)
    assert told in str(caught.value)


def test_all_findings_are_told_at_once() -> None:
    text = 'nam = "x"\nload = "much"\n[[wheels]]\nspokes = 99\n'
    with pytest.raises(ConfigurationError) as caught:
        read_options(tomllib.loads(text), Bicycle, source="b.toml", text=text)
    assert str(caught.value).splitlines() == [
        "b.toml: 5 errors".replace("5", "4"),
        "  line 1: nam: unknown; did you mean 'name'?",
        "  name: is missing; expected a name",
        "  line 3: wheels[0].spokes: got 99, expected a whole number from 1 to 36".replace("line 3", "line 4"),
        "  line 2: load: got 'much', expected a number",
    ]


def test_a_type_that_no_option_can_have_is_the_declarations_mistake() -> None:
    @dataclass
    class Odd:
        folder: complex

    with pytest.raises(ConfigurationError, match="unsupported type of an option"):
        read_options({"folder": "x"}, Odd)


def test_paths_and_lines() -> None:
    assert path_of("failed_links[0].node") == ("failed_links", 0, "node")
    assert line_of(TEXT, ("further", "load")) == 5
    assert line_of(TEXT, ("wheels", 1, "colour")) == 10
    assert line_of(TEXT, ("wheels", 7)) is None


def test_values_of_a_command_line() -> None:
    assert [value_of_text(text) for text in ("4", "true", "2.5", "waiting", '"4"', "[1, 2]")] == [
        4, True, 2.5, "waiting", "4", [1, 2],
    ]  # fmt: skip


def test_options_are_described() -> None:
    told = {one["name"]: one for one in described_options(Bicycle)}
    assert told["name"] == {"name": "name", "type": "a name", "default": "required", "about": "what it is called."}
    assert (told["load"]["type"], told["load"]["default"]) == ("number from 0 to 1", "")
    assert told["wheels"]["about"] == "one table each."
