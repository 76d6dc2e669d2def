"""The chart of a trace of a flat machine: hours along the one axis, processors along the other."""

from ramp.web.pages.laboratory.charts import trace_chart


def test_only_time_is_in_hours():
    options = trace_chart([], 105, 0.0, 3600.0, 0.0, False)
    assert ":formatter" in options["xAxis"]["axisLabel"]
    assert ":formatter" not in options["yAxis"]["axisLabel"]
    assert (options["yAxis"]["name"], options["yAxis"]["max"]) == ("processors", 105)
