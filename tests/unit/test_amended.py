"""What a bought slot comes to by its amendments; amounts worked out by hand and by counting core-minutes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramp.model.agreement import Agreement, Amendment
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import Offer
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.sizes.amended import after, amendment_problem, first_state, notice_problem, refund_owed, state_digest
from tests.example_counts import examples

START = 100 * HOUR
OFFER = Offer("o-1", "r-1", 1, "res", 60, START, START + 4 * HOUR, 16, 0.0, HOUR)
AGREEMENT = Agreement(
    "a-1",
    "r-1",
    1,
    "alice",
    "res",
    "bank",
    RequestUnit(1, 70, START + 4 * HOUR, TotalCores(16), START),
    OFFER,
    "res-1",
    OFFER.cost,
    START - HOUR,
    "order-1",
    START - HOUR + MINUTE,
)
HALF = START + 2 * HOUR
AMENDMENT = Amendment(
    agreement_id="a-1",
    number=1,
    previous=state_digest(AGREEMENT),
    offer_id="o-1",
    user="alice",
    resource="res",
    bank="bank",
    cores=8,
    until=START + 4 * HOUR,
    effective_at=HALF,
    # 60 credits an hour for 16 cores and 4 hours are 3840.00; 8 cores for 2 hours are a quarter
    refund=96_000,
    issued_at=HALF - 10 * SECOND,
    valid_until=HALF + MINUTE,
)


def test_the_share_that_has_not_begun() -> None:
    assert OFFER.cost == 384_000
    assert amendment_problem(AGREEMENT, first_state(AGREEMENT), AMENDMENT) is None


def test_a_price_that_another_has_set_counts() -> None:
    cheaper = replace(AGREEMENT, cost=100_000)
    assert refund_owed(cheaper, first_state(cheaper), 8, START + 4 * HOUR, HALF) == 25_000


def test_what_is_given_up_before_the_start_counts_from_the_start() -> None:
    state = first_state(AGREEMENT)
    assert refund_owed(AGREEMENT, state, 16, START + 3 * HOUR, START - HOUR) == 96_000
    assert refund_owed(AGREEMENT, state, 4, START + 4 * HOUR, START - HOUR) == 288_000


def test_the_next_one_changes_what_the_first_has_made() -> None:
    state = after(first_state(AGREEMENT), AMENDMENT)
    second = replace(
        AMENDMENT,
        number=2,
        previous=state_digest(AMENDMENT),
        until=START + 3 * HOUR,
        refund=48_000,
    )
    assert amendment_problem(AGREEMENT, state, second) is None
    assert amendment_problem(AGREEMENT, state, AMENDMENT) == (
        "old_number",
        "its number is 1; right would be 2 to 1000",
    )


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"bank": "other"}, "other_parties"),
        ({"offer_id": "o-2"}, "other_parties"),
        ({"previous": "x" * 43}, "other_state"),
        ({"number": 10_001}, "old_number"),
        ({"cores": 17}, "not_smaller"),
        ({"cores": 0}, "not_smaller"),
        ({"until": START + 5 * HOUR}, "not_smaller"),
        ({"cores": 16}, "no_change"),
        ({"until": HALF}, "nothing_left"),
        ({"valid_until": HALF}, "bad_times"),
        ({"issued_at": HALF}, "bad_times"),
        ({"valid_until": START + 4 * HOUR + 1}, "bad_times"),
        ({"refund": 96_001}, "bad_price"),
        ({"refund": 95_999}, "bad_price"),
    ],
)
def test_what_does_not_fit(change: dict[str, object], code: str) -> None:
    problem = amendment_problem(AGREEMENT, first_state(AGREEMENT), replace(AMENDMENT, **change))  # type: ignore[arg-type]
    assert problem is not None
    assert problem[0] == code


def test_what_is_worth_nothing_is_not_given_up() -> None:
    poor = replace(AGREEMENT, cost=3)
    change = replace(AMENDMENT, previous=state_digest(poor), refund=0)
    assert amendment_problem(poor, first_state(poor), change) == (
        "nothing_back",
        "what is given up is worth less than a hundredth of a credit",
    )


def test_a_submitted_job_has_one_size() -> None:
    queued = replace(AGREEMENT, offer=replace(OFFER, start_probability=0.9, if_late="full"))
    problem = amendment_problem(queued, first_state(queued), replace(AMENDMENT, previous=state_digest(queued)))
    assert problem is not None
    assert problem[0] == "not_reserved"


def test_the_notice() -> None:
    assert notice_problem(AMENDMENT, 10 * SECOND) == ""
    assert notice_problem(AMENDMENT, 11 * SECOND) == "it gives a notice of 10 s; right would be 11 s"


@pytest.mark.parametrize(
    "changed",
    [
        replace(AGREEMENT, cost=1),
        replace(AGREEMENT, agreement_id="a-2"),
        replace(AGREEMENT, offer=replace(OFFER, cores=17)),
        replace(AGREEMENT, offer=replace(OFFER, end=OFFER.end + 1)),
        replace(AGREEMENT, request=replace(AGREEMENT.request, deadline=START + 5 * HOUR)),
        replace(AGREEMENT, user="bob"),
    ],
)
def test_other_agreements_have_other_digests(changed: Agreement) -> None:
    assert state_digest(changed) != state_digest(AGREEMENT)
    assert len(state_digest(changed)) == 43


@settings(max_examples=examples(200))
@given(st.data())
def test_a_chain_gives_back_what_counting_gives_and_never_all(data: st.DataObject) -> None:
    """Counted: each minute of each core is worth the same; what is left of it by the end was used."""
    cost = data.draw(st.integers(1, 10_000), "cost")
    agreement = replace(AGREEMENT, cost=cost)
    state, now, given_back = first_state(agreement), START, 0
    for number in range(1, data.draw(st.integers(1, 5), "changes") + 1):
        now += data.draw(st.integers(0, 60), "pause") * MINUTE
        cores = data.draw(st.integers(1, state.cores), "cores")
        until = state.until - data.draw(st.integers(0, 60), "earlier") * MINUTE
        if until <= now:
            break
        had = sum(state.cores for minute in range(now, state.until, MINUTE))
        has = sum(cores for minute in range(now, until, MINUTE))
        owed = refund_owed(agreement, state, cores, until, now)
        assert owed == cost * (had - has) // (16 * 240)
        given_back += owed
        state = replace(state, cores=cores, until=until, number=number)
    assert given_back < cost
