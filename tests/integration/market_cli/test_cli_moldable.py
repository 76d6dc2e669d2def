"""A request that leaves its size to the seller, from `ramp rfq new` to the verified agreement."""

from decimal import Decimal
from fractions import Fraction
from math import ceil

import pytest
from tiny_market import balance

pytestmark = pytest.mark.slow  # a market of five processes

SERIAL = Fraction(1, 1000)
WALL_S = 16 * 3600
PRICE, REFERENCE = 70, 64
WINDOW_S = 6 * 3600


def run_time_s(cores):
    """By Amdahl's law from 16 h on 64 cores, in whole seconds rounded up."""
    relative = (SERIAL + (1 - SERIAL) / cores) / (SERIAL + (1 - SERIAL) / REFERENCE)
    return ceil(WALL_S * relative)


def test_a_range_of_cores_is_bought_at_a_size_that_fits_the_window(ramp, request_file):
    """64 and 128 cores take 16 h and 8.5 h, the window has less than 6 h; no machine has 512 cores free."""
    assert run_time_s(128) > WINDOW_S > run_time_s(256)
    path = request_file("64..512", price=PRICE, end="+6h", walltime="16h", speedup="amdahl:0.001")
    before = balance(ramp)
    code, bought, _ = ramp("submit", path, "--json", "--rounds", "2")
    assert (code, bought["status"]) == (0, "committed"), bought
    (unit,) = bought["units"]
    offers = [offer for entry in bought["rounds"] for offer in entry["offers"]]
    assert {unit["cores"], *(offer["cores"] for offer in offers)} == {256}
    cost = Decimal(unit["cost"])
    cap = PRICE * REFERENCE * WALL_S / 3600
    assert 0 < cost <= cap
    assert float(cost) == round(unit["cpu_hour_cost"] * unit["cores"] * run_time_s(unit["cores"]) / 3600, 2)
    assert before - balance(ramp) == cost
    (file,) = bought["agreements"]
    code, report, _ = ramp("verify", file, "--json")
    assert code == 0, report
    assert "".join(sign for sign in report["agreement"]["cost"] if sign in "0123456789.") == unit["cost"]


def test_a_range_that_fits_at_no_size_is_told_before_anybody_is_called(ramp):
    """512 cores take 2.8 h; two hours are too few, and the sentence says what would be right."""
    assert run_time_s(512) > 2 * 3600
    code, _, said = ramp(
        "rfq", "new", "--cores", "64..512", "--speedup", "amdahl:0.001", "--price", PRICE, "--start", "+10min",
        "--end", "+2h", "--walltime", "16h",
    )  # fmt: skip
    assert code == 2
    assert "at any size" in said
    assert "choose a later end" in said
