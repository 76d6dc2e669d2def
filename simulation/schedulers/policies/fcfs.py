"""First come, first served: only the head of the queue may start."""

from __future__ import annotations

from typing import Final

from simulation.schedulers.declaration import scheduler
from simulation.schedulers.policies.window_first_fit import WindowFirstFit, WindowOptions

HEAD: Final = WindowOptions(window=1)
"""A head that does not fit delays all jobs behind it."""

SCHEDULER = scheduler(
    lambda: WindowFirstFit(HEAD),
    about="Only the head of the queue may start.",
    compiled="simulation.schedulers.compiled.window_first_fit:first_come_first_served",
)
