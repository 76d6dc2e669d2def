"""Options of a submission are checked by the agent, whatever client sends them."""

import pytest

import ramp
from ramp.client.request import document_of
from ramp.control.answering import NAME_MAX, submission
from ramp.control.requests import Submit
from ramp.errors import ConfigurationError
from ramp.model.instant import from_iso
from ramp.protocol.events import AuctionOptions

DOCUMENT = document_of(ramp.request(cores=8, wall_time="1h", end="+2h", price=70).at(from_iso("2026-11-29T08:00:00Z")))


def submitted(**options):
    return submission(Submit(DOCUMENT, "request-1", AuctionOptions(**options)), "request-1")


def test_a_request_has_the_name_that_its_owner_gave():
    assert submitted(name="räumlich, Lauf 7").options.name == "räumlich, Lauf 7"
    assert submitted(name="x" * NAME_MAX).options.name == "x" * NAME_MAX


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "x" * (NAME_MAX + 1)}, "name must be at most 80 printable characters"),
        ({"name": "two\nlines"}, "name must be at most 80 printable characters, got two lines"),
        ({"name": "right\u202eto left"}, "name must be at most 80 printable characters"),
        ({"rounds": 101}, "rounds must be 1 to 100, got 101"),
        ({"round_time": 1}, "round_time must be at least 0.1 s"),
        ({"max_cost": 0}, "max_cost must be above 0"),
    ],
)
def test_options_beyond_their_limits_are_refused(options, said):
    with pytest.raises(ConfigurationError, match=said):
        submitted(**options)
