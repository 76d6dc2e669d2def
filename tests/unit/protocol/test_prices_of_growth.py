"""A buyer who wants more of what it has bought: which prices it asks for, whom it believes, and what it then proposes.

Which slots she has is said in `changing_buyer`; clocks begin at 0. Eight cores more for these four hours cost
8 * 4 * 60 = 1 920 credits at the price of the others.
"""

from dataclasses import replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Performative
from ramp.model.agreement import Agreement, ContractChange
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.money import credits_text
from ramp.model.sizes.amended import first_state
from ramp.protocol.effects import Effect
from ramp.protocol.events import AgreementResized
from ramp.protocol.outcome import ChangeOutcome
from ramp.protocol.progress import ChangeEnded
from ramp.protocol.timing import Timing
from tests.agreements import NOTICE
from tests.unit.protocol.changing_buyer import AGREEMENT, OTHER, Buyer
from tests.unit.protocol.conftest import messages, records, reports

CHARGE = 192_000
"""Of eight cores more, in minor units."""


class Growing(Buyer):
    """She wants 24 cores instead of 16."""

    @property
    def proposed(self) -> list[ContractChange]:
        return [body for each in ("a1", "a2") for body in self.changes.history.proposed(each)]

    def asks(
        self, *agreements: Agreement, now: int = 0, max_cost: int | None = None, quote_only: bool = False
    ) -> list[Effect]:
        first, *others = [each.agreement_id for each in agreements or (AGREEMENT,)]
        wish = AgreementResized(first, 24, None, quote_only, 70, max_cost, tuple(others))
        return self.changes.resize(wish, now)

    def priced(
        self,
        price: int = 60,
        agreement_id: str = "a1",
        number: int = 1,
        now: int = 1,
        sender: str = "",
        **named: Any,
    ) -> Any:
        state = first_state(AGREEMENT if agreement_id == "a1" else OTHER).digest
        content = c.ChangePriced(agreement_id, number, price, MINUTE, 24, 5 * HOUR, state)
        return self.hears(replace(content, **named), now, sender or f"res{agreement_id[1]}")


@pytest.fixture
def buyer() -> Growing:
    return Growing()


def calls(effects: list[Effect]) -> list[tuple[str, c.ChangeCall]]:
    found = messages(effects)
    assert {each.performative for each in found} == {Performative.CFP}
    return [(each.receiver, each.content) for each in found]  # type: ignore[misc]


def outcomes(effects: list[Effect]) -> list[ChangeOutcome]:
    return [each.outcome for each in reports(effects, ChangeEnded)]


def failed(effects: list[Effect]) -> list[tuple[str, bool, int, int, str, str]]:
    assert messages(effects) == []
    assert {each.number for each in outcomes(effects)} == {0}  # none was proposed
    return [
        (each.agreement_id, each.done, each.cores, each.until, each.code, each.detail) for each in outcomes(effects)
    ]


CALLS = [
    ("res1", c.ChangeCall("a1", 1, 24, 5 * HOUR, 70)),
    ("res2", c.ChangeCall("a2", 1, 24, 5 * HOUR, 70)),
]


def test_every_seller_is_asked_for_the_price_of_its_own(buyer: Growing) -> None:
    asked = buyer.asks(AGREEMENT, OTHER)
    assert calls(asked) == CALLS
    assert [each.reply_with for each in messages(asked)] == ["a1#1", "a2#1"]
    assert buyer.changes.open == ("a1", "a2")
    assert ("a1" in buyer.changes, "a9" in buyer.changes) == (True, False)


def test_only_who_is_silent_is_asked_again_and_given_up_in_the_end(buyer: Growing) -> None:
    buyer.asks(AGREEMENT, OTHER)
    assert buyer.priced() == []
    assert buyer.registry.deadline == SECOND
    assert buyer.registry.tick(SECOND - 1) == []
    again = buyer.registry.tick(SECOND)
    assert calls(again) == CALLS[1:]
    ended: list[Any] = []
    while not ended:
        now = buyer.registry.deadline
        assert now is not None
        effects = buyer.registry.tick(now)
        ended = failed(effects) if outcomes(effects) else []
    why = "res2 did not name a price in time"
    assert ended == [(each, False, 16, 5 * HOUR, "no_answer", why) for each in ("a1", "a2")]
    assert Timing().query_limit <= now
    assert (buyer.changes.open, buyer.registry.deadline, buyer.proposed) == ((), None, [])


def test_a_price_above_what_was_to_be_paid_is_not_paid(buyer: Growing) -> None:
    buyer.asks(AGREEMENT, OTHER)
    told = "71 credits/core-hour asked, expected at most 70"
    assert failed(buyer.priced(71)) == [(each, False, 16, 5 * HOUR, "price", told) for each in ("a1", "a2")]
    assert buyer.priced(60, "a2") == []  # nobody waits for it any more


def test_the_price_that_was_to_be_paid_at_most_is_paid(buyer: Growing) -> None:
    buyer.asks()
    assert len(messages(buyer.priced(70))) == 1
    assert buyer.hears(c.ChangePosted("a1", 1, "payment:a1#1", CHARGE)) == []  # the bank answers about the order


