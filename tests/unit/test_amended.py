"""What a bought slot comes to by its amendments; amounts worked out by hand and by counting core-minutes."""

import base64
import hashlib
import json
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramp.model.agreement import Agreement, ContractChange
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import Offer
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.sizes.amended import (
    after,
    change_problem,
    charge_owed,
    first_state,
    notice_problem,
    refund_owed,
    state_digest,
)
from tests.agreements import agreement_of, change_of
from tests.example_counts import examples

START = 100 * HOUR
OFFER = Offer("o-1", "r-1", 1, "res", 60, START, START + 4 * HOUR, 16, 0.0, HOUR)
AGREEMENT = agreement_of(OFFER, RequestUnit(1, 70, START + 4 * HOUR, TotalCores(16), START))
HALF = START + 2 * HOUR
# 60 credits an hour for 16 cores and 4 hours are 3840.00; 8 cores for 2 hours are a quarter
AMENDMENT = change_of(AGREEMENT, 8, HALF - 10 * SECOND, effective_at=HALF, amount=-96_000)


def test_the_share_that_has_not_begun() -> None:
    assert OFFER.cost == 384_000
    assert change_problem(AGREEMENT, first_state(AGREEMENT), AMENDMENT) is None


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
        amount=-48_000,
    )
    assert change_problem(AGREEMENT, state, second) is None
    assert change_problem(AGREEMENT, state, AMENDMENT) == (
        "old_number",
        "wrong amendment number: got 1, expected 2 to 1000",
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
        ({"amount": -96_001}, "bad_price"),
        ({"amount": -95_999}, "bad_price"),
        ({"amount": 1}, "bad_price"),
    ],
)
def test_what_does_not_fit(change: dict[str, object], code: str) -> None:
    problem = change_problem(AGREEMENT, first_state(AGREEMENT), replace(AMENDMENT, **change))  # type: ignore[arg-type]
    assert problem is not None
    assert problem[0] == code


def test_what_is_worth_nothing_is_not_given_up() -> None:
    poor = replace(AGREEMENT, cost=3)
    change = replace(AMENDMENT, previous=state_digest(poor), amount=0)
    assert change_problem(poor, first_state(poor), change) == (
        "nothing_back",
        "the refund would be less than 0.01 credits",
    )


def test_a_submitted_job_has_one_size() -> None:
    queued = replace(AGREEMENT, offer=replace(OFFER, start_probability=0.9, if_late="full"))
    problem = change_problem(queued, first_state(queued), replace(AMENDMENT, previous=state_digest(queued)))
    assert problem is not None
    assert problem[0] == "not_reserved"


def test_the_notice() -> None:
    assert notice_problem(AMENDMENT, 10 * SECOND) == ""
    assert notice_problem(AMENDMENT, 11 * SECOND) == "notice too short: got 10 s, expected at least 11 s"


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
    """Counted: each minute of each core has the price that it was bought at; the core bought last goes first."""
    cost = data.draw(st.integers(1, 10_000), "cost")
    agreement = replace(AGREEMENT, cost=cost)
    first = Fraction(cost, 16 * 240)
    cells = {minute: [first] * 16 for minute in range(240)}
    state, now, paid, given_back = first_state(agreement), 0, cost, 0
    for number in range(1, data.draw(st.integers(1, 6), "changes") + 1):
        now += data.draw(st.integers(0, 60), "pause")
        lasts = (state.until - START) // MINUTE
        if now >= lasts:
            break
        grows = data.draw(st.booleans(), "grows")
        more = data.draw(st.integers(0, 8), "more")
        longer = data.draw(st.integers(0, 60), "longer")
        cores = state.cores + more if grows else data.draw(st.integers(1, state.cores), "cores")
        ends = lasts + longer if grows else lasts - data.draw(st.integers(0, lasts - now - 1), "earlier")
        if (cores, ends) == (state.cores, lasts):
            continue
        body = replace(
            AMENDMENT, number=number, cores=cores, until=START + ends * MINUTE, effective_at=START + now * MINUTE
        )
        if grows:
            gained = sum(cores - len(cells.get(minute, ())) for minute in range(now, ends))
            price = data.draw(st.integers(1, 200), "price")
            body = replace(body, cpu_hour_cost=price, order_id="order-2")
            body = replace(body, amount=charge_owed(state, body))
            assert body.charge == (price * 100 * gained * 2 + 60) // 120
            paid += body.charge
            for minute in range(now, ends):
                held = cells.setdefault(minute, [])
                held += [Fraction(body.charge, gained)] * (cores - len(held))
        else:
            back = sum(
                (price for minute in range(now, lasts) for price in cells[minute][cores if minute < ends else 0 :]),
                Fraction(0),
            )
            owed = refund_owed(agreement, state, cores, body.until, body.effective_at)
            assert owed == int(back)
            given_back += owed
            for minute in range(now, lasts):
                del cells[minute][cores if minute < ends else 0 :]
        state = after(state, body)
        assert (state.cores, state.until) == (cores, body.until)
    assert given_back < paid


