"""What holds of every price, whatever the machine, load and price asked."""

from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal

from hypothesis import given
from hypothesis import strategies as st

from ramp.protocol.pricing import PriceQuestion, PriceRefusal, original_price, paper_price

PRICES = st.integers(1, 300)


@st.composite
def questions(draw: st.DrawFn) -> PriceQuestion:
    minimum = draw(PRICES)
    return PriceQuestion(
        asking=draw(PRICES),
        start_price=minimum + draw(st.integers(0, 200)),
        minimum_price=minimum,
        load=draw(st.integers(0, 100)) / 100,
        rounds_expected=draw(st.integers(1, 10)),
        best_offer=draw(st.booleans()),
    )


@given(questions(), st.sampled_from([paper_price, original_price]))
def test_a_bid_is_never_below_the_minimum_and_meets_the_price_asked(question: PriceQuestion, strategy: object) -> None:
    bid = strategy(question)  # type: ignore[operator]
    if isinstance(bid, PriceRefusal):
        assert question.minimum_price > question.asking
        assert bid.nearest == question.minimum_price
        nearest = strategy(replace(question, asking=bid.nearest))  # type: ignore[operator]
        assert nearest == question.minimum_price
        return
    assert bid >= question.minimum_price
    assert question.best_offer or bid <= question.asking


@given(questions())
def test_a_busier_machine_is_never_cheaper(question: PriceQuestion) -> None:
    busier = paper_price(replace(question, load=min(1.0, question.load + 0.2)))
    bid = paper_price(question)
    if isinstance(bid, int) and isinstance(busier, int):
        assert busier >= bid


@given(questions())
def test_the_formula_in_decimal_arithmetic(question: PriceQuestion) -> None:
    hundredths = max(10, round(question.load * 100))
    step = Decimal(question.start_price - question.minimum_price) * (100 - hundredths)
    exact = question.asking - step / (100 * question.rounds_expected)
    bid = paper_price(question)
    # the load is a binary fraction, so at an exact half (or a quotient without end) the neighbour is right as well
    near = {int((exact + each).to_integral_value(ROUND_HALF_UP)) for each in (Decimal("-1e-9"), Decimal("1e-9"))}
    if isinstance(bid, int) and bid > question.minimum_price:
        assert bid in near
