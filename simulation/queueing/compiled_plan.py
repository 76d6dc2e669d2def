"""The plan of a queue, `ramp.queue_bound.easy_plan.plan_starts`, compiled by Numba."""

from __future__ import annotations

from ramp.queue_bound import easy_plan
from simulation.compiling import compiled

plan_starts = compiled(easy_plan.plan_starts)
