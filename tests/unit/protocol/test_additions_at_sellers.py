"""What a resource lets be added to a slot, when that may be used, and how often a slot is changed.

alice has 16 cores from the first hour to the second, for what a resource of 64 cores asks.
"""

from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.agreement import ContractChange, Signed
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.money import cost
from ramp.model.offer import NOT_RESIZABLE, Refusal, RefusalCode
from ramp.model.sizes.amended import SLOT_CHANGES_MAX, SlotState, after, first_state
from ramp.protocol import effects as fx
from ramp.protocol.effects import ResizeSlot
from ramp.protocol.events import SlotResized, SlotsTended
from ramp.protocol.resource.jobs.job_desk import due_at
from ramp.protocol.resource.seller import PriceRange
from ramp.protocol.resource.slots.size_desk import EFFECT_SLACK
from ramp.protocol.timing import Timing
from tests.agreements import NOTICE, change_of
from tests.unit.protocol.conftest import archived

AT = HOUR + MINUTE
"""The slot runs."""


class Buyer:
    """alice, who has bought a slot, and says what she likes of it."""

    def __init__(self, resource: Any) -> None:
        self.resource = resource
        self.offer = resource.sell()
        self.participant = resource.party.participants[self.offer.offer_id]
        self.state: SlotState = first_state(self.participant.agreed)
        self.number = 0

    def amendment(self, cores: int, now: int, effective_at: int, price: int = 0, until: int = 0) -> ContractChange:
        self.number += 1
        terms = {"effective_at": effective_at, "valid_until": min(effective_at + MINUTE, now + 15 * MINUTE)}
        agreement, number = self.participant.agreed, self.number
        return change_of(agreement, cores, now, price, state=self.state, until=until, number=number, **terms)

    def propose(self, body: ContractChange, now: int) -> list[Any]:
        return said(self.resource.hear("alice", Signed(body, ("alice",), "text"), now))

    def price(self, cores: int, now: int, until: int = 0) -> Any:
        call = c.ChangeCall("a1", self.number + 1, cores, until or self.state.until, 70)
        (answer,) = said(self.resource.hear("alice", call, now))
        return answer

    def grown(self, cores: int, now: int, until: int = 0) -> list[Any]:
        """What is said of an addition that is proposed at the price asked, and in time."""
        price = self.price(cores, now, until)
        if isinstance(price, c.ChangeRefused):
            return [price]
        body = self.amendment(cores, now, now + NOTICE, price.cpu_hour_cost, until)
        answers = self.propose(body, now)
        if any(isinstance(each, c.ChangeAgreed) for each in answers):
            self.resource.hear("alice", c.ChangeAgreed("a1", body.number), now)
            self.resource.hear("bank", c.ChangePosted("a1", body.number, f"t{body.number}", body.charge), now)
            self.state = after(self.state, body)
        return answers


def said(effects: list[fx.Effect]) -> list[Any]:
    return [each.message.content for each in effects if isinstance(each, fx.Send) and each.message.receiver == "alice"]


@pytest.fixture
def buyer(resource: Any) -> Buyer:
    return Buyer(resource)


def due(buyer: Buyer, cores: int, now: int, begin_at: int = 0) -> int:
    return due_at(c.JobOrder("j", "a1", cores, 1, begin_at, ("x",)), buyer.participant, now)


def test_an_addition_takes_effect_soon_after_its_notice_or_is_refused(buyer: Buyer) -> None:
    price = buyer.price(48, AT).cpu_hour_cost
    latest = AT + NOTICE + EFFECT_SLACK
    late = buyer.amendment(48, AT, latest + 1, price)
    (refused,) = buyer.propose(late, AT)
    assert (refused.code, "expected 1970-01-01T01:02:10Z or earlier" in refused.detail) == ("long_notice", True)
    (agreed,) = buyer.propose(buyer.amendment(48, AT, latest, price), AT)
    assert agreed == c.ChangeAgreed("a1", 2)


def refusal(answers: list[Any]) -> str:
    (answer,) = answers
    assert isinstance(answer, c.ChangeRefused)
    return answer.code


def called(buyer: Buyer, cores: int, until: int = 2 * HOUR, number: int = 1, sender: str = "alice") -> list[Any]:
    """What whoever asks for the price of such a slot is told."""
    effects = buyer.resource.hear(sender, c.ChangeCall("a1", number, cores, until, 70), AT)
    return [each.message.content for each in effects if isinstance(each, fx.Send) and each.message.receiver == sender]


