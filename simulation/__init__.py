"""Simulated machines, workload logs, schedulers and studies of the market.

    run = simulation.simulate("SDSC-SP2-1998-4.2-cln", machine="bgl", scheduler="easy")
    print(run.metrics.utilisation, run.jobs["wait_s"].mean())
    run.gantt("gantt.png")

    study = simulation.market(ramp.request(cores=64, wall_time="1h", price=70), swarm="table2", rounds=10)
    print(study.prices["best"], study.purchases[0].status, sum(study.messages.values()))

Importing this package loads nothing heavy: the names below are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from simulation.koala.policy import Approach, Assignment, Message, PlacementPolicy, SizePolicy
    from simulation.koala.run import KoalaRun, koala
    from simulation.machine_files import load_machine
    from simulation.machines.allocator_declaration import ALLOCATORS, allocator
    from simulation.machines.bluegene.cable_policy import CablePolicy
    from simulation.machines.boxes.policy import BoxPolicy, Choice, FreeBox
    from simulation.machines.description import KINDS, machine_kind
    from simulation.machines.node_machine import NodeMachine
    from simulation.market.auction_runs import MarketRun, market
    from simulation.record_array import RecordArray
    from simulation.schedulers.declaration import SCHEDULERS, scheduler
    from simulation.schedulers.interface import Job, RunningJob, Scheduler, Site
    from simulation.schedulers.ordered import OrderedQueue, OrderOptions
    from simulation.simulated_run import JobArray, Metrics, SimulatedRun, simulate

__all__ = [
    "ALLOCATORS", "KINDS", "SCHEDULERS", "Approach", "Assignment", "BoxPolicy", "CablePolicy", "Choice", "FreeBox",
    "Job", "JobArray", "KoalaRun", "MarketRun", "Message", "Metrics", "NodeMachine", "OrderOptions", "OrderedQueue",
    "PlacementPolicy", "RecordArray", "RunningJob", "Scheduler", "SimulatedRun", "Site", "SizePolicy", "allocator",
    "koala", "load_machine", "machine_kind", "market", "scheduler", "simulate",
]  # fmt: skip

_PLACES: Final = {
    "simulation.koala.policy": ("Approach", "Assignment", "Message", "PlacementPolicy", "SizePolicy"),
    "simulation.koala.run": ("KoalaRun",),
    "simulation.machine_files": ("load_machine",),
    "simulation.machines.allocator_declaration": ("ALLOCATORS", "allocator"),
    "simulation.machines.boxes.policy": ("BoxPolicy", "Choice", "FreeBox"),
    "simulation.machines.bluegene.cable_policy": ("CablePolicy",),
    "simulation.machines.description": ("KINDS", "machine_kind"),
    "simulation.machines.node_machine": ("NodeMachine",),
    "simulation.market.auction_runs": ("MarketRun",),
    "simulation.record_array": ("RecordArray",),
    "simulation.schedulers.declaration": ("SCHEDULERS", "scheduler"),
    "simulation.schedulers.interface": ("Job", "RunningJob", "Scheduler", "Site"),
    "simulation.schedulers.ordered": ("OrderOptions", "OrderedQueue"),
    "simulation.simulated_run": ("JobArray", "Metrics", "SimulatedRun", "simulate"),
}


def __getattr__(name: str) -> Any:
    if name in {"koala", "market"}:  # a package that can be called: it stays what imports make of this name
        return importlib.import_module(f"simulation.{name}")
    for module, names in _PLACES.items():
        if name in names:
            value = globals()[name] = getattr(importlib.import_module(module), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
