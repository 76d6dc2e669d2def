"""The first page: the sellers."""

from __future__ import annotations

from collections.abc import Callable

from ramp.client.machine_state import MachineState
from ramp.client.results import Resource
from ramp.errors import RampError
from ramp.runtime.clock import SystemClock
from ramp.web.pages import frame
from ramp.web.pages.row_tables import Column, Kind, table
from ramp.web.pages.visit import Visit


async def build(visit: Visit) -> None:
    """Fill the page."""
    frame.heading("Sellers")
    with frame.card():
        asking = frame.waiting("Loading the machines…")
        try:
            found = await visit.market().resources(machines=True)
        except RampError as error:
            frame.problem(error)
            return
        finally:
            asking.delete()
        machines = {each.name: each.machine for each in found if each.machine is not None}
        prices = {name: each.start_price for name, each in machines.items() if each.start_price is not None}
        visit.site.prices.start_prices(prices, SystemClock().now())
        table(
            (
                Column(
                    "Resource", lambda each: each.name + (" (draining)" if each.draining else ""), link="/machines/"
                ),
                Column("Cores", _of(lambda machine: machine.cores), Kind.NUMBER),
                Column("Free cores", _of(_free_text), Kind.NUMBER),
                Column("Waiting jobs", _of(lambda machine: machine.queued_total), Kind.NUMBER),
                Column("Start price (credits/core-hour)", _of(lambda machine: machine.start_price), Kind.NUMBER),
                Column("Architecture", _of(lambda machine: machine.architecture)),
            ),
            found,
            key=lambda each: each.name,
            empty="No sellers.",
        )


def _of(value: Callable[[MachineState], object]) -> Callable[[Resource], object]:
    """Return a value of a seller's machine, None if it has not answered."""
    return lambda each: None if each.machine is None else value(each.machine)


def _free_text(machine: MachineState) -> str:
    return f"{machine.cores_free} ({100 * machine.cores_free // max(machine.cores, 1)} %)"
