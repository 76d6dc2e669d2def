"""Every transition of every table happens in the scripts or in the swarm; none is there only on paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

from ramp.protocol.machine import StateMachine
from ramp.protocol.transition_tables import TABLES, Transition
from tests.protocol.test_growth_out_of_turn import SCENARIOS
from tests.swarm.markets import run

FOLDER = Path(__file__).parent / "scripts"

RICH = (20, 153, 137, 176, 84, 394)
"""Seeds that see all that the scripts leave; others are tried only where these no longer do."""


def test_all_transitions_happen(scripts: Any) -> None:
    seen: set[Transition] = set()
    original = StateMachine._enter

    def enter(machine: Any, next_state: Any, stimulus: str) -> None:
        seen.add(Transition(machine.state, stimulus, next_state))
        original(machine, next_state, stimulus)

    with patch.object(StateMachine, "_enter", enter):
        for path in sorted(FOLDER.glob("*.txt")):
            scripts.play(path)
        for out_of_turn in SCENARIOS:
            out_of_turn()
        for seed in (*RICH, *range(200)):
            if all(table <= seen for table in TABLES.values()):
                break
            run(seed, resized=False)
    for name, table in TABLES.items():
        missing = sorted(f"{name}: {move.state} -{move.stimulus}-> {move.next_state}" for move in table - seen)
        assert missing == []
