"""The garbage collector during a simulation, which makes few cycles and keeps many objects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def collect_seldom() -> None:
    """Spare the collector's walks through what was imported, which took a fifth of a swarm's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Collect seldom for a while."""
    thresholds = gc.get_threshold()
    collect_seldom()
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
