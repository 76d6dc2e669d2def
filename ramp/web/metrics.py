"""`/metrics`: the metrics of a market in the text format of Prometheus, for clients with the token in its state folder.

Balances are confidential and other people may have accounts on the same computer, so loopback alone is not enough.
Prometheus reads the token from a file (`authorization.credentials_file`) and sends it as in RFC 6750, 2.1.

Labels contain no names of users or ids of requests. Source: Prometheus documentation, "Metric and label naming". Values
without an answer are left out: an old number would look like a current one.
"""

from __future__ import annotations

import hmac
import secrets
from collections import Counter as Sums
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ramp.client.machine_state import MachineState
from ramp.control.events import Event
from ramp.control.status import SwarmStatus
from ramp.errors import ConfigurationError
from ramp.model.contents.accounts import AccountLine
from ramp.model.instant import seconds
from ramp.model.money import MINOR_UNITS_PER_CREDIT
from ramp.model.offer import RefusalCode
from ramp.protocol.outcome import ALREADY_CANCELLED, RequestStatus
from ramp.protocol.progress import ChangeEnded, RequestEnded, RoundClosed, RoundOpened, UnitAdvanced
from ramp.runtime.state_folder import read_private, write_private
from ramp.web.levels import Levels

ANSWER_BUCKETS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the histogram of single answers, in seconds."""

ROUND_BUCKETS_S: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the histogram of rounds, in seconds."""

REQUEST_BUCKETS_S: Final = (0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0)
"""Upper bounds of the histogram of whole requests, in seconds."""

ROUNDS_BUCKETS: Final = (1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 20.0)
"""Upper bounds of the histogram of rounds per auction."""

TOKEN_BYTES: Final = 32
"""Random bytes of a token, written in base64url."""

TOKEN_LEAST: Final = 20
"""Minimum length of a token in characters."""


