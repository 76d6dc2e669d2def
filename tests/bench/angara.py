"""Allocation decisions on a torus of 144 nodes a second, against plain loops over the study's definitions."""

import random
from itertools import count
from time import process_time as cpu

from simulation.machines.allocator_declaration import make_policy
from simulation.machines.angara import AngaraMachine, TorusLayout
from simulation.machines.boxes.policy import BoxPolicy
from simulation.machines.boxes.ranked import RankedBoxes
from simulation.machines.interface import JobRequest
from simulation.queueing.box_window import run_window_first_fit
from simulation.workload.generators.angara_workload import Recipe, make_workload
from tests.reference import angara_loop as loop

EXTENTS = (8, 6, 3)
DECISIONS = 3_000
PLAIN_DECISIONS = 6
"""The plain loop takes seconds for a decision by phi."""
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 18, 24, 32, 36, 48)


def run() -> list[tuple[str, float, str]]:
    """Measure decisions along random histories that keep the machine nearly full.

    The first decisions are compared with the plain loop's on the same states; a difference stops the benchmark.
    """
    rows: list[tuple[str, float, str]] = []
    for label, allocator, options in (
        ("find-systems", "find-systems", {}),
        ("find-systems-mss", "find-systems-mss", {}),
        ("find-systems-mss, exact phi", "find-systems-mss", {"exact": True}),
    ):
        machine = _machine(allocator, options)
        machine.place(JobRequest(0, 5))  # compiles
        fast, fitting, longest = _history(machine, DECISIONS)
        rows.append((f"angara 8x6x3: one decision, {label}", fast / DECISIONS * 1e6, "us"))
        rows.append((f"angara 8x6x3: one decision that fits, {label}", fitting * 1e6, "us"))
        rows.append((f"angara 8x6x3: 99 of 100 decisions within, {label}", longest * 1e6, "us"))
        rows.append((f"angara 8x6x3: faster than the plain loop, {label}", _ratio(allocator, options), "x"))
    boxes = RankedBoxes(EXTENTS, make_policy("find-systems-mss", {}, BoxPolicy))
    jobs = make_workload(Recipe(144, 0.65), 1)
    run_window_first_fit(boxes, jobs.submit_time[:9], jobs.run_time[:9], jobs.size[:9], window=1)
    begin = cpu()
    run_window_first_fit(boxes, jobs.submit_time, jobs.run_time, jobs.size, window=16)
    rows.append((f"angara 8x6x3: the study's {len(jobs)} jobs, window 16, mss", cpu() - begin, "s"))
    return rows


def _machine(allocator: str, options: dict[str, bool]) -> AngaraMachine:
    boxes = RankedBoxes(EXTENTS, make_policy(allocator, options, BoxPolicy))
    return AngaraMachine(TorusLayout("bench", "b", ("x", "y", "z"), EXTENTS), boxes)


def _history(machine: AngaraMachine, decisions: int) -> tuple[float, float, float]:
    """Seconds of all decisions, of the mean one that fits, and of the 99th of 100."""
    chance = random.Random(2019)
    times = []
    fits = []
    for number in range(decisions):
        request = JobRequest(number, chance.choice(SIZES))
        begin = cpu()
        placement = machine.place(request)
        times.append(cpu() - begin)
        if placement is None:
            for job in chance.sample(sorted(machine.running), min(2, len(machine.running))):
                machine.release(job)
        else:
            fits.append(times[-1])
            machine.allocate(placement)
    return sum(times), sum(fits) / len(fits), sorted(times)[len(times) * 99 // 100]


def _ratio(allocator: str, options: dict[str, bool]) -> float:
    """How many times longer the plain loop takes for the same decisions on the same states."""
    machine = _machine(allocator, options)
    _history(machine, 200)
    exact = options.get("exact", False)
    loop.ranked(allocator, EXTENTS)  # both sides have their tables before
    chance = random.Random(7)
    fast = slow = 0.0
    done = 0
    for number in count(10_000):
        if done == PLAIN_DECISIONS:
            break
        request = JobRequest(number, chance.choice((12, 16, 18, 24)))
        taken = [placement.nodes for placement in machine.running.values()]
        locked = frozenset(
            machine.grid.coordinates(unit) for unit in range(machine.grid.size) if any(one >> unit & 1 for one in taken)
        )
        begin = cpu()
        placement = machine.place(request)
        middle = cpu()
        if placement is None:
            machine.release(chance.choice(sorted(machine.running)))
            continue
        variants = sum(len(box[2]) >= request.size and not box[2] & locked for box in loop.ranked(allocator, EXTENTS))
        if variants > 40 and allocator == "find-systems-mss":
            machine.allocate(placement)  # too many for a plain loop over all variants
            continue
        middle_2 = cpu()
        expected = loop.place(allocator, EXTENTS, locked, request.size, transit=None, exact=exact)
        slow += cpu() - middle_2
        fast += middle - begin
        assert expected is not None
        assert (placement.shape, placement.origin) == expected[:2], f"{placement} against {expected}"
        machine.allocate(placement)
        done += 1
    return slow / fast
