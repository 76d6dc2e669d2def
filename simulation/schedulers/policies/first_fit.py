"""Aggressive first-fit over the queue: the scheduling of the 2005 Blue Gene/L allocation study.

Y. Aridor and others, IBM J. Res. & Dev. 49(2/3), 2005, "Simulation environment": whenever a job arrives or ends, the
queue is walked in order and whatever fits is started; nothing is kept back for the head of the queue.
"""

from __future__ import annotations

from simulation.schedulers.declaration import scheduler
from simulation.schedulers.ordered import OrderedQueue, OrderOptions

SCHEDULER = scheduler(
    lambda: OrderedQueue(OrderOptions("first-fit")),
    about="Every waiting job that fits starts, in order of arrival.",
    compiled="simulation.schedulers.compiled.window_first_fit:first_fit",
)
