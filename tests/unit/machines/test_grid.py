"""Numbering of units and lines, rotations, shapes of a size."""

from itertools import product

import pytest

from ramp.errors import MachineError
from simulation.machines.grid import Grid, bits_of, rotations, shapes_of_size


@pytest.mark.parametrize("extents", [(8, 4, 4), (5,), (3, 2), (2, 3, 2, 3)])
def test_units_count_with_the_last_dimension_fastest(extents):
    grid = Grid(extents)
    for number, place in enumerate(product(*map(range, extents))):
        assert grid.unit(place) == number
        assert grid.coordinates(number) == place
    assert grid.size == number + 1


def test_places_outside_are_refused():
    for place in [(8, 0, 0), (0, -1, 0), (0, 0)]:
        with pytest.raises(MachineError, match="are outside the machine"):
            Grid((8, 4, 4)).unit(place)
    with pytest.raises(MachineError, match="at least 1"):
        Grid((4, 0))


def test_bits_of_a_product():
    grid = Grid((3, 2, 4))
    members = ((0, 2), (1,), (0, 3))
    assert list(bits_of(grid.bits(members))) == sorted(grid.unit(place) for place in product(*members))


def test_lines_through_a_box():
    grid = Grid((8, 4, 4))
    box = ((2, 3), (1, 2), (0, 3))
    crossing = [grid.line_coordinates(0, line) for line in grid.lines_through(0, box)]
    assert crossing == [(1, 0), (1, 3), (2, 0), (2, 3)]
    assert [grid.line_coordinates(1, line) for line in grid.lines_through(1, box)] == [(2, 0), (2, 3), (3, 0), (3, 3)]
    assert [grid.line_count(d) for d in range(3)] == [16, 32, 32]
    assert {grid.line(2, (x, y)) for x in range(8) for y in range(4)} == set(range(32))
    assert Grid((5,)).line_coordinates(0, 0) == ()


def test_rotations_begin_with_the_shape_as_given_and_have_no_doubles():
    assert rotations((1, 2, 3))[0] == (0, 1, 2)
    assert len(rotations((1, 2, 3))) == 6
    assert len(rotations((1, 2, 2))) == 3
    assert len(rotations((2, 2, 2))) == 1


def test_shapes_of_a_size():
    assert shapes_of_size(8, (8, 4, 4)) == [(1, 1, 8), (1, 2, 4), (2, 2, 2)]
    assert shapes_of_size(7, (8, 4, 4)) == [(1, 1, 7)]
    assert shapes_of_size(11, (8, 4, 4)) == [(1, 2, 6), (1, 3, 4), (2, 2, 3)]  # no box has 11: the next is 12
    assert shapes_of_size(128, (8, 4, 4)) == [(4, 4, 8)]
    assert shapes_of_size(129, (8, 4, 4)) == []