def test_nobody_is_told_the_price_of_what_is_sold_to_another(buyer: Buyer) -> None:
    assert refusal(called(buyer, 48, sender="mallory")) == "unknown_agreement"
    stranger = c.ChangeCall("a9", 1, 48, 2 * HOUR, 70)
    assert refusal(said(buyer.resource.hear("alice", stranger, AT))) == "unknown_agreement"


def test_what_is_added_has_the_price_that_was_named_at_least(buyer: Buyer) -> None:
    dearest = 1_000
    assert refusal(buyer.propose(buyer.amendment(48, AT, AT + NOTICE, dearest), AT)) == "no_price"
    price = buyer.price(48, AT).cpu_hour_cost
    assert refusal(buyer.propose(buyer.amendment(48, AT, AT + NOTICE, price - 1), AT)) == "price"
    (agreed,) = buyer.propose(buyer.amendment(48, AT, AT + NOTICE, price), AT)
    assert agreed == c.ChangeAgreed("a1", 3)


def test_a_copy_of_the_call_for_what_is_proposed_is_old_news(buyer: Buyer) -> None:
    price = buyer.price(48, AT).cpu_hour_cost
    buyer.propose(buyer.amendment(48, AT, AT + NOTICE, price), AT)
    assert called(buyer, 48) == []
    assert refusal(called(buyer, 32, number=2)) == "another_open"


def test_who_drains_adds_nothing(buyer: Buyer) -> None:
    price = buyer.price(48, AT).cpu_hour_cost
    buyer.resource.party.set_selling(PriceRange(60, 20), draining=True, now=AT)
    assert refusal(called(buyer, 48)) == "draining"
    assert refusal(buyer.propose(buyer.amendment(48, AT, AT + NOTICE, price), AT)) == "draining"


@pytest.mark.parametrize(
    ("cores", "until", "granted"),
    [
        (32, 2 * HOUR, True),  # 16 more
        (33, 2 * HOUR, False),
        (16, 3 * HOUR, True),  # all 16 for longer
        (17, 3 * HOUR, False),
    ],
)
def test_what_is_set_aside_for_an_addition_counts_with_what_its_buyer_holds(
    buyer: Buyer, cores: int, until: int, granted: bool
) -> None:
    """Half of 64 cores may be set aside for one buyer, who wants to hold 16 as well, before or after."""
    offer, _ = buyer.resource.hold("r2", cores=16)
    answers = called(buyer, cores, until)
    assert [type(each) for each in answers] == [c.ChangePriced if granted else c.ChangeRefused]
    assert granted or refusal(answers) == "quota"
    buyer.resource.hear("alice", c.HoldCancelled("r2", offer.offer_id), AT, conversation="r2")
    price = buyer.price(cores, AT, until).cpu_hour_cost
    buyer.propose(buyer.amendment(cores, AT, AT + NOTICE, price, until), AT)
    (vote,) = said(buyer.resource.hold("r3", cores=16)[1])
    assert isinstance(vote, c.HoldGranted) == granted


@pytest.mark.parametrize(
    ("cores", "freed", "granted"), [(32, "", True), (33, "", False), (33, "let go", True), (33, "lost", True)]
)
def test_cores_that_others_have_are_not_added(buyer: Buyer, cores: int, freed: str, granted: bool) -> None:
    """32 of 64 cores are sold or held elsewhere in that time."""
    one = buyer.resource
    sold = one.sell("r2", "a2")
    held, _ = one.hold("r3", user="bob")
    if freed == "let go":
        one.hear("bob", c.HoldCancelled("r3", held.offer_id))
    elif freed == "lost":
        one.party.handle(SlotsTended(((sold.offer_id, "its nodes are gone"),)), AT)
    answers = buyer.grown(cores, AT)
    assert [type(each) for each in answers] == [c.ChangeAgreed if granted else c.ChangeRefused]
    assert granted or refusal(answers) == "slot_taken"


def test_an_addition_is_withdrawn_only_before_the_bank_is_asked_to_post_it(buyer: Buyer) -> None:
    price = buyer.price(48, AT).cpu_hour_cost
    buyer.propose(buyer.amendment(48, AT, AT + NOTICE, price), AT)
    assert refusal(said(buyer.resource.hear("alice", c.ChangeWithdrawal("a1", 1), AT))) == "withdrawn"
    buyer.propose(buyer.amendment(48, AT, AT + NOTICE, price), AT)
    buyer.resource.hear("alice", c.ChangeAgreed("a1", 2), AT)
    assert buyer.resource.hear("alice", c.ChangeWithdrawal("a1", 2), AT) == []


