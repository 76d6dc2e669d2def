"""Cables, their ports and link-set tables, against the numbers of Aridor et al. 2005 and the wirings of Slurm."""

from itertools import combinations, pairwise, permutations, product

import pytest

from ramp.errors import MachineError
from simulation.machines.bluegene.link_sets import Cable, LinkTable, build_link_table, parse_wiring, ring_wiring
from simulation.machines.interface import Connection

MESH, TORUS = Connection.MESH, Connection.TORUS
W14 = "1.4>0.3 2.2>0.5 0.2>1.5 1.2>3.5 2.4>3.3 4.2>2.5 3.4>2.3 3.2>5.5 4.4>5.3 6.2>4.5 5.4>4.3 5.2>7.5 6.4>7.3 7.2>6.5"
L14 = "0.2>1.5 1.2>2.5 2.2>3.5 3.2>4.5 4.2>5.5 5.2>6.5 6.2>7.5 7.2>0.5 1.4>0.3 5.4>4.3 2.4>7.3 7.4>2.3 3.4>6.3 6.4>3.3"
W16 = (
    "0.4>1.3 0.2>1.5 2.4>0.3 1.4>3.3 2.2>3.5 3.2>2.5 4.4>2.3 3.4>5.3 4.2>5.5 5.2>4.5 6.4>4.3 5.4>7.3 7.4>6.3 "
    "7.2>6.5 6.2>0.5 1.2>7.5"
)
Y4 = "0.2>1.5 1.2>3.5 3.2>2.5 2.2>0.5"


def table_of(text: str, width: int = 8) -> LinkTable:
    return build_link_table(parse_wiring(width, text.split()))


TABLES = {
    "W14": table_of(W14),
    "L14": table_of(L14),
    "W16": table_of(W16),
    "natural ring": build_link_table(ring_wiring(range(8))),
    "folded ring": build_link_table(ring_wiring((0, 1, 3, 5, 7, 6, 4, 2))),
}
LINE = TABLES["W14"]
Y_LINE = table_of(Y4, 4)


def run(first: int, last: int) -> tuple[int, ...]:
    return tuple(range(first, last + 1))


def fewest(table: LinkTable, members: tuple[int, ...], connection: Connection) -> int:
    return len(table.link_sets(members, connection)[0])


def fit_together(table: LinkTable, wanted: list[tuple[tuple[int, ...], Connection]], used: frozenset = frozenset()):
    """Whether all sets can be joined at once with disjoint cables."""
    if not wanted:
        return True
    members, connection = wanted[0]
    return any(
        not used & set(labels) and fit_together(table, wanted[1:], used | set(labels))
        for labels in table.link_sets(members, connection)
    )


def cuts(width: int) -> list[list[tuple[int, ...]]]:
    """All cuts of a line into contiguous segments."""
    found = []
    for mask in range(1 << (width - 1)):
        bounds = [0, *(i + 1 for i in range(width - 1) if mask >> i & 1), width]
        found.append([run(a, b - 1) for a, b in pairwise(bounds)])
    return found


def mixtures(width: int) -> list[list[tuple[tuple[int, ...], Connection]]]:
    """All cuts with a mesh or a torus for every segment of two and more."""
    found = []
    for segments in cuts(width):
        kinds = [(MESH, TORUS) if len(segment) > 1 else (TORUS,) for segment in segments]
        found += [list(zip(segments, choice, strict=True)) for choice in product(*kinds)]
    return found


def test_the_papers_own_examples():
    assert LINE.link_sets((3, 4, 5), MESH)[:2] == ((7, 10), (4, 5, 7))  # figure 4
    assert {(3, 6), (1, 2, 3)} <= set(LINE.link_sets((1, 2, 3), MESH))  # figure 5
    assert LINE.link_sets((1, 2, 3), TORUS)[0] == (1, 2, 3, 6)
    assert LINE.link_sets((0, 1, 2), TORUS)[0] == (1, 2, 3, 6)  # figure 2(b)
    assert LINE.link_sets((3, 4), TORUS)[0] == (4, 5, 7, 10)
    assert LINE.link_sets((3, 1, 2), MESH) == LINE.link_sets((1, 2, 3), MESH)  # sets are unordered


