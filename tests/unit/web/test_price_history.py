"""Prices over time: whose they are, how many are kept, and a file that fails."""

import logging

from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.protocol.outcome import RequestOutcome, RequestStatus
from ramp.web.machines.price_history import PriceHistory, PricePoint, outcome_points, round_points
from ramp.web.pages.machines.charts import price_chart, price_series
from tests.unit.web.test_story import FIRST, NOW, SECOND_ROUND


def test_offers_are_their_users_alone_and_start_prices_everybodys(tmp_path):
    prices = PriceHistory(tmp_path / "prices.sqlite")
    prices.start_prices({"a": 90}, NOW)
    prices.offered("alice", round_points("r", FIRST, NOW + SECOND))
    assert [(each.resource, each.price, each.round_number) for each in prices.points("alice")] == [
        ("a", 90, 0), ("a", 60, 1), ("b", 50, 1),
    ]  # fmt: skip
    assert [each.price for each in prices.points("bob")] == [90]
    assert [each.price for each in prices.points("")] == [90]
    prices.close()
    assert len(PriceHistory(tmp_path / "prices.sqlite").points("alice")) == 3  # a restart loses nothing
    assert (tmp_path / "prices.sqlite").stat().st_mode & 0o077 == 0


def test_what_is_on_record_is_not_told_twice(tmp_path):
    prices = PriceHistory(tmp_path / "prices.sqlite")
    prices.offered("alice", round_points("r", FIRST, NOW + 7 * SECOND))
    ended = RequestOutcome("r", RequestStatus.REJECTED, "", (FIRST, SECOND_ROUND), (), NOW, 2 * SECOND)
    prices.offered("alice", outcome_points(ended))
    # the second round closed two rounds' time after the request was submitted
    assert [(each.at - NOW, each.price) for each in prices.points("alice")] == [
        (2 * SECOND, 45), (7 * SECOND, 60), (7 * SECOND, 50),
    ]  # fmt: skip


def test_a_start_price_is_written_when_it_changes_and_now_and_then(tmp_path):
    prices = PriceHistory(tmp_path / "prices.sqlite")
    for at, price in ((0, 90), (SECOND, 90), (2 * SECOND, 80), (3 * SECOND, 80), (HOUR, 80)):
        prices.start_prices({"a": price}, NOW + at)
    assert [(each.at - NOW, each.price) for each in prices.points("")] == [(0, 90), (2 * SECOND, 80), (HOUR, 80)]


def test_the_oldest_go(tmp_path):
    prices = PriceHistory(tmp_path / "prices.sqlite", most=100)
    prices.offered("alice", [PricePoint(NOW + number, "a", number, "r", number, 1) for number in range(1, 1501)])
    assert [each.price for each in prices.points("alice")] == list(range(1401, 1501))


def test_a_file_that_fails_costs_the_picture_and_one_line(tmp_path, caplog):
    prices = PriceHistory(tmp_path / "prices.sqlite")
    prices.close()
    with caplog.at_level(logging.WARNING):
        prices.offered("alice", round_points("r", FIRST, NOW))
        prices.start_prices({"a": 1}, NOW + MINUTE)
        assert prices.points("alice") == ()
    assert len(caplog.records) == 1


def test_a_line_for_each_resource():
    points = [PricePoint(NOW, "b", 90), *round_points("r", FIRST, NOW)]
    series = price_series(points)
    assert list(series) == ["a", "b", "b (start price)"]
    drawn = price_chart(series, dark=True)["series"]
    assert [(each["type"], [value for _, value in each["data"]]) for each in drawn] == [
        ("scatter", [60]), ("scatter", [50]), ("line", [90]),
    ]  # fmt: skip
    assert drawn[1]["color"] == drawn[2]["color"] != drawn[0]["color"]
