"""Bugs planted in what sizes of moldable units mean; `planted_bugs` lists them with all others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from unittest.mock import patch

from ramp.model import shortcoming
from ramp.model.instant import Duration
from ramp.model.request import RequestUnit
from ramp.model.sizes import moldable
from ramp.protocol.resource import seller


def ideal_speed_up() -> contextlib.AbstractContextManager[object]:
    """With twice the cores a run takes half the time, whatever its law."""

    def run_time_with(unit: RequestUnit, cores: int) -> Duration | None:
        if unit.moldable is None or unit.wall_time is None:
            return unit.wall_time
        return unit.wall_time * unit.cores.total // cores

    return patch.object(moldable, "run_time_with", run_time_with)


@contextlib.contextmanager
def limit_of_charged() -> Iterator[None]:
    """The buyer's price is compared with that of a core-hour charged, however many cores are charged."""
    with (
        patch.object(seller, "price_with", lambda unit, cores, length, price=None: price or unit.cpu_hour_cost),
        patch.object(shortcoming, "cost_cap", lambda unit, length: 10**9),
    ):
        yield


def length_believed() -> contextlib.AbstractContextManager[object]:
    """Offers are not held against the law of their unit."""
    return patch.object(shortcoming, "size_problem", lambda unit, cores, length: "")
