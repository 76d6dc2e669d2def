"""The ranking against the plainest one: keep everything, take each resource's best, sort."""

from hypothesis import given
from hypothesis import strategies as st

from ramp.model.instant import HOUR
from ramp.model.offer import Offer
from ramp.protocol.events import Preference
from ramp.protocol.user.evaluator import Ranking

OFFERS = st.lists(
    st.builds(
        lambda number, resource, price, start: Offer(
            f"offer-{number}", "r", 1, resource, price, start * HOUR, (start + 1) * HOUR, 16, 0.5, HOUR
        ),
        st.integers(0, 99),
        st.sampled_from("abcd"),
        st.integers(1, 5),
        st.integers(0, 3),
    ),
    max_size=12,
)


@given(OFFERS, st.sampled_from(list(Preference)))
def test_ranking_is_each_resources_best_in_order(offers: list[Offer], preference: Preference) -> None:
    ranking = Ranking(preference)
    for offer in offers:
        ranking.add(offer)

    def key(arrival: int) -> tuple[int, int, int]:
        cost, end = offers[arrival].cost, offers[arrival].end
        return (cost, end, arrival) if preference is Preference.CHEAPEST else (end, cost, arrival)

    best: dict[str, int] = {}
    for arrival in sorted(range(len(offers)), key=key):
        best.setdefault(offers[arrival].resource, arrival)
    assert ranking.offers == tuple(offers[arrival] for arrival in sorted(best.values(), key=key))
