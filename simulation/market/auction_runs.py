"""Auction studies in virtual time: the function behind `simulation.market(...)`, and its result.

The parties and hosts are the agents' own, their messages typed values that arrive in order. No server, no files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from ramp.client.request import Requestable
from ramp.client.results import Purchase, Unit, purchase_of
from ramp.client.submission import ROUND_TIME, ROUNDS, Prefer, auction_options, submission
from ramp.client.times import duration_of
from ramp.control import answering
from ramp.errors import ConfigurationError, TransportError
from ramp.model.acl import Message
from ramp.model.contents import Bid
from ramp.model.instant import HOUR, MINUTE, SECOND, Duration, Instant
from ramp.options import checked, nearest_name, read_argument
from ramp.protocol.events import AuctionOptions
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.pricing import PricingStrategy
from ramp.protocol.progress import GuestFailed, Progress, RequestEnded, RoundClosed
from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration.values import ResourceConfig, SwarmConfig, pricing_strategy
from ramp.shipped_files import find_config
from simulation.market.market_view import Checker, MarketView
from simulation.market.observing import is_heartbeat, unless_rule_failed
from simulation.market.simulated_access import REGISTRATION
from simulation.market.specs import UserSpec, composition_of, configured
from simulation.market.world import START, World
from simulation.record_array import RecordArray
from simulation.seldom_collected import seldom_collected

Pricing = str | PricingStrategy
"""A price strategy by name, or the function itself."""

PLENTY: Final = 10**13
"""What a buyer has whom the study makes, in minor units: money decides nothing then."""

SETTLING: Final[Duration] = HOUR + 30 * MINUTE
"""How long after the last round's limit a request may still be settling."""

Best = tuple[tuple[int, Bid], ...]
"""Best offer of each unit after a round, with the unit's number."""