class Counted:
    """Counts the events of users, in its `registry`."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        disable_created_metrics()  # type: ignore[no-untyped-call]  # they would double the number of series

        def counter(name: str, what: str, *labels: str) -> Counter:
            return Counter(name, what, labels, registry=registry)

        def histogram(name: str, what: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(name, what, buckets=buckets, registry=registry)

        since = Gauge("ramp_counting_since_timestamp_seconds", "When counters were 0, Unix time.", registry=registry)
        since.set_to_current_time()
        self._opened = counter("ramp_auctions_opened", "Requests whose first round was opened.")
        self._ended = counter("ramp_auctions", "Requests that have ended, by outcome.", "outcome")
        self._rounds = counter("ramp_rounds", "Rounds of bidding that were closed.")
        self._calls = counter("ramp_calls_for_proposals", "Calls for proposals sent, first and again.", "sending")
        self._offers = counter("ramp_offers", "Offers received.")
        self._refusals = counter("ramp_refusals", "Refusals received, by code (no_answer: silence).", "code")
        self._stages = counter("ramp_unit_stages", "Stages that units' purchases have reached.", "stage")
        self._cancelled = counter("ramp_cancellations", "Cancellations that have ended, by result.", "result")
        self._paid = counter("ramp_paid_credits", "Credits paid for requests and resizes.")
        self._refunded = counter("ramp_refunded_credits", "Credits refunded for cancellations and resizes.")
        self._answer_s = histogram(
            "ramp_answer_seconds", "Time from the calls for proposals to a seller's answer.", ANSWER_BUCKETS_S
        )
        self._round_s = histogram("ramp_round_seconds", "Duration of rounds.", ROUND_BUCKETS_S)
        self._request_s = histogram("ramp_auction_seconds", "Duration of requests that have ended.", REQUEST_BUCKETS_S)
        self._rounds_of = histogram("ramp_auction_rounds", "Rounds of requests that have ended.", ROUNDS_BUCKETS)
        # a series that is there from the beginning has a rate at its first event
        for status in RequestStatus:
            self._ended.labels(status.value)
        for code in RefusalCode:
            self._refusals.labels(code.value)
        for sending in ("first", "again"):
            self._calls.labels(sending)
        for result in ("done", "lost", "refused"):
            self._cancelled.labels(result)

    def take(self, event: Event) -> None:
        """Count an event, if it is of a counted type."""
        match event:
            case RoundOpened(round_number=number, resources=resources):
                self._calls.labels("first").inc(resources)
                self._opened.inc(number == 1)
            case RoundClosed():
                self._take_round(event)
            case UnitAdvanced(stage=stage):
                self._stages.labels(stage).inc()
            case RequestEnded(outcome=outcome):
                self._ended.labels(outcome.status.value).inc()
                self._rounds_of.observe(len(outcome.rounds))
                self._request_s.observe(seconds(outcome.duration))
                self._paid.inc(credits_of(outcome.cost))
            case ChangeEnded(outcome=changed) if changed.code != ALREADY_CANCELLED:
                if changed.ends:
                    self._cancelled.labels("lost" if changed.cause else "done" if changed.done else "refused").inc()
                if changed.done:
                    self._paid.inc(credits_of(changed.charge))
                    self._refunded.inc(credits_of(changed.refund))
            case _:
                pass

    def _take_round(self, event: RoundClosed) -> None:
        self._rounds.inc()
        self._round_s.observe(seconds(event.record.duration))
        self._offers.inc(len(event.record.offers))
        self._calls.labels("again").inc(event.called_again)
        for refused in event.record.refusals:
            self._refusals.labels(refused.refusal.code.value).inc()
        for _, after in event.answered:
            self._answer_s.observe(seconds(after))


def credits_of(minor_units: int) -> float:
    """Return minor units as credits."""
    return minor_units / MINOR_UNITS_PER_CREDIT


@dataclass(frozen=True, slots=True)
class AllMetrics(Collector):
    """What has been counted, and the state of the market."""

    counted: CollectorRegistry
    levels: Levels

    def collect(self) -> Iterator[Metric]:
        yield from self.counted.collect()
        up = float(self.levels.status is not None)
        yield _gauge("ramp_up", "Whether the market runs (1) or not (0).", (), {(): up})
        if self.levels.status is not None:
            yield from _of_agents(self.levels.status)
        yield from _of_machines(self.levels.machines)
        if self.levels.accounts is not None:
            yield from _of_accounts(self.levels.accounts)


def _of_agents(status: SwarmStatus) -> Iterator[Metric]:
    states = Sums[tuple[str, ...]]((agent.role, agent.state) for agent in status.agents)
    restarts: Sums[tuple[str, ...]] = Sums()
    up: Sums[tuple[str, ...]] = Sums()
    for agent in status.agents:
        restarts[agent.role,] += agent.restarts
        up[agent.role,] += agent.is_up
    yield _gauge("ramp_agents", "Agents by role and state.", ("role", "state"), states)
    yield _gauge("ramp_agents_on_market", "Agents that are on the market, by role.", ("role",), up)
    # no counter: the sum falls when an agent is removed
    yield _gauge("ramp_agent_restarts", "Restarts of the agents that there are, by role.", ("role",), restarts)
    answers: dict[tuple[str, ...], float] = {(): float(not status.server.problem)}
    yield _gauge("ramp_xmpp_server_up", "Whether the XMPP server answers (1) or not (0).", (), answers)
    offsets: dict[tuple[str, ...], float] = {
        (a.name,): a.clock_offset_ms / 1000 for a in status.agents if a.clock_offset_ms is not None and a.role != "user"
    }
    yield _gauge(
        "ramp_clock_offset_seconds", "By how much an agent's clock is ahead of the bank's.", ("agent",), offsets
    )


def _of_machines(machines: Mapping[str, MachineState]) -> Iterator[Metric]:
    def each(name: str, what: str, value: Callable[[MachineState], float | None]) -> Metric:
        found = {(resource,): value(state) for resource, state in machines.items()}
        return _gauge(name, what, ("resource",), {key: known for key, known in found.items() if known is not None})

    yield each("ramp_cores", "Cores of a machine.", lambda state: state.cores)
    yield each("ramp_cores_busy", "Cores that are taken.", lambda state: state.cores_busy)
    yield each("ramp_jobs_running", "Jobs that run.", lambda state: state.running_total)
    yield each("ramp_jobs_queued", "Jobs that wait.", lambda state: state.queued_total)
    held, firm = "Slots that are set aside for a purchase, and not firm.", "Slots that are sold, and not over."
    yield each("ramp_holds", held, lambda state: sum(not slot.firm for slot in state.reservations))
    yield each("ramp_reservations", firm, lambda state: sum(slot.firm for slot in state.reservations))
    asked = "Start price of a resource, credits per core-hour."
    yield each("ramp_start_price_credits", asked, lambda state: state.start_price)


def _of_accounts(accounts: Iterable[AccountLine]) -> Iterator[Metric]:
    balances: Sums[tuple[str, ...]] = Sums()
    reserved: Sums[tuple[str, ...]] = Sums()
    number: Sums[tuple[str, ...]] = Sums()
    for account in accounts:
        balances[account.kind,] += account.balance
        reserved[account.kind,] += account.reserved
        number[account.kind,] += 1
    yield _gauge("ramp_accounts", "Accounts at the bank, by kind.", ("kind",), number)
    yield _gauge("ramp_balance_credits", "Sum of balances, by kind of account.", ("kind",), _in_credits(balances))
    yield _gauge("ramp_set_aside_credits", "Sum set aside for purchases, by kind.", ("kind",), _in_credits(reserved))


def _in_credits(sums: Mapping[tuple[str, ...], int]) -> dict[tuple[str, ...], float]:
    return {key: credits_of(value) for key, value in sums.items()}  # summed as whole minor units


def _gauge(name: str, what: str, labels: tuple[str, ...], values: Mapping[tuple[str, ...], float]) -> Metric:
    found = GaugeMetricFamily(name, what, labels=labels)
    for key in sorted(values):
        found.add_metric(key, values[key])
    return found


def metrics_route(token: str, read: Callable[[], Awaitable[Levels]], counted: Counted) -> Route:
    """Return the route that answers with all metrics to who shows the token; `read` reads the state of the market."""

    async def answer(request: Request) -> Response:
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(shown.strip().encode(), token.encode()):
            return PlainTextResponse(
                "expected Authorization: Bearer TOKEN, with the token in metrics-token of the market's state folder\n",
                status_code=401,
                headers={"www-authenticate": 'Bearer realm="RAMP metrics"'},
            )
        text = generate_latest(AllMetrics(counted.registry, await read()))
        return Response(text, headers={"content-type": CONTENT_TYPE_LATEST})

    return Route("/metrics", answer, methods=["GET"])


def metrics_token(path: Path) -> str:
    """Return the token of a market; create its file if it does not exist.

    Raises:
        ConfigurationError: if others may read the file, or its text is too short for a token.
    """
    if not path.exists():
        write_private(path, f"{secrets.token_urlsafe(TOKEN_BYTES)}\n")
    found = read_private(path, "token of /metrics")
    if len(found) < TOKEN_LEAST:
        raise ConfigurationError(
            f"the token needs {TOKEN_LEAST} characters or more, got {len(found)}; remove the file",
            path=path,
        )
    return found