def test_more_time_is_paid_for_all_cores() -> None:
    longer = replace(AMENDMENT, cores=16, until=START + 5 * HOUR, cpu_hour_cost=50, order_id="order-2")
    state = first_state(AGREEMENT)
    assert charge_owed(state, longer) == 80_000
    longer = replace(longer, amount=80_000)
    assert change_problem(AGREEMENT, state, longer) is None
    # the hour that was added, and half an hour of the old ones
    assert refund_owed(AGREEMENT, after(state, longer), 16, START + 210 * MINUTE, START + 3 * HOUR) == 80_000 + 48_000


def test_nothing_is_given_back_from_before_it_was_added() -> None:
    """A change that takes effect before the one that it follows counts from the later instant on."""
    grown = replace(AMENDMENT, cores=24, amount=144_000, cpu_hour_cost=90, order_id="order-2")
    state = after(first_state(AGREEMENT), grown)
    assert refund_owed(AGREEMENT, state, 16, START + 4 * HOUR, START) == 144_000


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"amount": 144_001}, "bad_price"),
        ({"amount": -144_000}, "bad_price"),
        ({"cores": 24, "until": START + 3 * HOUR}, "mixed_change"),
        ({"cores": 15, "until": START + 5 * HOUR}, "mixed_change"),
        ({"cores": 15}, "mixed_change"),
        ({"cores": 16}, "no_change"),
        ({"cpu_hour_cost": 0, "amount": 0}, "nothing_to_pay"),
        ({"valid_until": HALF}, "bad_times"),
        ({"valid_until": START + 4 * HOUR + 1}, "bad_times"),
        ({"valid_until": HALF + 15 * MINUTE}, "bad_times"),
        ({"previous": "x" * 43}, "other_state"),
        ({"order_id": ""}, "not_smaller"),
    ],
)
def test_what_cannot_be_added(change: dict[str, object], code: str) -> None:
    grown = replace(AMENDMENT, cores=24, amount=144_000, cpu_hour_cost=90, order_id="order-2")
    problem = change_problem(AGREEMENT, first_state(AGREEMENT), replace(grown, **change))  # type: ignore[arg-type]
    assert problem is not None
    assert problem[0] == code


def test_an_amendment_is_digested_with_all_its_fields() -> None:
    said = {
        "is": "ContractChange", "agreement_id": "a-1", "number": 1, "previous": "p", "offer_id": "o-1", "user": "alice",
        "resource": "res", "bank": "bank", "cores": 8, "until": 9, "effective_at": 5, "amount": -7, "issued_at": 1,
        "valid_until": 6, "cpu_hour_cost": 0, "order_id": "", "reason": "", "code": None,
    }  # fmt: skip
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
    body = ContractChange("a-1", 1, "o-1", "alice", "res", "bank", 1, "p", 8, 9, 5, -7, 6)
    assert state_digest(body) == digest
    assert state_digest(replace(body, order_id="order-1", amount=7)) != digest
