"""Every host list of the fact sheet on Slurm's Blue Gene support, as later Slurm reads and prints it."""

from pathlib import Path

import pytest

from ramp.errors import MachineError
from simulation.machines.hostlist import compress, expand, expand_coordinates

EXAMPLES = [
    tuple(field.strip() for field in line.split("|"))
    for line in (Path(__file__).parent / "hostlist.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]


def test_none_of_the_examples_was_lost():
    assert len(EXAMPLES) == 38


@pytest.mark.parametrize(("text", "count", "printed"), EXAMPLES, ids=[example[0] for example in EXAMPLES])
def test_example(text, count, printed):
    if printed.startswith("!"):
        with pytest.raises(MachineError, match=printed[2:]):
            expand(text)
        return
    names = expand(text)
    assert len(names) == int(count)
    assert compress(names) == (text if printed == "=" else printed)


def test_expansions_that_the_documentation_writes_out():
    assert expand("bgl[200x311]") == ["bgl200", "bgl201", "bgl210", "bgl211", "bgl300", "bgl301", "bgl310", "bgl311"]
    assert expand("bg[620x731]") == ["bg620", "bg621", "bg630", "bg631", "bg720", "bg721", "bg730", "bg731"]
    assert expand("bg[012x123]") == ["bg012", "bg013", "bg022", "bg023", "bg112", "bg113", "bg122", "bg123"]
    assert expand("bgl[00Ax01B]") == ["bgl00A", "bgl00B", "bgl01A", "bgl01B"]
    assert expand("linux[00-03]") == ["linux00", "linux01", "linux02", "linux03"]


def test_a_lower_case_digit_is_no_midplane():
    with pytest.raises(MachineError, match="invalid name bglb00; expected 'bgl' and 3 digits"):
        expand_coordinates("bgl000,bglb00", "bgl", 3)


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("bgl[200x133]", "200x133"),
        ("bgl000,bgl[000x1", "["),
        ("bgl[000x00a]", "a"),
        ("a,,b", ","),
        ("bgl[000x0011]", "000x0011"),
        ("bgl[000x001]x", "x"),
        ("bgl[0[1]]", "["),
        ("bgl]", "]"),
        ("bGl000", "G"),
        ("linux[9-3]", "9-3"),
        ("linux[000-99]", "000-99"),
        ("a[0-1]b[0-1]", "["),
        ("bgl[000x011,100y111]", "y"),
        ("n[0-99999999]", "0-99999999"),
    ],
)
def test_a_malformed_list_is_shown_where_it_is_wrong(text, marked):
    with pytest.raises(MachineError) as caught:
        expand(text)
    _, shown, marks = str(caught.value).split("\n")
    assert shown == f"  {text}"
    start, end = marks.index("^"), marks.rindex("^") + 1
    assert shown[start:end] == marked
