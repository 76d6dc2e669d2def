"""The cases of a study, each measured once: in this process, in several, or on a cluster."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ramp.declarations import is_of_file, load_file
from simulation.experiments.worker_processes import run_all

if TYPE_CHECKING:
    from simulation.experiments.study import Run, Study

Progress = Callable[[int, int], None]
"""Told how many of how many simulations are done."""


Perform = Callable[["Study", "Run", Sequence[Any], int | None, Progress | None], Sequence[Any]]
"""Measures the cases of a study in order: study, run, cases, number of processes (None = one a core), progress."""


@dataclass(frozen=True, slots=True)
class Task:
    """Cases that one process measures one after another."""

    measure: Callable[[Any], Any]
    cases: tuple[Any, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process first loads the file that the study is declared in, if it is no module of a package."""
        module = self.measure.__module__
        if not is_of_file(module):
            return Task, (self.measure, self.cases)
        return _task_of_file, (sys.modules[module].__file__, pickle.dumps((self.measure, self.cases)))


def _task_of_file(file: str, pickled: bytes) -> Task:
    load_file(Path(file))
    return Task(*pickle.loads(pickled))  # noqa: S301 -- a task of this program


def measured(task: Task) -> list[Any]:
    """What is measured of the cases of a task."""
    return [task.measure(case) for case in task.cases]


def in_processes(
    study: Study, run: Run, cases: Sequence[Any], processes: int | None, on_progress: Progress | None
) -> Sequence[Any]:
    """Measure the cases where `executors` says; see `Perform`."""
    keys = [_key(case, number) for number, case in enumerate(cases)]
    distinct = dict(zip(keys, cases, strict=True))
    order, together = study.order, study.together
    ordered = sorted(distinct, key=lambda key: order(distinct[key])) if order is not None else list(distinct)
    groups: dict[Any, list[Any]] = {}
    for key in ordered:
        groups.setdefault(key if together is None else together(distinct[key]), []).append(key)
    tasks = [Task(study.measure, tuple(distinct[key] for key in group)) for group in groups.values()]
    answers = run_all(measured, tasks, processes=processes, on_progress=on_progress)
    by_key = {
        key: answer
        for group, told in zip(groups.values(), answers, strict=True)
        for key, answer in zip(group, told, strict=True)
    }
    return [by_key[key] for key in keys]


def one_by_one(
    study: Study, run: Run, cases: Sequence[Any], processes: int | None, on_progress: Progress | None
) -> Sequence[Any]:
    """Measure the cases in this process one after another, so that their times mean something; see `Perform`."""
    return in_processes(study, run, cases, 1, on_progress)


def _key(case: Any, number: int) -> Any:
    """The case itself, so that equal ones are measured once; its number where cases cannot be looked up."""
    try:
        hash(case)
    except TypeError:
        return number, "th case"
    return case
