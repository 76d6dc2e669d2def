"""Every transition of every table, and every resumed state, happens in the scripts or in the swarm."""

from inspect import signature
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ramp.protocol.machine import StateMachine
from ramp.protocol.transition_tables import TABLES, Transition
from tests.protocol import test_growth_out_of_turn
from tests.protocol.conftest import play, read_script
from tests.swarm.markets import run

FOLDER = Path(__file__).parent / "scripts"

RICH = (20, 153, 137, 176, 84, 394)
"""Seeds that see all that the scripts leave; others are tried only where these no longer do."""

RESUMED = {
    "Voting": {"aborting"},
    "Confirmation": {"confirming", "voiding", "ended"},
    "Participant": {"holding", "held", "confirming", "sold", "ending", "released"},
}
"""The states in which a restart begins each machine."""


def test_all_transitions_happen() -> None:
    seen: set[Transition] = set()
    resumed: dict[str, set[str]] = {}
    original, resume = StateMachine._enter, StateMachine._resume

    def enter(machine: Any, next_state: Any, stimulus: str) -> None:
        seen.add(Transition(machine.state, stimulus, next_state))
        original(machine, next_state, stimulus)

    def take_up(machine: Any, state: Any) -> None:
        resumed.setdefault(type(machine).__name__, set()).add(str(state))
        resume(machine, state)

    with patch.object(StateMachine, "_enter", enter), patch.object(StateMachine, "_resume", take_up):
        for path in sorted(FOLDER.glob("*.txt")):
            play(read_script(path))
        for name, out_of_turn in vars(test_growth_out_of_turn).items():
            if name.startswith("test_") and not signature(out_of_turn).parameters:
                out_of_turn()
        for seed in (*RICH, *range(200)):
            if all(table <= seen for table in TABLES.values()) and resumed == RESUMED:
                break
            run(seed, resized=False)
    for name, table in TABLES.items():
        missing = sorted(f"{name}: {move.state} -{move.stimulus}-> {move.next_state}" for move in table - seen)
        assert missing == []
    assert resumed == RESUMED
