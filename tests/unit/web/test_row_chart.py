"""Gantt charts: rows by name, lanes where bars overlap, and the limits of the picture."""

from datetime import UTC, datetime, timedelta

from ramp.web.pages.charts import Taken, row_chart

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
WEEK = timedelta(days=7)


def hours(hour):
    return NOW + timedelta(hours=hour)


def taken(name, start, end, kind="sold"):
    return Taken(name, kind, 8, hours(start), hours(end))


def bars_of(options):
    return {item["name"]: item["value"] for series in options["series"] for item in series["data"]}


def ms(moment):
    return round(1000 * moment.timestamp())


def test_bars_that_overlap_are_in_lanes_and_those_that_follow_share_one():
    rows = {"curie": [taken("c", 4, 5), taken("a", 0, 2), taken("b", 1, 3), taken("d", 2, 4)], "euler": []}
    options = row_chart(rows, NOW, WEEK)
    assert options["yAxis"]["data"] == ("curie", "", "euler")
    lanes = {name.removeprefix("sold "): value[2] for name, value in bars_of(options).items()}
    assert lanes == {"a": 0, "b": 1, "d": 0, "c": 0}


def test_the_picture_reaches_to_the_bars_and_the_present_but_no_further_than_its_limit():
    options = row_chart({"curie": [taken("a", -2, 3)]}, NOW, WEEK)
    assert (options["xAxis"]["min"], options["xAxis"]["max"]) == (ms(hours(-2)), ms(hours(3)))
    cut = row_chart({"curie": [taken("a", -2000, 3000), taken("b", 200, 201)]}, NOW, WEEK)
    assert (cut["xAxis"]["min"], cut["xAxis"]["max"]) == (ms(NOW - WEEK), ms(NOW + WEEK))
    assert bars_of(cut) == {"sold a": (ms(NOW - WEEK), ms(NOW + WEEK), 0, 1, 8)}
    empty = row_chart({}, NOW, WEEK)
    assert (empty["xAxis"]["min"], empty["xAxis"]["max"]) == (ms(hours(-1)), ms(hours(1)))
    assert empty["series"][-1]["markLine"]["data"] == ({"xAxis": ms(NOW)},)
