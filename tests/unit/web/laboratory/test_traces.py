"""Traces as they are played; expected places, counts and bars are counted by hand."""

import json
from pathlib import Path

import pytest

from ramp.errors import DocumentError
from ramp.web.laboratory.traces import (
    bars_around,
    drawn_at,
    elapsed_text,
    moment_of,
    most_processors,
    read_trace,
    waiting_at,
)
from ramp.web.machines.torus_map import Kind

GOLDEN = Path(__file__).parents[3] / "golden" / "traces"
"""Written by hand: job 1 a whole line along x from 0 to 100, 4 one midplane from 20 to 50, 3 the whole machine."""

BGL = {"extents": [8, 4, 4], "cables": {"x": [(0, 1)] * 14, "y": [(0, 1)] * 4, "z": [(0, 1)] * 4}}


def line(number, submit, start, end, nodes, **more):
    return {"job_number": number, "submit_time": submit, "start_time": start, "end_time": end, "nodes": nodes, **more}


@pytest.fixture
def trace(tmp_path):
    """Reads a trace of these lines."""

    def read(*lines):
        told = (each if isinstance(each, str) else json.dumps(each) for each in lines)
        (tmp_path / "t.jsonl").write_text("\n".join(['{"trace": 1, "machine": "bgl"}', *told]))
        machine, stays = read_trace(tmp_path, "t.jsonl")
        assert machine == "bgl"
        return stays

    return read


def test_the_machine_at_a_second_of_a_trace():
    machine, played = read_trace(GOLDEN, "bgl-first-fit.jsonl")
    assert machine == "bgl"
    at_30 = drawn_at(played, BGL, 30)
    assert {each.name: len(each.places) for each in at_30.occupants} == {"1": 8, "2": 2, "4": 1}
    assert ((at_30.units, at_30.dimensions, at_30.left_out), waiting_at(played, 30)) == ((128, 3, 0), 1)
    assert len(at_30.occupied(moment_of(30))) == 11
    # a job ends before its last second, and begins with its first
    assert [each.name for each in drawn_at(played, BGL, 100).occupants] == ["2"]
    assert drawn_at(played, BGL, 99.5).occupants[0].places[:2] in (((0, 0, 0), (1, 0, 0)), ((0, 0, 1), (1, 0, 1)))
    # the whole machine waits until the pair is done
    assert [each.name for each in drawn_at(played, BGL, 305).occupants] == ["3"]


def test_segments_and_reservations_are_played(trace):
    grown = line(1, 0, 10, 30, "bgl[000x001]", segments=[
        {"start_time": 10, "end_time": 20, "nodes": "bgl000"},
        {"start_time": 20, "end_time": 30, "nodes": "bgl[000x001]"},
    ])  # fmt: skip
    played = trace(grown, {"reservation": "slot", "start_time": 5, "end_time": 15, "nodes": "bgl100"},
                   {"out": "down", "start_time": 0, "end_time": 9, "nodes": "bgl733"})  # fmt: skip
    assert [(each.name, each.kind, len(each.places)) for each in drawn_at(played, BGL, 12).occupants] == [
        ("1", Kind.JOB, 1),
        ("reservation slot", Kind.SOLD, 1),
    ]
    assert [len(each.places) for each in drawn_at(played, BGL, 25).occupants] == [2]
    assert (waiting_at(played, 5), waiting_at(played, 15)) == (1, 0)


@pytest.mark.parametrize("wrong", ["{", "3", "[]", "{}"])
def test_a_line_that_is_none_of_a_trace_is_named(trace, wrong):
    with pytest.raises(DocumentError, match=r"t\.jsonl: line 3 is not a line of a trace"):
        trace(line(1, 0, 0, 10, "bgl000"), wrong)


def test_only_traces_of_the_folder_are_read(trace, tmp_path):
    with pytest.raises(DocumentError, match="is empty"):
        trace()
    (tmp_path / "secret.json").touch()
    for name in ("secret.json", "none.jsonl", "../t.jsonl", "..", f"../{tmp_path.name}/t.jsonl"):
        with pytest.raises(DocumentError, match="no trace"):
            read_trace(tmp_path, name)


def test_units_of_another_machine_are_counted_and_not_drawn(trace):
    played = trace(line(1, 0, 0, 10, "bgl000"), line(2, 0, 0, 10, "bgl900"), line(3, 0, 0, 10, "../../etc"))
    drawn = drawn_at(played, BGL, 1)
    assert ([each.name for each in drawn.occupants], drawn.left_out) == (["1"], 2)


@pytest.mark.parametrize("first", ['{"trace": 2, "machine": "bgl"}', '{"job_number": 1}', "[]"])
def test_a_trace_begins_with_its_version_and_machine(tmp_path, first):
    (tmp_path / "t.jsonl").write_text(first)
    with pytest.raises(DocumentError, match=r"t\.jsonl: line 1 is not a line of a trace"):
        read_trace(tmp_path, "t.jsonl")


def test_a_flat_machine_has_bars_around_the_second_that_is_played(trace):
    played = trace(
        line(1, 0, 0, 100, "4"), line(2, 0, 50, 200, "2"), line(3, 60, 100, 150, "4"), line(4, 90, 150, 160, "1")
    )
    assert most_processors(played) == 6
    bars = {bar.name: bar for bar in bars_around(played, 6, 80, 1000)}
    assert {name: bar.kind for name, bar in bars.items()} == {
        "1": "running", "2": "running", "3": "waiting", "4": "not submitted yet",
    }  # fmt: skip
    assert {name: (bar.first_core, bar.cores) for name, bar in bars.items()} == {
        "1": (0, 4), "2": (4, 2), "3": (0, 4), "4": (0, 1),
    }  # fmt: skip
    assert {bar.kind for bar in bars_around(played, 6, 300, 1000)} == {"ended"}
    assert [bar.name for bar in bars_around(played, 6, 175, 15)] == ["2"]


def test_seconds_are_told_as_days_and_hours():
    assert elapsed_text(2 * 86_400 + 3 * 3600 + 4 * 60 + 5) == "day 2 03:04:05, second 183845"