def test_walks_of_the_papers_examples():
    assert LINE.walk((3, 4, 5), MESH, (7, 10)) == (3, 5, 4)
    assert LINE.walk((3, 4, 5), MESH, (4, 5, 7)) == (4, 2, 3, 5)
    assert LINE.walk((1, 2, 3), MESH, (1, 2, 3)) == (2, 0, 1, 3)
    assert LINE.walk((0, 1, 2), TORUS, (1, 2, 3, 6)) == (0, 1, 3, 2)  # through switch 3, which is not its own
    with pytest.raises(MachineError, match="do not join"):
        LINE.walk((3, 4, 5), MESH, (0, 2))


@pytest.mark.parametrize(
    ("name", "tori_coexist", "mesh_345", "mesh_123"),
    [
        ("W14", True, True, True),
        ("L14", True, True, False),
        ("W16", True, True, True),
        ("natural ring", False, False, False),
        ("folded ring", False, False, False),
    ],
)
def test_which_wirings_the_paper_can_mean(name, tori_coexist, mesh_345, mesh_123):
    table = TABLES[name]
    assert fit_together(table, [((0, 1, 2), TORUS), ((3, 4), TORUS)]) is tori_coexist

    def two_and_three(members: tuple[int, ...]) -> list[tuple[set, set]]:
        sets = [set(labels) for labels in table.link_sets(members, MESH)]
        return [(a, b) for a in sets for b in sets if len(a) == 2 and len(b) == 3 and len(a & b) == 1]

    assert bool(two_and_three((3, 4, 5))) is mesh_345
    tori = [set(labels) for labels in table.link_sets((1, 2, 3), TORUS)]
    assert any(a | b in tori for a, b in two_and_three((1, 2, 3))) is mesh_123


@pytest.mark.parametrize(
    ("name", "all_tori", "mixed"),
    [("W14", 128, 577), ("L14", 88, 400), ("W16", 128, 577), ("natural ring", 29, 156), ("folded ring", 29, 127)],
)
def test_cuts_of_a_line_that_can_be_joined_at_once(name, all_tori, mixed):
    table = TABLES[name]
    assert sum(fit_together(table, [(part, TORUS) for part in segments]) for segments in cuts(8)) == all_tori
    assert sum(fit_together(table, mixture) for mixture in mixtures(8)) == mixed


def test_logical_numbering_is_the_same_wiring():
    renumbered = dict(enumerate((0, 1, 7, 2, 6, 3, 5, 4)))
    physical = {
        f"{renumbered[cable.source]}.{cable.out_port}>{renumbered[cable.target]}.{cable.in_port}"
        for cable in LINE.wiring.cables
    }
    assert physical == set(L14.split())


def test_size_of_the_table():
    large = [members for size in range(2, 9) for members in combinations(range(8), size)]
    assert len(large) == 247
    entries = {
        connection: [labels for members in large for labels in LINE.link_sets(members, connection)]
        for connection in (MESH, TORUS)
    }
    assert len(entries[TORUS]) == 398
    assert len(entries[MESH]) == 1318
    assert len(LINE.cycles) == 10
    assert len(LINE.paths) == 102
    assert all(LINE.link_sets(members, connection) for members in large for connection in (MESH, TORUS))
    runs = [run(a, b) for a, b in combinations(range(8), 2)]
    assert max(len(LINE.link_sets(members, TORUS)) for members in runs) == 6
    assert max(len(LINE.link_sets(members, MESH)) for members in runs) == 12
    assert LINE.link_sets((1, 2, 3), MESH) == (
        (3, 6), (1, 2, 3), (1, 2, 6), (3, 5, 7, 10), (1, 2, 5, 7, 10), (3, 5, 7, 9, 11, 13), (1, 2, 5, 7, 9, 11, 13),
    )  # fmt: skip
    assert len(LINE.link_sets((1, 2, 3), TORUS)) == 3
    assert len(LINE.link_sets((3, 4, 5), MESH)) == 8
    assert (4, 5, 10) in LINE.link_sets((3, 4, 5), MESH)
    assert len(LINE.link_sets((3, 4, 5), TORUS)) == 4


