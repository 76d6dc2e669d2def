"""Host lists of random sets: exact, disjoint, in order."""

from hypothesis import given
from hypothesis import strategies as st

from simulation.machines.hostlist import compress, compress_coordinates, cover, expand, unit_name

coordinates = st.tuples(st.integers(0, 12), st.integers(0, 4), st.integers(0, 35))
small_sets = st.sets(st.tuples(*[st.integers(0, 3)] * 3), min_size=1)
four_dimensional = st.sets(st.tuples(*[st.integers(0, 2)] * 4), min_size=1)


@given(st.sets(coordinates, min_size=1) | small_sets | four_dimensional)
def test_expanding_what_was_compressed_gives_each_name_once(cells):
    names = {unit_name("n", cell) for cell in cells}
    dimensions = len(next(iter(cells)))
    text = compress(names, dimensions=dimensions)
    assert text == compress_coordinates("n", cells)
    expanded = expand(text)
    assert len(expanded) == len(names)
    assert set(expanded) == names


@given(small_sets)
def test_boxes_come_in_the_order_of_their_first_corner_and_cannot_grow(cells):
    boxes = cover(cells)
    assert [low for low, _ in boxes] == sorted(low for low, _ in boxes)
    for low, high in boxes:
        assert all(first <= last for first, last in zip(low, high, strict=True))


@given(st.lists(st.sampled_from([f"linux{i}" for i in range(130)] + [f"node{i:02}" for i in range(30)] + ["login"])))
def test_numbered_hosts_come_back(names):
    if names:
        assert set(expand(compress(names, dimensions=1))) == set(names)
        assert len(expand(compress(names, dimensions=1))) == len(set(names))


@given(st.text(alphabet="bgl[]0123x-,AZ ", max_size=20))
def test_any_text_is_expanded_or_refused_with_a_mark_inside_it(text):
    from ramp.errors import MachineError

    try:
        names = expand(text)
    except MachineError as error:
        lines = str(error).split("\n")
        assert "^" in lines[-1]
        assert lines[-1].index("^") - 2 <= len(text)
    else:
        assert names
