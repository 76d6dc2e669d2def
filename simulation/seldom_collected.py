"""The garbage collector during a simulation, which makes few cycles and keeps many objects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def collect_seldom() -> None:
    """Spare the collector's walks through what lasts: a fifth of a swarm's time, and of a large market's."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 100)


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