@pytest.mark.parametrize(
    ("refused", "code"), [(Refusal(1, RefusalCode.CORES_TAKEN), "cores_taken"), (NOT_RESIZABLE, "cannot_resize")]
)
def test_a_machine_that_can_enlarge_nothing_is_told_from_one_that_is_full(
    buyer: Buyer, refused: Refusal, code: str
) -> None:
    body = buyer.amendment(48, AT, AT + NOTICE, buyer.price(48, AT).cpu_hour_cost)
    buyer.resource.answered = lambda effects, now: effects
    effects = buyer.resource.hear("alice", Signed(body, ("alice",), "text"), AT)
    (question,) = [each for each in effects if isinstance(each, ResizeSlot)]
    told = buyer.resource.party.handle(SlotResized(question.key, question.step, refused), AT)
    assert refusal(said(told)) == code


def test_what_is_paid_for_an_addition_is_not_given_back(buyer: Buyer) -> None:
    """The price for 32 cores more, from the end of the notice to that of the slot."""
    price = buyer.price(48, AT).cpu_hour_cost
    buyer.grown(48, AT)
    given_back = buyer.resource.party.sizes.given_back(buyer.offer.offer_id)
    assert given_back == -cost(price, 32, 2 * HOUR - AT - NOTICE)


def test_cores_that_would_be_given_up_before_they_count_are_never_free(buyer: Buyer) -> None:
    """899 s ahead, posted in seconds, given up at 880 s: that would be 32 cores for nothing, again and again."""
    price = buyer.price(48, AT).cpu_hour_cost
    (refused,) = buyer.propose(buyer.amendment(48, AT, AT + 899 * SECOND, price), AT)
    assert refused.code == "long_notice"
    buyer.number = 0
    assert buyer.grown(48, AT) == [c.ChangeAgreed("a1", 1)]
    assert buyer.participant.size[0] == 48
    assert due(buyer, 17, AT + SECOND) == AT + NOTICE  # it begins when it is paid for
    assert due(buyer, 48, AT, AT + HOUR // 2) == AT + HOUR // 2
    assert due(buyer, 16, AT + SECOND) == AT + SECOND  # what there was before is there


def test_what_is_added_twice_counts_from_its_own_instant_each(buyer: Buyer) -> None:
    buyer.grown(32, AT)
    buyer.grown(48, AT + 2 * SECOND)
    assert [due(buyer, cores, AT + 3 * SECOND) for cores in (16, 32, 48)] == [
        AT + 3 * SECOND,
        AT + NOTICE,
        AT + 2 * SECOND + NOTICE,
    ]


def test_a_slot_is_changed_some_dozens_of_times_at_most(buyer: Buyer) -> None:
    for change in range(SLOT_CHANGES_MAX):
        (agreed,) = buyer.grown(17 + change, AT + change * SECOND)
        assert agreed == c.ChangeAgreed("a1", change + 1)
    now = AT + MINUTE
    assert refusal(buyer.grown(17 + SLOT_CHANGES_MAX, now)) == "too_many_changes"
    smaller = buyer.amendment(8, now, now + NOTICE)
    assert refusal(buyer.propose(smaller, now)) == "too_many_changes"


def test_a_lengthened_slot_is_kept_for_an_hour_after_its_new_end_and_keeps_no_other_in_memory(buyer: Buyer) -> None:
    one, retention, new_end = buyer.resource, Timing().retention, 4 * HOUR
    other = one.sell("r2", "a2")
    assert other.end == buyer.offer.end
    one.party.tick(other.start)
    for agreement_id in ("a1", "a2"):  # the bank says that they stand
        one.hear("bank", c.PaymentMade(agreement_id, "t1", other.cost), AT)
    assert buyer.grown(16, AT, new_end) == [c.ChangeAgreed("a1", 1)]
    assert gone(one, other.end + retention) == [other.offer_id]
    assert gone(one, new_end + retention - 1) == []
    assert gone(one, new_end + retention) == [buyer.offer.offer_id]


def gone(one: Any, now: int) -> list[str]:
    """What goes to the archive by then."""
    references: list[str] = []
    while one.party.deadline is not None and one.party.deadline <= now:
        effects = one.answered(one.party.tick(one.party.deadline), one.party.deadline)
        references += archived(effects)
    return references
