"""A client refuses an agent of another version of the control channel."""

import pytest

from ramp.client.access import check_welcome
from ramp.control.codec import VERSION, encode_event
from ramp.control.events import Event, Submitted, Welcome
from ramp.errors import MarketRefused


@pytest.mark.parametrize(
    ("event", "got"), [(Welcome(VERSION + 1, "alice@localhost"), "2"), (Submitted("r1"), "no welcome")]
)
def test_a_welcome_of_another_version_is_refused_with_what_to_do(event: Event, got: str) -> None:
    with pytest.raises(MarketRefused) as refused:
        check_welcome(encode_event(event))
    assert f"wrong version of the control channel: got {got}, expected 1; `ramp down`" in str(refused.value)
    assert refused.value.exit_code == 2


def test_a_line_that_is_no_welcome_is_refused() -> None:
    with pytest.raises(MarketRefused, match=r"got no welcome \(.*\), expected 1"):
        check_welcome(b'{"event": "hello"}\n')


def test_a_welcome_of_this_version_is_taken() -> None:
    check_welcome(encode_event(Welcome(VERSION, "alice@localhost")))
