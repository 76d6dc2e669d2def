"""All rules of the contract, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ramp.plugins.contract import booking, describing, forgetting, misuse, quoting, resizing
from ramp.plugins.contract.subject import Rule, Subject


def _rule(trial: Callable[[Subject], None]) -> Rule:
    assert trial.__doc__, f"{trial.__name__} has no sentence"
    return Rule(trial.__name__.replace("_", "-"), trial.__doc__.split("\n\n")[0].replace("\n", " "), trial)


RULES: Final[tuple[Rule, ...]] = tuple(
    _rule(trial) for room in (describing, quoting, booking, resizing, forgetting, misuse) for trial in room.TRIALS
)
"""What every plug-in must do."""
