"""A call for proposals that many resources of one process hear is parsed and checked once."""

from typing import Any

import pytest

from ramp.errors import DocumentError
from ramp.model import contents as c
from ramp.model.instant import HOUR, Instant
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.rfql import documents
from ramp.rfql.xml import schema

NOW: Instant = 1_790_000_000_000_000
UNIT = RequestUnit(1, 70, NOW + 4 * HOUR, TotalCores(16), not_before=NOW + HOUR, wall_time=HOUR)


def call(request_id: str) -> str:
    return documents.write_content(c.CallForProposals(request_id, 1, RequestForQuotation((UNIT,))))


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Root elements that are checked against the schema."""
    found: list[str] = []
    original = schema.check

    def check(root: Any, *arguments: Any) -> None:
        found.append(str(root.tag).rpartition("}")[2])
        original(root, *arguments)

    monkeypatch.setattr(schema, "check", check)
    return found


def read(body: str, source: str = "cfp of user1") -> c.Content:
    fresh = body.encode().decode()  # as every receiver has its own copy of the text
    return documents.read_content(fresh, None, NOW, source)  # type: ignore[arg-type]


def test_the_same_words_are_checked_once_and_mean_the_same(checked: list[str]) -> None:
    first, second = read(call("once")), read(call("once"))
    assert isinstance(first, c.CallForProposals)
    assert first == second
    assert first.request.units == (UNIT,)
    assert checked == ["CallForProposals"]
    assert read(call("other")) != first
    assert len(checked) == 2


def test_what_is_wrong_is_told_each_time_with_who_said_it(checked: list[str]) -> None:
    body = call("wrong").replace('roundNumber="1"', 'roundNumber="none"')
    for number in range(2):
        with pytest.raises(DocumentError, match=f"user{number}"):
            read(body, f"cfp of user{number}")


def test_other_documents_are_checked_each_time(checked: list[str]) -> None:
    body = documents.write_content(c.Proposal("r", 1))
    read(body)
    read(body)
    assert checked == ["Proposal"] * 2