def test_cycles_in_closed_form():
    left, right = (2, 4, 8, 12), (0, 6, 10, 13)
    between = ((3, 1), (7, 5), (11, 9))
    expected = {
        (run(2 * a, 2 * b + 1), tuple(sorted((left[a], right[b], *(c for pair in between[a:b] for c in pair)))))
        for a in range(4)
        for b in range(a, 4)
    }
    assert {(tuple(sorted(cycle.switches)), cycle.labels) for cycle in LINE.cycles} == expected
    for first, last in combinations(range(8), 2):
        assert fewest(LINE, run(first, last), TORUS) == 2 * (last // 2 - first // 2 + 1)
        assert fewest(LINE, run(first, last), MESH) == last - first + (first % 2 == 1 and last % 2 == 0)
    for one, two in combinations(LINE.cycles, 2):
        (a, b), (c, d) = [(min(w.switches) // 2, max(w.switches) // 2) for w in (one, two)]
        overlap = min(b, d) - max(a, c) + 1
        assert set(one.labels).isdisjoint(two.labels) == (overlap <= 1 and a != c and b != d)


def test_every_contiguous_set_has_cables_of_its_own():
    smallest = {}
    for first, last in combinations(range(8), 2):
        members = run(first, last)
        sets = LINE.link_sets(members, TORUS)
        assert len(sets) == 1 or len(sets[1]) > len(sets[0])
        smallest[members] = set(sets[0])
        for labels in LINE.link_sets(members, MESH):
            if len(labels) == fewest(LINE, members, MESH):
                assert set(labels) <= smallest[members]
    for one, two in combinations(smallest, 2):
        if set(one).isdisjoint(two):
            assert smallest[one].isdisjoint(smallest[two])


def test_first_free_set_never_refuses_in_any_order_of_arrival():
    cases = 0
    for mixture in mixtures(8):
        large = [part for part in mixture if len(part[0]) > 1]
        for order in permutations(large):
            cases += 1
            used: set[int] = set()
            for members, connection in order:
                labels = next(s for s in LINE.link_sets(members, connection) if used.isdisjoint(s))
                used |= set(labels)
    assert cases == 2345


MINIMUM_SETS = {
    "0-1": ("0,2", "0 2"), "1-2": ("1,2,3,6", "1,2 3,6"), "2-3": ("4,6", "4 6"), "3-4": ("4,5,7,10", "4,5 7,10"),
    "4-5": ("8,10", "8 10"), "5-6": ("8,9,11,13", "8,9 11,13"), "6-7": ("12,13", "12 13"),
    "0-2": ("1,2,3,6", "1,2"), "1-3": ("1,2,3,6", "3,6"), "2-4": ("4,5,7,10", "4,5"), "3-5": ("4,5,7,10", "7,10"),
    "4-6": ("8,9,11,13", "8,9"), "5-7": ("8,9,11,13", "11,13"),
}  # fmt: skip


@pytest.mark.parametrize("ends", sorted(MINIMUM_SETS))
def test_which_sets_are_the_fewest(ends):
    members = run(*map(int, ends.split("-")))
    torus, meshes = MINIMUM_SETS[ends]

    def texts(connection: Connection) -> list[str]:
        least = fewest(LINE, members, connection)
        return [",".join(map(str, s)) for s in LINE.link_sets(members, connection) if len(s) == least]

    assert texts(TORUS) == [torus]
    assert texts(MESH) == meshes.split(" ")


def test_single_midplanes_need_no_cable():
    for member in range(8):
        assert LINE.link_sets((member,), TORUS) == ((),)
        assert LINE.link_sets((member,), MESH) == ((),)


def test_sets_around_the_end_of_the_line():
    assert (fewest(LINE, (7, 0), TORUS), fewest(LINE, (7, 0), MESH)) == (8, 4)
    for length in range(2, 8):
        for start in range(9 - length, 8):
            assert fewest(LINE, tuple((start + i) % 8 for i in range(length)), TORUS) == 8


def test_y_and_z_lines():
    for size in range(2, 5):
        for members in combinations(range(4), size):
            assert Y_LINE.link_sets(members, TORUS) == ((0, 1, 2, 3),)
    meshes = {(0, 1): 1, (2, 3): 1, (1, 2): 2, (0, 1, 2): 2, (1, 2, 3): 2, (0, 1, 2, 3): 3, (3, 0): 2}
    assert {members: fewest(Y_LINE, members, MESH) for members in meshes} == meshes
    # cables of the ring 0>1>3>2>0: {1, 2} goes by 3 (cables 1>3, 3>2) or by 0 (2>0, 0>1)
    assert set(Y_LINE.link_sets((1, 2), MESH)) == {(1, 2), (0, 3)}
    assert fit_together(Y_LINE, [((0, 1), MESH), ((2, 3), MESH)])
    for connection in (MESH, TORUS):
        assert not fit_together(Y_LINE, [((0, 1), TORUS), ((2, 3), connection)])


def test_pass_through_can_be_denied():
    table = build_link_table(parse_wiring(8, W14.split(), pass_through=False))
    assert table.link_sets((0, 1), TORUS) == ((0, 2),)
    assert table.link_sets((1, 2), TORUS) == ()
    assert table.link_sets((1, 2), MESH) == ()


def test_wide_lines_are_looked_up_set_by_set():
    ring = [f"{i}.2>{(i + 1) % 13}.5" for i in range(13)]
    split = [f"{a}.4>{b}.3" for k in range(1, 6) for a, b in ((k, 13 - k), (13 - k, k))] + ["7.4>6.3"]
    table = build_link_table(parse_wiring(13, ring + split))
    assert fewest(table, (2, 11), TORUS) == 2
    assert fewest(table, run(0, 12), TORUS) == 13


def test_a_table_is_searched_once_for_each_wiring():
    assert table_of(W14) is LINE
    assert table_of(Y4, 4) is Y_LINE


def test_nav_is_no_link_set():
    with pytest.raises(MachineError, match="nav"):
        LINE.link_sets((0, 1), Connection.NAV)


def test_a_midplane_beyond_the_line_is_refused():
    with pytest.raises(MachineError, match="got 8"):
        LINE.link_sets((7, 8), MESH)


def test_a_cable_is_read_with_its_label():
    wiring = parse_wiring(3, ["1.4>0.3", " 0.2>1.5 "])
    assert wiring.cables == (Cable(0, 1, 4, 0, 3), Cable(1, 0, 2, 1, 5))
    assert wiring.text == "3: 1.4>0.3 0.2>1.5"


@pytest.mark.parametrize(
    ("cables", "message"),
    [
        (["1>0"], "expected SWITCH.PORT>SWITCH.PORT"),
        (["1.4>0.x"], "expected SWITCH.PORT>SWITCH.PORT"),
        (["1.4>8.3"], "switch must be 0 to 7, got 8"),
        (["1.3>0.5"], "port must be 2 or 4, got 3"),
        (["1.2>0.2"], "port must be 3 or 5, got 2"),
        (["1.2>0.5", "1.2>2.5"], "port 2 of switch 1 already holds cable 1.2>0.5"),
        (["1.2>0.5", "2.2>0.5"], "port 5 of switch 0 already holds"),
    ],
)
def test_a_cable_that_cannot_be_is_refused(cables, message):
    with pytest.raises(MachineError, match=message):
        parse_wiring(8, cables)


def test_a_port_feeds_in_or_out_but_a_cable_may_close_on_its_switch():
    assert str(parse_wiring(1, ["0.2>0.5"]).cables[0]) == "0.2>0.5"


def test_rings():
    assert ring_wiring((0, 1, 3, 2)).text == "4: 0.2>1.5 1.2>3.5 3.2>2.5 2.2>0.5"
    assert ring_wiring((0,)).cables == ()
    for order in [(0, 2), (0, 0), (1, 2)]:
        with pytest.raises(MachineError, match="must list each switch"):
            ring_wiring(order)


def test_wirings_are_equal_where_their_link_sets_are():
    plain = ring_wiring((0, 1, 2))
    assert plain == parse_wiring(3, ["0.2>1.5", "1.2>2.5", "2.2>0.5"])
    assert len({plain, ring_wiring((0, 2, 1)), ring_wiring((0, 1, 2), pass_through=False)}) == 3


def test_a_line_has_a_midplane_and_at_most_64_cables():
    with pytest.raises(MachineError, match="at least 1 midplane"):
        parse_wiring(0, [])
    ring = [f"{i}.2>{(i + 1) % 65}.5" for i in range(65)]
    with pytest.raises(MachineError, match="at most 64 cables, got 65"):
        parse_wiring(65, ring)
