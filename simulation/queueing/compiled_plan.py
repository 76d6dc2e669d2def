"""The plan of a queue, `ramp.queue_bound.queue_plan.plan_starts`, compiled by Numba."""

from __future__ import annotations

from ramp.queue_bound import queue_plan
from simulation.compiling import compiled

plan_starts = compiled(queue_plan.plan_starts)
