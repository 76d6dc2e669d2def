"""Runs an experiment into a folder of its own, which appears whole or not at all."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ramp.errors import ConfigurationError
from simulation.experiments.measuring import Progress
from simulation.experiments.result import SUMMARY_FILE
from simulation.experiments.study import Study

REPLACE_OPTION: Final = "--replace"


def prepare(experiments: Sequence[Study], out: Path, *, replace: bool) -> None:
    """Make the directory of results; refuse before any study what could not be written after it.

    Args:
        experiments: to be run.
        out: directory of all results.
        replace: whether earlier results may go.

    Raises:
        ConfigurationError: the directory cannot be made or written, or has results that would be mixed with new ones.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"cannot be made: {error.strerror}", path=out, key="out") from error
    if not os.access(out, os.W_OK):
        raise ConfigurationError("cannot be written: it is not writable", path=out, key="out")
    for experiment in experiments:
        folder = out / experiment.name
        if not os.path.lexists(folder):
            continue
        if not _is_result(folder, experiment.name):
            reason = f"is needed for the results of {experiment.name} but holds something else; move it away"
            raise ConfigurationError(reason, path=folder, key="out")
        if not replace:
            reason = f"holds results already; give another --out, or {REPLACE_OPTION} to replace them"
            raise ConfigurationError(reason, path=folder, key="out")


def _is_result(folder: Path, name: str) -> bool:
    try:
        return bool(json.loads((folder / SUMMARY_FILE).read_text("utf-8"))["experiment"] == name)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def run_into(
    experiment: Study,
    out: Path,
    *,
    quick: bool,
    seed: int,
    processes: int | None,
    on_progress: Progress | None,
    **further: Any,
) -> dict[str, Any]:
    """Run an experiment; its results are in a folder of its name afterwards, in place of earlier ones.

    Arguments as of `simulation.experiments.study.Study.run`; `out` is prepared by `prepare`.

    Returns:
        The contents of `summary.json`, with `wall_s`: how long it took.

    Raises:
        ConfigurationError: another run of the experiment is writing into this directory.
    """
    with _unfinished(out, experiment.name) as unfinished:
        begun = time.perf_counter()
        summary = experiment.run(
            unfinished, quick=quick, seed=seed, processes=processes, on_progress=on_progress, **further
        )
        summary["wall_s"] = round(time.perf_counter() - begun, 1)
        (unfinished / SUMMARY_FILE).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
        folder = out / experiment.name
        if folder.exists():
            shutil.rmtree(folder)
        unfinished.rename(folder)
    return summary


@contextmanager
def _unfinished(out: Path, name: str) -> Iterator[Path]:
    """An empty folder that no other run has; what a killed run left in it goes."""
    folder = out / f".{name}"
    folder.mkdir(exist_ok=True)
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        reason = f"another run of {name} is writing into it; wait for its end, or give another --out"
        raise ConfigurationError(reason, path=out, key="out") from None
    try:
        results = folder / name
        shutil.rmtree(results, ignore_errors=True)
        results.mkdir()
        yield results
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)
