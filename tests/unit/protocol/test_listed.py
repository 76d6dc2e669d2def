"""Whom a directory names on which page, and that it keeps no words of machines that have gone."""

from __future__ import annotations

import pytest

from ramp.model.contents import DirectoryListing, UnfitAgent
from ramp.model.machine_terms.static_needs import StaticNeeds
from ramp.model.slot import StaticTerms
from ramp.protocol.directory.discovery import PAGES_MAX, ListingPages
from ramp.protocol.directory.listed import Listed
from ramp.protocol.directory.terms_index import TermsIndex

LARGE = (StaticNeeds(cores=64),)


@pytest.mark.parametrize("others", [0, 100])
def test_pages_by_need_name_everyone_once_and_the_last_says_so(others: int) -> None:
    """With many others few fit, which is looked for in another way; the answer is the same."""
    listed = Listed()
    for name in ("a1", "b1", "c1", "d1"):
        listed.add(name, StaticTerms(64))
    for number in range(others):
        listed.add(f"small-{number}", StaticTerms(16))
    assert listed.page_by_need(LARGE, "", 2, 0) == (("a1", "b1"), True, ())
    assert listed.page_by_need(LARGE, "b1", 2, 0) == (("c1", "d1"), False, ())


def test_who_does_not_fit_is_told_whatever_it_is_called() -> None:
    listed = Listed()
    listed.add("1st@west.example", StaticTerms(16))
    _, _, unfit = listed.page_by_need(LARGE, "", 5, 5)
    assert [each.name for each in unfit] == ["1st@west.example"]


def test_words_that_nobody_states_any_more_are_forgotten() -> None:
    """Else a directory would grow with every architecture that somebody ever invented."""
    index, need = TermsIndex(), StaticNeeds(cores=1, architecture="x86_64")
    for name in ("res1", "res2"):
        index.put(name, StaticTerms(64, architecture="x86_64"))
    index.remove("res1")
    assert list(index.names(index.meeting((need,))[0])) == ["res2"]
    index.remove("res2")
    assert index._words == {}


def test_a_listing_ends_with_its_last_page_or_when_there_are_too_many() -> None:
    pages = ListingPages()
    for number in range(1, PAGES_MAX + 1):
        assert not pages.complete
        assert pages.add(DirectoryListing("q", "resource-trader", (f"m{number:06}",), True))
    assert pages.complete


def test_a_page_that_begins_where_the_last_one_ended_is_none_of_the_listing() -> None:
    pages = ListingPages()
    first = (UnfitAgent("x1", (StaticTerms(16),)),)
    assert pages.add(DirectoryListing("q", "resource-trader", ("a1", "b1"), True, first))
    assert not pages.add(DirectoryListing("q", "resource-trader", ("b1", "c1"), True))
    assert pages.add(DirectoryListing("q", "resource-trader", ("c1",), False))
    assert (pages.names, dict(pages.unfit)) == (("a1", "b1", "c1"), {"x1": StaticTerms(16)})
