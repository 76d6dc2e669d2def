"""What a resource asks for more of a sold slot: what its machine and strategy are asked, and what the buyer is told.

The slot has 16 cores from the first hour to the second and is asked about at 0; the notice is 10 s (`Timing`).
"""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import Nodes, RequestUnit, TorusTerms
from ramp.model.sizes.amended import SlotState, first_state
from ramp.model.slot import Slot
from ramp.protocol import effects as fx
from ramp.protocol.pricing import PriceQuestion, PriceRefusal
from ramp.protocol.resource.participant import Participant
from ramp.protocol.resource.slots.growth_prices import PENDING_MAX, GrowthPrices
from ramp.protocol.timing import Timing

VALIDITY = Timing().offer_validity
CALL = c.ChangeCall("a1", 1, 32, 2 * HOUR, 70)
"""Twice the cores."""


@dataclass
class Desk:
    """The prices of a resource that has sold one slot to alice; what machine and strategy say is the test's."""

    participant: Participant
    asked: list[tuple[RequestUnit, Slot, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.prices = GrowthPrices(Timing(), self._question)

    def _question(self, unit: RequestUnit, user: str, slot: Slot) -> PriceQuestion:
        self.asked.append((unit, slot, user))
        return PriceQuestion(unit.cpu_hour_cost, 20, 60, 4, slot.load)

    @property
    def key(self) -> str:
        return self.participant.offer.offer_id

    @property
    def state(self) -> SlotState:
        return first_state(self.participant.agreed)

    def call(self, call: c.ChangeCall = CALL, now: int = 0, reference: str = "w") -> list[fx.Effect]:
        message = Message(Performative.CFP, "alice", "res", "r1", call, reply_with=reference)
        return self.prices.on_call(message, call, self.participant, self.state, now)

    def quoted(self, *answers: Slot | Refusal, call_id: str = "call-1", now: int = 0) -> list[fx.Effect]:
        return self.prices.on_quoted(call_id, answers, now)

    def priced(self, *prices: int | PriceRefusal, call_id: str = "call-1", now: int = 0) -> list[fx.Effect]:
        return self.prices.on_priced(call_id, prices, now)

    def answer(self, price: int) -> c.ChangePriced:
        """What alice is told of `CALL` at a price."""
        return c.ChangePriced("a1", 1, price, VALIDITY, CALL.cores, CALL.until, self.state.digest)

    def standing(self, now: int = 0) -> int | None:
        return self.prices.price(self.state.digest, CALL.cores, CALL.until, now)


@pytest.fixture
def desk(resource: Any) -> Desk:
    return Desk(resource.party.participants[resource.sell().offer_id])


def units(effects: list[fx.Effect]) -> list[tuple[int, int, int, int]]:
    """Number, cores, begin and end of what the machine is asked for."""
    (quote,) = effects
    assert isinstance(quote, fx.QuoteSlots)
    assert all(unit.wall_time == unit.deadline - unit.not_before for unit in quote.units)  # type: ignore[operator]
    return [(unit.number, unit.cores.total, unit.not_before, unit.deadline) for unit in quote.units]  # type: ignore[misc]


def told(effects: list[fx.Effect]) -> Message:
    (sent,) = effects
    assert isinstance(sent, fx.Send)
    assert (sent.message.sender, sent.message.receiver) == ("res", "alice")
    return sent.message


def refusal(effects: list[fx.Effect]) -> tuple[str, str]:
    message = told(effects)
    assert message.performative is Performative.REFUSE
    content = message.content
    assert isinstance(content, c.ChangeRefused)
    assert (content.agreement_id, content.number) == ("a1", 1)
    return content.code, content.detail


def free(cores: int, begin: int = HOUR, end: int = 2 * HOUR) -> Slot:
    return Slot(begin, end, cores, 0.5)


def answered(desk: Desk, *prices: int | PriceRefusal, now: int = 0) -> list[fx.Effect]:
    """Up to the strategy's answer."""
    desk.call(now=now)
    desk.quoted(free(16), *(free(1) for _ in range(4)), now=now)
    return desk.priced(*prices, now=now)


# -- what is asked ---------------------------------------------------------------------------------------------------


def test_only_what_is_free_is_asked_of_the_machine(desk: Desk) -> None:
    desk.participant.unit = replace(desk.participant.unit, torus=TorusTerms(geometry=(4, 4, 1)))
    (question,) = desk.call(replace(CALL, number=1_000, cpu_hour_cost=71))
    assert isinstance(question, fx.QuoteSlots)  # which changes nothing there, whatever the buyer's number
    assert {(unit.cpu_hour_cost, unit.torus) for unit in question.units} == {(71, None)}


def test_a_slot_with_gpus_keeps_its_nodes(desk: Desk) -> None:
    desk.participant.unit = replace(desk.participant.unit, cores=Nodes(2, 8), gpus_per_node=1)
    detail = "a slot with GPUs keeps its nodes: expected 16 cores; buy another slot for more"
    assert refusal(desk.call()) == ("whole_nodes", detail)
    assert units(desk.call(replace(CALL, cores=16, until=3 * HOUR)))


def test_more_cores_are_asked_for_as_long_as_the_slot_lasts_and_then_ever_fewer(desk: Desk) -> None:
    assert units(desk.call()) == [
        (number, cores, HOUR, 2 * HOUR) for number, cores in enumerate((16, 8, 4, 2, 1), start=1)
    ]


def test_a_later_end_is_asked_for_from_the_end_on_and_then_ever_shorter(desk: Desk) -> None:
    asked = desk.call(replace(CALL, cores=16, until=2 * HOUR + 64 * MINUTE))
    later = [2 * HOUR + minutes * MINUTE for minutes in (64, 32, 16, 8, 4, 2, 1)]
    assert units(asked) == [(number, 16, 2 * HOUR, end) for number, end in enumerate(later, start=1)]


def test_more_in_both_ways_is_asked_for_in_two_pieces_and_nothing_smaller(desk: Desk) -> None:
    assert units(desk.call(replace(CALL, until=3 * HOUR))) == [(1, 16, HOUR, 2 * HOUR), (2, 32, 2 * HOUR, 3 * HOUR)]


def test_what_has_begun_is_added_to_after_the_notice(desk: Desk) -> None:
    now = HOUR + 10 * MINUTE
    assert {begin for _, _, begin, _ in units(desk.call(now=now))} == {now + 10 * SECOND}


def test_at_the_end_nothing_can_be_added(desk: Desk) -> None:
    assert desk.call(now=2 * HOUR - 10 * SECOND - 1) != []
    assert refusal(desk.call(now=2 * HOUR - 10 * SECOND)) == ("too_late", "the slot ends at 1970-01-01T02:00:00Z")


@pytest.mark.parametrize("changes", [{"cores": 16}, {"cores": 15}, {"until": 2 * HOUR - 1}])
def test_what_adds_nothing_or_takes_something_away_is_no_growth(desk: Desk, changes: dict[str, int]) -> None:
    code, detail = refusal(desk.call(replace(CALL, **changes)))
    assert (code, "the slot has 16 cores until" in detail) == ("mixed_change", True)


def test_the_strategy_is_asked_for_every_piece_at_the_price_asked(desk: Desk) -> None:
    desk.call(replace(CALL, until=3 * HOUR))
    pieces = free(16), free(32, 2 * HOUR, 3 * HOUR)
    (question,) = desk.quoted(*pieces)
    assert isinstance(question, fx.PriceSlots)
    assert (question.call_id, len(question.questions)) == ("call-1", 2)
    assert [(unit.cpu_hour_cost, slot, user) for unit, slot, user in desk.asked] == [
        (70, pieces[0], "alice"),
        (70, pieces[1], "alice"),
    ]


# -- what is answered ------------------------------------------------------------------------------------------------


def test_the_dearer_piece_names_the_price_which_stands_as_long_as_it_says(desk: Desk) -> None:
    desk.call(replace(CALL, until=3 * HOUR))
    desk.quoted(free(16), free(32, 2 * HOUR, 3 * HOUR))
    message = told(desk.priced(40, 55))
    assert (message.performative, message.in_reply_to) == (Performative.PROPOSE, "w")
    assert message.content == replace(desk.answer(55), until=3 * HOUR)
    for now, price in ((VALIDITY - 1, 55), (VALIDITY, None)):
        assert desk.prices.price(desk.state.digest, 32, 3 * HOUR, now) == price
    assert desk.standing() is None  # of another size
    assert desk.prices.price("other", 32, 3 * HOUR, 0) is None


def test_the_same_call_gets_the_same_price_while_it_stands(desk: Desk) -> None:
    first = told(answered(desk, 50))
    again = told(desk.call(now=VALIDITY - 1, reference="w2"))
    assert (again.content, again.in_reply_to) == (first.content, "w2")
    assert units(desk.call(now=VALIDITY)) == units(desk.call(now=VALIDITY, reference="w3"))  # it is asked for anew


def test_a_copy_of_a_call_that_is_being_worked_out_is_not_asked_again(desk: Desk) -> None:
    desk.call()
    assert desk.call() == []
    assert desk.call(reference="w2") != []  # its sender asks again, and the first answer may have been lost
    desk.quoted(free(16), *(free(1) for _ in range(4)), call_id="call-2")
    assert told(desk.priced(50, call_id="call-2")).in_reply_to == "w2"


def test_a_price_lasts_as_long_as_before_when_the_clock_is_set(desk: Desk) -> None:
    answered(desk, 50)
    desk.prices.answers.clock_set(HOUR)
    assert (desk.standing(HOUR + VALIDITY - 1), desk.standing(HOUR + VALIDITY)) == (50, None)
    assert told(desk.call(now=HOUR)).content == desk.answer(50)
    desk.prices.answers.clock_set(-2 * HOUR)
    assert desk.standing(VALIDITY - HOUR) is None


# -- what is refused -------------------------------------------------------------------------------------------------


def test_what_would_pass_is_named_the_largest_first(desk: Desk) -> None:
    taken = Refusal(1, RefusalCode.CORES_TAKEN)
    desk.call()
    code, detail = refusal(desk.quoted(taken, taken, free(4), free(2), free(1)))
    assert (code, detail) == ("cores_taken", "the addition is not free; available: 20 cores")


def test_a_shorter_time_that_would_pass_is_named_by_its_end(desk: Desk) -> None:
    taken = Refusal(1, RefusalCode.CORES_TAKEN)
    desk.call(replace(CALL, cores=16, until=3 * HOUR))
    detail = refusal(desk.quoted(taken, free(16), *(free(16) for _ in range(5))))[1]
    assert detail.endswith("available: an end at 1970-01-01T02:30:00Z")


@pytest.mark.parametrize(
    ("until", "pieces", "available"), [(2 * HOUR, 5, "nothing down to 17 cores"), (3 * HOUR, 2, "unknown")]
)
def test_where_nothing_would_pass_the_slot_stays(desk: Desk, until: int, pieces: int, available: str) -> None:
    desk.call(replace(CALL, until=until))
    detail = refusal(desk.quoted(*[Refusal(1, RefusalCode.CORES_TAKEN)] * pieces))[1]
    assert detail == f"the addition is not free; available: {available}"


@pytest.mark.parametrize(
    ("price", "detail"),
    [
        (PriceRefusal(RefusalCode.PRICE, 90, "dear"), "acceptable price: 90 credits/core-hour"),
        (PriceRefusal(RefusalCode.PRICE, None, "never"), "never"),
    ],
)
def test_a_strategy_that_names_no_price(desk: Desk, price: PriceRefusal, detail: str) -> None:
    assert refusal(answered(desk, price)) == ("price_below_minimum", detail)
    assert desk.standing() is None
    assert desk.priced(50) == []  # it is told once


def test_the_oldest_call_goes_when_too_many_wait(desk: Desk) -> None:
    desk.call(CALL)
    (waiting,) = desk.prices.pending.values()
    for _ in range(PENDING_MAX):
        desk.prices.pending.put(waiting)
    lack = (Refusal(1, RefusalCode.CORES_TAKEN),) * 5
    assert [len(desk.quoted(*lack, call_id=f"call-{number}")) for number in (1, 2, 3)] == [0, 1, 1]
