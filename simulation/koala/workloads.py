"""The workloads of the paper's experiments (section 6.3): 300 jobs of two applications, from one client.

Wm has malleable jobs only; of Wmr half are rigid, drawn. W'm and W'mr are the same with jobs that come faster. One
stream of random numbers each decides application, class and arrival, so that Wm and Wmr have the same applications.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ramp.model.instant import SECOND
from simulation.koala.jobs import Component, KoalaJob
from simulation.malleable.malleability import GADGET_2, NAS_FT, Malleability, Sizes, SpeedUpLaw
from simulation.workload.swf import FIELD_COUNT, FIELD_NAMES, UNKNOWN, SwfLog

JOBS: Final = 300
MINIMUM: Final = 2
"""Of both applications; rigid jobs have this size, malleable ones begin with it."""


@dataclass(frozen=True, slots=True)
class Application:
    """One of the paper's two applications.

    Attributes:
        name: as in the paper.
        law: its run time, seconds.
        sizes: allowed numbers of processors.
    """

    name: str
    law: SpeedUpLaw
    sizes: Sizes


GADGET: Final = Application("GADGET-2", GADGET_2, Sizes(MINIMUM, MINIMUM, 46))
FT: Final = Application("FT", NAS_FT, Sizes(MINIMUM, MINIMUM, 32, powers_of_two=True))
APPLICATIONS: Final = (GADGET, FT)


@dataclass(frozen=True, slots=True)
class WorkloadRecipe:
    """A workload of the paper.

    Attributes:
        name: as there.
        inter_arrival_s: seconds between two jobs.
        malleable_share: probability that a job is malleable.
        exponential: the times between jobs are drawn, with that mean; fixed otherwise, as the paper is read.
    """

    name: str
    inter_arrival_s: int
    malleable_share: float
    exponential: bool = False


RECIPES: Final = {
    recipe.name: recipe
    for recipe in (
        WorkloadRecipe("Wm", 120, 1.0),
        WorkloadRecipe("Wmr", 120, 0.5),
        WorkloadRecipe("W'm", 30, 1.0),
        WorkloadRecipe("W'mr", 30, 0.5),
    )
}
"""The first two are run with PRA, the others with PWA."""
PAPER_SIZES: Final = "of the two applications: GADGET-2 2 to 46, FT the powers of two from 2 to 32; all begin with 2"
PAPER_SPEED_UP: Final = (
    "Amdahl's law for each application, fitted through the two run times that the paper states of it: four numbers in "
    "all, for its measured curves are lost"
)


def recipe_of(name: object) -> WorkloadRecipe | None:
    """Return the paper's workload of a name, in capitals or not: wm, wmr, wpm (W'm), wpmr (W'mr); None of others."""
    known = {recipe.name.lower().replace("'", "p"): recipe for recipe in RECIPES.values()}
    return known.get(name.lower().replace("'", "p")) if isinstance(name, str) else None


def make_jobs(recipe: WorkloadRecipe, seed: int, *, suspension: int = 0, count: int = JOBS) -> list[KoalaJob]:
    """Draw a workload; at every change of its size a malleable job stands still for `suspension` microseconds."""
    applications, classes, arrivals = (random.Random(f"{seed} {what}") for what in ("application", "class", "arrival"))
    jobs = []
    time_s = 0.0
    for number in range(1, count + 1):
        application = applications.choice(APPLICATIONS)
        malleable = classes.random() < recipe.malleable_share
        sizes = application.sizes if malleable else Sizes(MINIMUM, MINIMUM, MINIMUM)
        jobs.append(
            KoalaJob(
                number,
                round(time_s * SECOND),
                application.name,
                round(application.law.run_time(MINIMUM) * SECOND),
                MINIMUM,
                Malleability(sizes, application.law, suspension),
                (Component(MINIMUM),),
            )
        )
        gap = arrivals.expovariate(1 / recipe.inter_arrival_s)
        time_s += gap if recipe.exponential else recipe.inter_arrival_s
    return jobs


def log_of_jobs(name: str, jobs: Sequence[KoalaJob]) -> SwfLog:
    """Return a workload as a log: the sizes with which jobs begin and their run times there, applications by number."""
    columns = np.full((FIELD_COUNT, len(jobs)), UNKNOWN, dtype=np.int64)
    names = [application.name for application in APPLICATIONS]
    for field, values in (
        ("job_number", [job.number for job in jobs]),
        ("submit_time", [job.submit_time // SECOND for job in jobs]),
        ("run_time", [job.run_time // SECOND for job in jobs]),
        ("requested_processors", [job.reference for job in jobs]),
        ("executable_number", [names.index(job.application) + 1 for job in jobs]),
    ):
        columns[FIELD_NAMES.index(field)] = values
    applications = ", ".join(f"{number} {each}" for number, each in enumerate(names, 1))
    return SwfLog(columns, (f" Note: workload {name} of Buisson and others 2007; executables: {applications}",), name)
