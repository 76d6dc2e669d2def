"""Cables and their ports."""

import pytest

from ramp.errors import MachineError
from simulation.machines.bluegene.link_sets import Cable, parse_wiring, ring_wiring


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
