"""Sales over time: what counts as one, how many are kept, and what pages make of them."""

from ramp.model.instant import HOUR, MINUTE
from ramp.model.offer import Offer
from ramp.protocol.outcome import BoughtUnit, RequestOutcome, RequestStatus
from ramp.web.live import Sale, SaleHistory, mean_price, sales_of
from ramp.web.pages.charts import INTERVALS, price_chart
from ramp.web.pages.machines.market import curve_of
from tests.unit.control.test_auction_story import NOW


def sale(number, at=0, cores=1, cost=100, resource="a"):
    return Sale(f"agreement-{number}", NOW + at, resource, cores, HOUR, cost)


OFFER = Offer("o", "r", 1, "a", 50, NOW + HOUR, NOW + 3 * HOUR, 8, 0.5, HOUR)


def bought(agreement_id):
    """The outcome of a request that bought one unit."""
    unit = BoughtUnit(1, OFFER, 4, agreement_id=agreement_id, paid=70_000)
    return RequestOutcome("r", RequestStatus.COMMITTED, "", (), (unit,), NOW, MINUTE)


def test_only_what_was_paid_is_a_sale():
    (found,) = sales_of(bought("agreement-1"))
    assert (found.at, found.cores, found.cost) == (NOW + MINUTE, 8, 70_000)
    assert found.price == 700 / 16  # credits over 8 cores for 2 hours, at what was paid and not at what was offered
    quoted = RequestOutcome("r", RequestStatus.QUOTED, "", (), (BoughtUnit(1, OFFER, 4),), NOW, MINUTE)
    assert sales_of(quoted) == []


def test_a_sale_is_kept_once_and_in_order():
    history = SaleHistory()
    assert history.sold([sale(2, MINUTE), sale(1)])
    assert not history.sold([sale(2, MINUTE)])
    assert not history.sold([])
    assert history.since(NOW) == (sale(1), sale(2, MINUTE))
    assert history.since(NOW + 1) == (sale(2, MINUTE),)


def test_the_oldest_go():
    history = SaleHistory(most=100)
    for number in range(150):
        history.sold([sale(number, number)])
    assert history.since(NOW) == tuple(sale(number, number) for number in range(50, 150))


def test_the_mean_is_weighted_by_volume():
    assert mean_price([sale(1, cores=1, cost=10_000), sale(2, cores=3, cost=3 * 2000)]) == (100 + 3 * 20) / 4
    assert mean_price([]) == 0


def test_the_chart_has_mean_band_and_volume_of_each_interval():
    sales = [sale(1, 0, 1, 10_000), sale(2, 1, 3, 6000), sale(3, 47 * HOUR, 2, 8000)]
    lowest, band, mean, volume = price_chart(sales, NOW, NOW + INTERVALS * HOUR)["series"]
    assert len(volume["data"]) == INTERVALS
    volume = {"data": [point for point in volume["data"] if point[1]]}
    at = [point[0] * 1000 - NOW for point in mean["data"]]
    assert at == [HOUR // 2, 47 * HOUR + HOUR // 2]
    values = [[value for _, value in each["data"]] for each in (lowest, band, mean, volume)]
    assert values == [[20, 40], [80, 0], [40, 40], [4, 2]]


def test_the_chart_of_a_young_market_begins_shortly_before_its_first_sale():
    options = price_chart([sale(1, 40 * HOUR), sale(2, 47 * HOUR)], NOW, NOW + 50 * HOUR)
    assert not options["yAxis"][1]["scale"], "bars begin at 0"
    assert options["xAxis"][0]["min"] * 1000 == NOW + 50 * HOUR - 21 * HOUR // 2
    latest = price_chart([sale(1, 50 * HOUR - MINUTE)], NOW, NOW + 50 * HOUR)
    assert latest["xAxis"][0]["min"] * 1000 == NOW + 50 * HOUR - 21 * HOUR // 20


def test_the_line_of_a_seller_lies_within_its_picture():
    assert curve_of([]) == ""
    assert curve_of([sale(1)]) == "0.0,12.0 100.0,12.0"
    assert curve_of([sale(1, cost=100), sale(2, cost=300)]) == "0.0,22.0 100.0,2.0"
    many = [tuple(map(float, point.split(","))) for point in curve_of([sale(n, cost=n) for n in range(999)]).split()]
    assert len(many) == 16
    assert all(0 <= x <= 100 and 2 <= y <= 22 for x, y in many)
