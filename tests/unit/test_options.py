"""Options read into dataclasses: every finding with its path, its line and the nearest right name."""

from __future__ import annotations

import enum
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any

import pytest

from ramp.errors import ConfigurationError
from ramp.options import Bounds, Wanted, described_options, line_of, path_of, read_options, value_of_text


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
