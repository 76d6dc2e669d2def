"""The multicluster scheduler KOALA with malleable jobs (J. Buisson and others, CoreGRID TR-0092, 2007).

Its parts have the paper's names: co-allocator, processor claimer, information service, runners, malleability manager.
The package itself can be called: `simulation.koala(...)` runs a workload (`simulation.koala.run.koala`).
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulation.koala.run import KoalaRun


class _Koala(ModuleType):
    """A package that can be called (the reference's `__class__` of modules), so that its parts load when needed."""

    def __call__(self, *log: Any, **options: Any) -> KoalaRun:
        """Run a workload; see `simulation.koala.run.koala`."""
        from simulation.koala.run import koala

        return koala(*log, **options)


sys.modules[__name__].__class__ = _Koala
