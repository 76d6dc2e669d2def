"""Current levels: agents, machines, slots and sums of balances.

Values without an answer are left out: an old number would look like a current one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ramp.client.machine_state import MachineState
from ramp.control.status import SwarmStatus
from ramp.model.contents.accounts import AccountLine
from ramp.web.metrics.counted import credits_of


@dataclass(frozen=True, slots=True)
class Levels:
    """The state of a market.

    Attributes:
        status: what its supervisor says; None where no market runs.
        machines: by the resource's local name; those that have not answered are not there.
        accounts: all accounts, None where the bank has not answered the keeper.
    """

    status: SwarmStatus | None = None
    machines: Mapping[str, MachineState] = field(default_factory=dict)
    accounts: tuple[AccountLine, ...] | None = None


class LevelsCollector(Collector):
    """Exports the latest levels; set `levels` before each collection."""

    def __init__(self) -> None:
        self.levels = Levels()

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registration collects no values."""
        return ()

    def collect(self) -> Iterator[Metric]:
        yield _gauge(
            "ramp_up", "Whether the market runs (1) or not (0).", (), {(): float(self.levels.status is not None)}
        )
        if self.levels.status is not None:
            yield from _of_agents(self.levels.status)
        yield from _of_machines(self.levels.machines)
        if self.levels.accounts is not None:
            yield from _of_accounts(self.levels.accounts)


def _of_agents(status: SwarmStatus) -> Iterator[Metric]:
    states = Counter[tuple[str, ...]]((agent.role, agent.state) for agent in status.agents)
    restarts: Counter[tuple[str, ...]] = Counter()
    for agent in status.agents:
        restarts[agent.role,] += agent.restarts
    yield _gauge("ramp_agents", "Agents by role and state.", ("role", "state"), states)
    yield _gauge("ramp_agents_on_market", "Agents that are on the market, by role.", ("role",), _up_by_role(status))
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


def _up_by_role(status: SwarmStatus) -> Mapping[tuple[str, ...], float]:
    return {(role,): sum(a.is_up for a in status.agents if a.role == role) for role in {a.role for a in status.agents}}


def _of_machines(machines: Mapping[str, MachineState]) -> Iterator[Metric]:
    def each(name: str, what: str, values: Mapping[str, float]) -> Metric:
        return _gauge(name, what, ("resource",), {(resource,): value for resource, value in values.items()})

    held = {name: sum(not slot.firm for slot in state.reservations) for name, state in machines.items()}
    firm = {name: sum(slot.firm for slot in state.reservations) for name, state in machines.items()}
    asked = {name: state.start_price for name, state in machines.items() if state.start_price is not None}
    yield each("ramp_cores", "Cores of a machine.", {name: state.cores for name, state in machines.items()})
    yield each("ramp_cores_busy", "Cores that are taken.", {name: state.cores_busy for name, state in machines.items()})
    yield each("ramp_jobs_running", "Jobs that run.", {name: state.running_total for name, state in machines.items()})
    yield each("ramp_jobs_queued", "Jobs that wait.", {name: state.queued_total for name, state in machines.items()})
    yield each("ramp_holds", "Slots that are set aside for a purchase, and not firm.", held)
    yield each("ramp_reservations", "Slots that are sold, and not over.", firm)
    yield each("ramp_start_price_credits", "Start price of a resource, credits per core-hour.", asked)


def _of_accounts(accounts: Iterable[AccountLine]) -> Iterator[Metric]:
    balances: Counter[tuple[str, ...]] = Counter()
    reserved: Counter[tuple[str, ...]] = Counter()
    number: Counter[tuple[str, ...]] = Counter()
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
