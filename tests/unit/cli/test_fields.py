"""One declaration of fields gives JSON, CSV, tables and pairs."""

import json
from dataclasses import dataclass

import pytest

from ramp.cli.views.fields import AMOUNT, CREDITS, NUMBER, PROSE, Field, Fields, address


@dataclass(frozen=True)
class Slot:
    seller: str
    cores: int
    cost: int
    note: str | None = None


FIELDS: Fields[Slot] = Fields(
    Field("resource", "Resource", lambda slot: slot.seller, address(lambda name: name.partition("@")[0])),
    Field("cores", "Cores", lambda slot: slot.cores, NUMBER),
    Field("cost", "Cost", lambda slot: slot.cost, AMOUNT),
    Field("note", "Note", lambda slot: slot.note, PROSE, shown_if=lambda slot: slot.note is not None),
    Field("free", "", lambda slot: slot.cost == 0),
    Field("", "Size", lambda slot: slot.cores, text=lambda slot: "large" if slot.cores > 9 else "small"),
)
SLOTS = [Slot("curie1@localhost", 8, 123_450), Slot("thunder@localhost", 64, 0, "moved")]


def test_programs_get_exact_values_and_null(capsys: pytest.CaptureFixture[str]) -> None:
    FIELDS.print_list(SLOTS, as_json=True, empty="No slots")
    first, _ = json.loads(capsys.readouterr().out)
    assert first == {"resource": "curie1@localhost", "cores": 8, "cost": "1234.50", "note": None, "free": False}
    assert FIELDS.nothing() == dict.fromkeys(first)
    FIELDS.print_csv(SLOTS[:1])
    assert capsys.readouterr().out == "resource,cores,cost,note,free\ncurie1@localhost,8,1234.50,,False\n"


def test_people_get_a_table_whose_numbers_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    FIELDS.print_list(SLOTS, as_json=False, empty="No slots")
    assert capsys.readouterr().out.splitlines() == [
        "Resource  Cores      Cost  Note   Size",
        "curie1        8  1 234.50         small",
        "thunder      64      0.00  moved  large",
    ]
    FIELDS.print_table(SLOTS[:1])
    assert "Note" not in capsys.readouterr().out
    FIELDS.print_list([], as_json=False, empty="No slots")
    assert capsys.readouterr().out == "No slots\n"


def test_one_thing_is_shown_in_pairs_without_what_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    FIELDS.print_one(SLOTS[0], as_json=False)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["Resource", "Cores", "Cost", "Size"]
    FIELDS.print_one(SLOTS[0], as_json=True)
    assert json.loads(capsys.readouterr().out) == FIELDS.plain(SLOTS[0])
    cost: Fields[Slot] = Fields(Field("cost", "Cost", lambda slot: slot.cost, CREDITS))
    cost.print_pairs(SLOTS[0])
    assert capsys.readouterr().out.split() == ["Cost", "1", "234.50", "credits"]
