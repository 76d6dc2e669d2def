"""The first page: the sellers."""

from __future__ import annotations

from ramp.errors import RampError
from ramp.runtime.clock import SystemClock
from ramp.web.pages import frame
from ramp.web.pages.row_tables import Column, table
from ramp.web.pages.visit import Visit

COLUMNS = (
    Column("name", "Resource"),
    Column("cores", "Cores", right=True),
    Column("free", "Free cores", right=True),
    Column("queue", "Waiting jobs", right=True),
    Column("price", "Start price (credits/core-hour)", right=True),
    Column("what", "Architecture"),
)


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
        rows = []
        prices: dict[str, int] = {}
        for each in found:
            machine = each.machine
            row: dict[str, object] = {"id": each.name, "name": each.name + (" (draining)" if each.draining else "")}
            if machine is not None:
                if machine.start_price is not None:
                    prices[each.name] = machine.start_price
                row |= {
                    "cores": machine.cores,
                    "free": f"{machine.cores_free} ({100 * machine.cores_free // max(machine.cores, 1)} %)",
                    "queue": machine.queued_total,
                    "price": machine.start_price,
                    "what": machine.architecture,
                }
            rows.append(row)
        visit.site.prices.start_prices(prices, SystemClock().now())
        table(COLUMNS, rows, "name", empty="No sellers.").link("name", "/machines/")
