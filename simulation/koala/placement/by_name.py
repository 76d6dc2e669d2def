"""Placement policies by the paper's abbreviations."""

from __future__ import annotations

from typing import Final

from simulation.koala.placement import (
    close_to_files,
    cluster_minimization,
    flexible_cluster_minimization,
    worst_fit,
)
from simulation.koala.placement.interface import PlacementPolicy

PLACEMENT_POLICIES: Final[dict[str, PlacementPolicy]] = {
    "WF": worst_fit.place,
    "CF": close_to_files.place,
    "CM": cluster_minimization.place,
    "FCM": flexible_cluster_minimization.place,
}
"""The user of a job chooses one; only WF is used in the paper's experiments."""
