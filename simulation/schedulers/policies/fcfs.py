"""First come, first served: only the head of the queue may start."""

from __future__ import annotations

from simulation.schedulers.declaration import scheduler
from simulation.schedulers.ordered import OrderedQueue

SCHEDULER = scheduler(
    OrderedQueue,
    about="Only the head of the queue may start.",
    compiled="simulation.schedulers.compiled.window_first_fit:first_come_first_served",
)
