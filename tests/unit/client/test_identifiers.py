"""Identifiers cut short: shown as short as they can be told apart, understood wherever they are unique."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramp.client.identifiers import matching, shortened

IDS = st.lists(st.text("0123456789abcdef", min_size=24, max_size=24).map("request-{}".format), unique=True, max_size=20)


@given(IDS)
def test_what_is_shown_is_understood(identifiers: list[str]) -> None:
    for identifier, short in shortened(identifiers).items():
        assert len(short) >= 6
        assert matching(identifiers, short, str) == [identifier]


@given(IDS)
def test_nothing_shorter_would_do(identifiers: list[str]) -> None:
    shown = set(shortened(identifiers).values())
    length = max(map(len, shown), default=6)
    if length > 6:
        assert len({identifier.removeprefix("request-")[: length - 1] for identifier in identifiers}) < len(identifiers)


@pytest.mark.parametrize(
    ("given_id", "found"),
    [
        ("thunder1.7", ["thunder1.7"]),  # though another begins with it
        ("thunder1.", ["thunder1.7", "thunder1.71"]),
        ("agreement-1f", ["agreement-1f0c9a"]),
        ("1f", ["agreement-1f0c9a"]),
        ("", []),
        ("2", []),
    ],
)
def test_an_exact_id_is_itself_and_a_beginning_all_that_begin_so(given_id: str, found: list[str]) -> None:
    assert matching(["thunder1.7", "thunder1.71", "agreement-1f0c9a"], given_id, str) == found
