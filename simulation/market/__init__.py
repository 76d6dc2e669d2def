"""Whole markets in virtual time. The package itself can be called: `simulation.market(...)` runs an auction study.

`simulation.market.auction_runs.market` is the function that a call runs, and has the arguments and the result.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulation.market.auction_runs import MarketRun


class _Study(ModuleType):
    """A package that can be called (the reference's `__class__` of modules), so that its parts load when needed."""

    def __call__(self, *requests: Any, **options: Any) -> MarketRun:
        """Run an auction study; see `simulation.market.auction_runs.market`."""
        from simulation.market.auction_runs import market

        return market(*requests, **options)


sys.modules[__name__].__class__ = _Study