@pytest.mark.parametrize(("max_cost", "proposes"), [(2 * CHARGE - 1, False), (2 * CHARGE, True)])
def test_all_together_may_cost_so_much(buyer: Growing, max_cost: int, proposes: bool) -> None:
    buyer.asks(AGREEMENT, OTHER, max_cost=max_cost)
    buyer.priced()
    effects = buyer.priced(60, "a2")
    assert bool(messages(effects)) is proposes
    assert [each.together for each in records(effects)] == [("a1", "a2")] * (2 if proposes else 0)
    if not proposes:
        told = f"total cost is {credits_text(2 * CHARGE)} credits, expected at most {credits_text(max_cost)}"
        assert [(each.code, each.detail) for each in outcomes(effects)] == [("too_expensive", told)] * 2


def test_what_would_take_effect_when_the_slot_ends_is_not_proposed(buyer: Growing) -> None:
    last = 5 * HOUR - NOTICE
    buyer.asks(now=last - 1)
    assert [each[4] for each in failed(buyer.priced(now=last))] == ["bad_times"]
    assert (buyer.proposed, buyer.changes.open) == ([], ())


def test_a_quote_proposes_nothing(buyer: Growing) -> None:
    buyer.asks(quote_only=True)
    effects = buyer.priced()
    (outcome,) = outcomes(effects)
    assert (outcome.agreement_id, outcome.number, outcome.done) == ("a1", 0, False)
    assert (outcome.code, outcome.charge, outcome.refund) == ("quoted", CHARGE, 0)
    assert (outcome.cores, outcome.until, outcome.effective_at) == (24, 5 * HOUR, 1 + NOTICE)
    assert (len(effects), buyer.changes.open, buyer.proposed) == (1, (), [])


def test_what_is_given_back_meanwhile_is_not_added_to(buyer: Growing) -> None:
    buyer.asks()
    buyer.standing = "cancelling"
    assert [each[4:] for each in failed(buyer.priced())] == [("not_active", "a1 is cancelling now")]


def test_a_seller_that_refuses_ends_it_for_all(buyer: Growing) -> None:
    buyer.asks(AGREEMENT, OTHER)
    assert buyer.hears(c.ChangeAgreed("a1", 1)) == []  # nothing has been proposed yet
    refused = buyer.hears(c.ChangeRefused("a1", 1, "cores_taken", "full"))
    assert failed(refused) == [(each, False, 16, 5 * HOUR, "cores_taken", "full") for each in ("a1", "a2")]


def test_words_about_other_numbers_or_slots_are_old_news(buyer: Growing) -> None:
    assert buyer.priced() == []
    buyer.asks()
    assert buyer.priced(number=2) == buyer.priced(agreement_id="a2") == []
    assert buyer.hears(c.ChangeRefused("a1", 2, "cores_taken", "full")) == []
    assert buyer.is_not_understood(reference="a1#2") == []
    assert buyer.is_not_understood(reference="a2#1") == []
    assert buyer.changes.open == ("a1",)


def test_a_seller_that_does_not_understand_is_perhaps_too_old(buyer: Growing) -> None:
    buyer.asks()
    ((*_, code, detail),) = failed(buyer.is_not_understood(now=1))
    assert (code, detail.partition(";")[0]) == ("not_understood", "res1 does not understand the price inquiry")


def test_a_seller_that_does_not_understand_what_is_proposed_ends_it_at_the_bank(buyer: Growing) -> None:
    buyer.asks()
    buyer.priced()
    assert buyer.is_not_understood(reference="a1#2") == []
    (withdrawal,) = messages(buyer.is_not_understood())
    assert withdrawal.receiver == "bank"
    assert isinstance(withdrawal.content, c.OrderWithdrawal)
    assert withdrawal.content.reason.startswith("res1 does not understand the amendment")
    assert buyer.registry.deadline == 2 + SECOND  # when the bank is asked again


def test_a_bug_before_anything_was_proposed_ends_it(buyer: Growing) -> None:
    buyer.asks(AGREEMENT, OTHER)
    assert buyer.changes.resume("a9", (), 1) == []
    ended = buyer.changes.resume("a2", (), 1)
    why = "the user agent failed before it was proposed"
    assert failed(ended) == [(each, False, 16, 5 * HOUR, "agent_failed", why) for each in ("a1", "a2")]
    assert buyer.changes.resume("a2", (), 1) == []


def test_what_rests_is_silent_and_nothing_else_is(buyer: Growing) -> None:
    buyer.asks()
    buyer.asks(OTHER)
    buyer.changes.rest("a1")
    assert buyer.changes.open == ("a2",)
    assert calls(buyer.registry.tick(SECOND)) == CALLS[1:]


@pytest.mark.parametrize("named", [{"cores": 23}, {"until": 6 * HOUR}, {"cores": 0, "until": 0, "state": ""}])
def test_a_price_of_something_else_is_a_late_answer_to_an_earlier_call(buyer: Growing, named: dict[str, Any]) -> None:
    """Calls that came to no proposal have one number: 23 cores at 1 are not 24 at 1."""
    buyer.asks()
    assert buyer.priced(1, **named) == []
    (done, *_) = records(buyer.priced(60))
    assert (done.signed.change.cores, done.signed.change.cpu_hour_cost) == (24, 60)


def test_a_price_for_another_state_of_the_slot_is_not_taken(buyer: Growing) -> None:
    buyer.asks()
    ended = failed(buyer.priced(60, state="another"))
    assert [(each[0], each[1], each[4]) for each in ended] == [("a1", False, "other_state")]
    assert buyer.changes.open == ()
