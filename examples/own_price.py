"""A price strategy of one's own: the start price for a busy machine, the minimum for an empty one, whatever others bid.

`python examples/own_price.py` sells by it, and by the paper's rule, in a simulated market of twenty machines. On a real
market a package names it in the entry point group `ramp.pricing` (`examples/plugin_package`).
"""

import ramp
import simulation
from ramp.model.offer import RefusalCode
from ramp.protocol.pricing import PriceQuestion, PriceRefusal


def by_load(question: PriceQuestion) -> int | PriceRefusal:
    """Whole credits per core-hour, or why there is no offer."""
    price = question.minimum_price + round(question.load * (question.start_price - question.minimum_price))
    if question.own_last == price:
        return PriceRefusal(RefusalCode.OWN_OFFER_STANDS)
    if price > question.asking and not question.best_offer:
        return PriceRefusal(RefusalCode.PRICE, nearest=price)
    return price


def main() -> None:
    """Sell the same four requests by both rules."""
    wanted = [ramp.request(cores=cores, wall_time="2h", price=75) for cores in (16, 256, 1024, 4096)]
    for name, pricing in (("the paper's rule", None), ("by load", by_load)):
        study = simulation.market(*wanted, swarm="table2", rounds=5, pricing=pricing, age="2d")
        sold = ", ".join(f"{unit.price_paid:.4g}" for purchase in study.purchases for unit in purchase.units)
        print(f"{name}: sold at {sold} credits per core-hour with {sum(study.messages.values())} messages")


if __name__ == "__main__":
    main()
