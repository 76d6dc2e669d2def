"""Policies of sizes by name."""

from __future__ import annotations

from typing import Final

from simulation.koala.size_policies.egs import Egs
from simulation.koala.size_policies.fpsma import Fpsma
from simulation.koala.size_policies.interface import SizePolicy
from simulation.koala.size_policies.references import (
    ByPriority,
    Equipartition,
    Folding,
    Levelled,
    NoChange,
    above_minimum,
    above_preferred,
)

SIZE_POLICIES: Final[dict[str, SizePolicy]] = {
    "FPSMA": Fpsma(),
    "EGS": Egs(),
    "none": NoChange(),
    "equipartition": Equipartition(),
    "folding": Folding(),
    "minimum": ByPriority(above_minimum),
    "preferred": ByPriority(above_preferred, preferred_first=True),
    "average": Levelled(steals=False),
    "stealing": Levelled(steals=True),
}
"""The paper's first."""
