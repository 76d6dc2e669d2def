"""Traces as they are played; expected places, counts and bars are counted by hand."""

import json
from pathlib import Path

import pytest

from ramp.web.laboratory.folder import ResultsError
from ramp.web.laboratory.laboratory import machine_names
from ramp.web.laboratory.traces import (
    MachineShape,
    bars_between,
    drawn_at,
    elapsed_text,
    likely_machine,
    machine_shape,
    moment_of,
    parse_trace,
)
from ramp.web.machines.torus_map import Kind

GOLDEN = Path(__file__).parents[3] / "golden" / "traces" / "bgl-first-fit.jsonl"
"""Written by hand: job 1 a whole line along x from 0 to 100, 4 one midplane from 20 to 50, 3 the whole machine."""

BGL = MachineShape("bgl", (8, 4, 4), {"x": [(0, 1)] * 14, "y": [(0, 1)] * 4, "z": [(0, 1)] * 4})


def line(number, submit, start, end, nodes, **more):
    return {"job_number": number, "submit_time": submit, "start_time": start, "end_time": end, "nodes": nodes, **more}


def trace(*lines):
    return parse_trace("\n".join(each if isinstance(each, str) else json.dumps(each) for each in lines).encode(), "t")


def test_the_machine_at_a_second_of_a_trace():
    played = parse_trace(GOLDEN.read_bytes(), "golden")
    assert (played.jobs, played.begin_s, played.is_flat, played.left_out) == (4, 0, False, 0)
    at_30 = drawn_at(played, BGL, 30)
    assert {each.name: len(each.places) for each in at_30.occupants} == {"1": 8, "2": 2, "4": 1}
    assert ((at_30.units, at_30.dimensions, at_30.left_out), played.waiting(30)) == ((128, 3, 0), 1)
    assert len(at_30.occupied(moment_of(30))) == 11
    # a job ends before its last second, and begins with its first
    assert [each.name for each in played.at(100)] == ["2"]
    assert drawn_at(played, BGL, 99.5).occupants[0].places[:2] == ((0, 0, 0), (1, 0, 0))
    # the whole machine waits until the pair is done
    assert [(each.name, each.start_s) for each in played.at(305)] == [("3", 305)]


def test_segments_and_reservations_are_played():
    grown = line(1, 0, 10, 30, "bgl[000x001]", segments=[
        {"start_time": 10, "end_time": 20, "nodes": "bgl000"},
        {"start_time": 20, "end_time": 30, "nodes": "bgl[000x001]"},
    ])  # fmt: skip
    played = trace(grown, {"reservation": "slot", "start_time": 5, "end_time": 15, "nodes": "bgl100"})
    assert [(each.name, each.kind, len(each.places)) for each in drawn_at(played, BGL, 12).occupants] == [
        ("reservation slot", Kind.SOLD, 1),
        ("1", Kind.JOB, 1),
    ]
    assert [len(each.places) for each in drawn_at(played, BGL, 25).occupants] == [2]
    assert (played.jobs, played.waiting(5), played.waiting(15)) == (1, 1, 0)


def test_lines_that_make_no_sense_are_left_out_and_counted():
    right = line(1, 0, 0, 10, "bgl000")
    wrong = [
        "{", "3", "[]", "{}", '{"job_number": 1e999}', line("x", 0, 0, 1, "bgl000"), line(2, 0, 5, 1, "bgl000"),
        line(2, 0, "1", 2, "bgl000"), line(2, 0, True, 2, "bgl000"), line(2, 0, 1e300, 2e300, "bgl000"),
        line(2, 0, 0, 1, "1" * 10), line(2, 0, 0, 1, "bgl000", segments=[{}]),
        line(2, 0, 0, 1, "bgl000", segments={"a": 1}),
    ]  # fmt: skip
    played = trace(right, *wrong)
    assert (played.jobs, played.left_out) == (1, len(wrong))
    with pytest.raises(ResultsError, match="no trace; `ramp simulate"):
        trace("{}", "hello")


def test_units_of_another_machine_are_counted_and_not_drawn():
    played = trace(line(1, 0, 0, 10, "bgl000"), line(2, 0, 0, 10, "bgl900"), line(3, 0, 0, 10, "../../etc"))
    drawn = drawn_at(played, BGL, 1)
    assert ([each.name for each in drawn.occupants], drawn.left_out) == (["1"], 2)


@pytest.mark.parametrize(
    ("nodes", "machine"),
    [("bgl[000x733]", "bgl"), ("ang[0000x3311]", "angara-4x4x2x2"), ("tor000", "torus3d"), ("none000", "")],
)
def test_the_machine_is_guessed_by_names_and_coordinates(nodes, machine):
    assert likely_machine(trace(line(1, 0, 0, 10, nodes)), machine_names()) == machine


def test_a_flat_machine_has_bars_around_the_second_that_is_played():
    played = trace(
        line(1, 0, 0, 100, "4"), line(2, 0, 50, 200, "2"), line(3, 60, 100, 150, "4"), line(4, 90, 150, 160, "1")
    )
    assert (played.is_flat, played.most_processors()) == (True, 6)
    bars = {bar.name: bar for bar in bars_between(played, 6, 0, 1000, 80)}
    assert {name: bar.kind for name, bar in bars.items()} == {
        "1": "running", "2": "running", "3": "waiting", "4": "not submitted yet",
    }  # fmt: skip
    assert {name: (bar.first_core, bar.cores) for name, bar in bars.items()} == {
        "1": (0, 4), "2": (4, 2), "3": (0, 4), "4": (0, 1),
    }  # fmt: skip
    assert {bar.kind for bar in bars_between(played, 6, 0, 1000, 300)} == {"ended"}


def test_a_machine_is_what_smap_says_of_it():
    told = {"machine": "bgl", "extents": [8, 4, 4], "cables": {"x": [[0, 1]]}}
    assert machine_shape(json.dumps(told)) == MachineShape("bgl", (8, 4, 4), {"x": [(0, 1)]})
    for wrong in ("{", "[]", '{"machine": "m"}', '{"machine": "m", "extents": [0]}', '{"machine": "m", "extents": []}'):
        with pytest.raises(ResultsError, match="cannot be drawn"):
            machine_shape(wrong)


def test_seconds_are_told_as_days_and_hours():
    assert elapsed_text(2 * 86_400 + 3 * 3600 + 4 * 60 + 5) == "day 2 03:04:05, second 183845"
