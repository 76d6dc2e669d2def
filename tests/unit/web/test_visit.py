"""Times in texts of other parties, as an open page writes them."""

from zoneinfo import ZoneInfo

from ramp.web.pages.frame import Visit


def test_times_in_sentences_are_local_and_limits_are_rounded_up():
    visit = Visit(None, None, None, None, zone=ZoneInfo("Europe/Berlin"))
    said = "it starts at 2025-11-28T17:56:46.467527Z, not before"
    assert visit.sentence(said) == "it starts at Fri 28 Nov 2025 18:56, not before"
    assert visit.sentence(said, up=True) == "it starts at Fri 28 Nov 2025 18:57, not before"
    assert visit.sentence("no times here") == "no times here"
