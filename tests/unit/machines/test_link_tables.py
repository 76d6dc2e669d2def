"""Cables, their ports and link-set tables, against the numbers of Aridor et al. 2005 and the wirings of Slurm."""

from itertools import combinations, pairwise, permutations, product

import pytest

from ramp.errors import MachineError
from simulation.machines.bluegene.link_sets import Cable, LinkTable, build_link_table, parse_wiring, ring_wiring
from simulation.machines.interface import Connection
from tests.reference import bluegene_loop as loop

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
        found.append([tuple(range(low, high)) for low, high in pairwise(bounds)])
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


@pytest.mark.parametrize("table", [*TABLES.values(), Y_LINE], ids=[*TABLES, "Y4"])
def test_link_sets_are_those_of_plain_walks(table):
    width, cables = table.wiring.width, [str(cable) for cable in table.wiring.cables]
    for size in range(1, width + 1):
        for members, connection in product(combinations(range(width), size), (MESH, TORUS)):
            found = loop.link_sets(width, cables, frozenset(members), connection is TORUS)
            assert table.link_sets(members, connection) == tuple(tuple(sorted(labels)) for labels in found)


def test_only_meshes_share_a_y_or_z_line():
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
    assert len(table.link_sets((2, 11), TORUS)[0]) == 2
    assert len(table.link_sets(tuple(range(13)), TORUS)[0]) == 13


def test_a_table_is_searched_once_for_each_wiring():
    assert table_of(W14) is LINE
    assert table_of(Y4, 4) is Y_LINE


@pytest.mark.parametrize(
    ("members", "connection", "message"), [((0, 1), Connection.NAV, "nav"), ((7, 8), MESH, "got 8")]
)
def test_nav_and_midplanes_beyond_the_line_have_no_link_sets(members, connection, message):
    with pytest.raises(MachineError, match=message):
        LINE.link_sets(members, connection)


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