_REQUEST_FIELDS: Final = [
    ("request", np.int64), ("user", np.str_), ("submitted_s", np.float64), ("duration_s", np.float64),
    ("status", np.str_), ("units", np.int64), ("rounds", np.int64), ("cost", np.int64),
]  # fmt: skip
_PRICE_FIELDS: Final = [
    ("request", np.int64), ("round", np.int64), ("unit", np.int64), ("asked", np.int64), ("best", np.int64),
    ("offers", np.int64), ("refusals", np.int64), ("duration_s", np.float64),
]  # fmt: skip
_OFFER_FIELDS: Final = [
    ("request", np.int64), ("round", np.int64), ("unit", np.int64), ("resource", np.str_), ("price_offered", np.int64),
    ("cores", np.int64), ("cost", np.int64), ("start_s", np.float64), ("won", np.bool_),
]  # fmt: skip
_UNIT_FIELDS: Final = [
    ("request", np.int64), ("unit", np.int64), ("resource", np.str_), ("cores_asked", np.int64), ("cores", np.int64),
    ("price_offered", np.int64), ("price_paid", np.float64), ("cost", np.int64), ("start_s", np.float64),
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class MarketRun:
    """What came of a study. Its tables are structured arrays (`.to_pandas()` where pandas is there).

    Times in seconds count from the market's opening, prices are whole credits per core-hour, costs minor units
    (hundredths of a credit). A request's number is its place among the arguments, from 1.

    Attributes:
        purchases: how each request ended, in the order given.
        users: who asked for each, in the same order.
        messages: how many messages were sent, by kind; heartbeats are left out.
        virtual_s: how long it took in the market's time.
    """

    purchases: tuple[Purchase, ...]
    users: tuple[str, ...]
    messages: Mapping[str, int]
    virtual_s: float
    _best: Mapping[str, Sequence[Best]] = field(repr=False)
    _opening: Instant = field(repr=False)

    @cached_property
    def requests(self) -> RecordArray:
        """One entry a request: `request`, `user`, `submitted_s`, `duration_s`, `status`, `units`, `rounds`, `cost`."""
        return RecordArray.of(
            _REQUEST_FIELDS,
            (
                (
                    number,
                    self.users[number - 1],
                    (each.outcome.started_at - self._opening) / SECOND,
                    each.outcome.duration / SECOND,
                    str(each.status),
                    len(each.units),
                    len(each.rounds),
                    each.cost,
                )
                for number, each in enumerate(self.purchases, 1)
            ),
        )

    @cached_property
    def prices(self) -> RecordArray:
        """One entry a request, round and unit.

        `request`, `round`, `unit`; `asked`, the asking price; `best`, the price of the best offer so far, both per
        core-hour asked, -1 before the first;
        `offers` and `refusals`, how many came in this round; `duration_s` of the round. The extra round of best offers
        has the number after the last.
        """
        return RecordArray.of(
            _PRICE_FIELDS,
            (
                (
                    number,
                    record.round_number,
                    unit,
                    asked,
                    best[unit].cpu_hour_cost if unit in best else -1,
                    sum(offer.unit == unit for offer in record.offers),
                    sum(each.refusal.unit == unit for each in record.refusals),
                    record.duration / SECOND,
                )
                for number, each in enumerate(self.purchases, 1)
                for record, best_bids in zip(each.rounds, self._best.get(each.request_id, ()), strict=True)
                for best in (dict(best_bids),)
                for unit, asked in record.asked
            ),
        )

    @cached_property
    def offers(self) -> RecordArray:
        """One entry an offer.

        `request`, `round`, `unit`, `resource`, `price_offered`, `cores` charged for, `cost` as offered, `start_s` of
        its slot, and whether it `won`: was bought or quoted.
        """
        return RecordArray.of(
            _OFFER_FIELDS,
            (
                (
                    number,
                    record.round_number,
                    offer.unit,
                    offer.resource,
                    offer.cpu_hour_cost,
                    offer.cores,
                    offer.cost,
                    (offer.start - self._opening) / SECOND,
                    offer.offer_id in won,
                )
                for number, each in enumerate(self.purchases, 1)
                for won in ({unit.bought.offer.offer_id for unit in _won(each)},)
                for record in each.rounds
                for offer in record.offers
            ),
        )

    @cached_property
    def units(self) -> RecordArray:
        """One entry a unit bought or quoted.

        `request`, `unit`, `resource`; `cores_asked`, and `cores` charged for; `price_offered` and `price_paid`, which
        differ under a rule with a price of its own; `cost` as paid, `start_s` of the slot.
        """
        return RecordArray.of(
            _UNIT_FIELDS,
            (
                (
                    number,
                    unit.number,
                    unit.bought.offer.resource,
                    unit.cores_asked,
                    unit.cores,
                    unit.price_offered,
                    float(unit.price_paid),
                    unit.cost,
                    (unit.bought.offer.start - self._opening) / SECOND,
                )
                for number, each in enumerate(self.purchases, 1)
                for unit in _won(each)
            ),
        )


def _won(purchase: Purchase) -> tuple[Unit, ...]:
    """Return the units bought or quoted; a request without a sufficient offer lists the best others."""
    return purchase.units if purchase.status in (RequestStatus.COMMITTED, RequestStatus.QUOTED) else ()


@checked
def market(
    *requests: Requestable | Sequence[Requestable],
    swarm: str | Path | SwarmConfig = "table2",
    rounds: int = ROUNDS,
    round_time: str | timedelta = ROUND_TIME,
    prefer: Prefer = "cheapest",
    max_cost: int | str | Decimal | None = None,
    quote_only: bool = False,
    rule: str = "",
    pricing: Pricing | Mapping[str, Pricing] | None = None,
    users: int | None = None,
    every: str | timedelta | None = None,
    age: str | timedelta = "0s",
    seed: int = 0,
) -> MarketRun:
    """Run requests through a market in virtual time; the same arguments give the same result.

    Args:
        *requests: from `ramp.request`, files of RFQL, or several of these that are bought together or not at all.
            Relative times count from the submission; the market opens in January 2027.
        swarm: who sells: `table2` (the paper's twenty machines), `quickstart`, `torus`, a file, or one that is loaded.
        rounds: rounds of bidding.
        round_time: limit of a round; it closes as soon as every answer is in.
        prefer: how offers are ranked, `"cheapest"` or `"soonest"`.
        max_cost: most to pay for each request, in credits.
        quote_only: whether to stop before anything is bought, so that no request changes what the next one finds.
        rule: name of the auction rule (`ramp plugins list rule`), or `FILE.py:Name` (default: as configured).
        pricing: price strategy of all resources, by name or as a function, or of some by their names (default: as
            configured).
        users: number of buyers, with more money than they can spend (default: those of the configuration). Requests are
            dealt to the buyers in turn.
        every: pause between two submissions, `"0s"` for all at once (default: each when the one before has ended).
        age: how long the machines have been running when the market opens.
        seed: of whatever is drawn.

    Raises:
        ConfigurationError: if something of that name does not exist, an option makes no sense, or an auction rule, a
            price strategy or a machine fails.
        DocumentError: if a request is not valid.
    """
    config = swarm if isinstance(swarm, SwarmConfig) else load_config(find_config(str(swarm)))
    options = auction_options(
        rounds=rounds,
        round_time=round_time,
        prefer=prefer,
        max_cost=max_cost,
        quote_only=quote_only,
        rule=rule,
    )
    if not requests:
        raise ConfigurationError("no requests; submit at least one")
    pause = None if every is None else read_argument("every", duration_of, every)
    buyers = _buyers(config, users)
    recorder = _Recorder()
    world = World(
        configured(
            config.resources,
            START + REGISTRATION - read_argument("age", duration_of, age),
            seed,
            _strategies(config.resources, pricing),
        ),
        buyers,
        seed=seed,
        composition=composition_of(config),
        checkers=(recorder,),
        listen=recorder.listen,
    )
    with seldom_collected():
        world.run(limit=REGISTRATION)
        return _trade(world, recorder, [each.name for each in buyers], requests, options, pause)


def _trade(
    world: World,
    recorder: _Recorder,
    buyers: Sequence[str],
    requests: Sequence[Requestable | Sequence[Requestable]],
    options: AuctionOptions,
    pause: Duration | None,
) -> MarketRun:
    """Submit requests one after the other, or each a pause after the one before, and let the market settle them."""
    opening = world.now
    recorder.messages.clear()
    limit = (options.rounds + 1) * options.round_time + SETTLING
    users = tuple(buyers[number % len(buyers)] for number in range(len(requests)))
    ids: list[str] = []
    for number, (user, asked) in enumerate(zip(users, requests, strict=True)):
        at = world.now if pause is None else opening + number * pause
        ids.append(f"request-{number + 1}")
        parts = asked if isinstance(asked, Sequence) else (asked,)
        world.command(user, answering.submission(submission(parts, options, at, ids[-1]), ids[-1]), at)
        if pause is None:
            _run(world, recorder, ids, limit)
    if pause is not None:
        _run(world, recorder, ids, (len(ids) - 1) * pause + limit)
    return MarketRun(
        tuple(purchase_of(unless_rule_failed(recorder.ended[each].outcome), {}, "") for each in ids),
        users,
        dict(recorder.messages.most_common()),
        (world.now - opening) / SECOND,
        recorder.best,
        opening,
    )


def _run(world: World, recorder: _Recorder, ids: Sequence[str], limit: Duration) -> None:
    """Let virtual time pass until requests have ended."""
    world.run(until=lambda: len(recorder.ended) == len(ids), limit=limit)
    if recorder.failure:  # must not pass for a seller that makes no offers
        raise ConfigurationError(recorder.failure)
    missing = [each for each in ids if each not in recorder.ended]
    if missing:
        raise TransportError(f"the simulated market stopped before these requests ended: {', '.join(missing)}")


def _buyers(config: SwarmConfig, users: int | None) -> list[UserSpec]:
    if users is None:
        return [UserSpec(each.name, each.deposit, config.auction_rule, each.overdraft) for each in config.users]
    if users < 1:
        raise ConfigurationError(f"users must be at least 1, got {users}", key="users")
    return [UserSpec(f"user{number}", PLENTY, config.auction_rule) for number in range(1, users + 1)]


def _strategies(
    resources: Sequence[ResourceConfig], pricing: Pricing | Mapping[str, Pricing] | None
) -> dict[str, PricingStrategy]:
    names = [each.name for each in resources]
    given = pricing if isinstance(pricing, Mapping) else {} if pricing is None else dict.fromkeys(names, pricing)
    for name in given:
        if name not in names:
            raise ConfigurationError(f"unknown resource {name!r}{nearest_name(name, names)}", key="pricing")
    return {name: pricing_strategy(one) if isinstance(one, str) else one for name, one in given.items()}


class _Recorder(Checker):
    """Keeps the users' reports, and counts the messages sent."""

    def __init__(self) -> None:
        self.ended: dict[str, RequestEnded] = {}
        self.best: dict[str, list[Best]] = {}
        self.messages: Counter[str] = Counter()
        self.failure = ""  # the first of a price strategy or machine

    def listen(self, name: str, progress: Progress, __: Instant) -> None:
        """Keep users' reports of rounds and ends, and the first report of a resource that a guest has failed."""
        if isinstance(progress, RoundClosed):
            self.best.setdefault(progress.request_id, []).append(progress.best)
        elif isinstance(progress, RequestEnded):
            self.ended[progress.outcome.request_id] = progress
        elif isinstance(progress, GuestFailed) and not self.failure and progress.reason:
            self.failure = f"{name}: the {progress.guest} failed: {progress.reason}"

    def on_sent(self, message: Message, view: MarketView) -> None:
        """Count a message by its kind."""
        if not is_heartbeat(message):
            self.messages[type(message.content).__name__] += 1
