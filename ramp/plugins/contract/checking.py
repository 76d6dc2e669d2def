"""Run the whole contract against a plug-in, each rule with a time limit, and report each result."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from inspect import isfunction
from types import ModuleType
from typing import Final

from ramp.errors import RampError
from ramp.plugins.contract import booking, quoting, resizing
from ramp.plugins.contract.subject import AskedPlugin, ContractBroken, NotChecked, Rule, Subject


def _rule(trial: Callable[[Subject, AskedPlugin], None]) -> Rule:
    assert trial.__doc__, f"{trial.__name__} has no sentence"
    return Rule(trial.__name__.replace("_", "-"), trial.__doc__.split("\n\n")[0].replace("\n", " "), trial)


def trials_of(group: ModuleType) -> Iterator[Callable[[Subject, AskedPlugin], None]]:
    """Yield the public functions of a module, in their order."""
    for name, each in vars(group).items():
        if isfunction(each) and each.__module__ == group.__name__ and not name.startswith("_"):
            yield each


RULES: Final[tuple[Rule, ...]] = tuple(
    _rule(trial) for group in (quoting, booking, resizing) for trial in trials_of(group)
)
"""All rules of the contract, in the order in which they are tried."""


class Verdict(StrEnum):
    """Result of a rule."""

    KEPT = "kept"
    BROKEN = "broken"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class Result:
    """One rule on one plug-in.

    Attributes:
        rule: the rule.
        verdict: its result.
        reason: the violation, or why the rule could not be tried; empty if it was kept.
    """

    rule: Rule
    verdict: Verdict
    reason: str = ""


def check_plugin(subject: Subject, limit_s: float, told: Callable[[Result], None] = lambda _: None) -> list[Result]:
    """Try every rule on a plug-in; after a call that does not return, the rest are not tried.

    Args:
        subject: the plug-in.
        limit_s: time limit of a rule, in seconds.
        told: receives each result as it comes.
    """
    results: list[Result] = []
    stuck = ""
    for rule in RULES:
        if stuck:
            result = Result(rule, Verdict.NOT_CHECKED, f"{stuck} did not return before")
        else:
            answer = _within(rule, subject, limit_s)
            if answer is None:
                stuck = rule.name
                answer = Result(rule, Verdict.BROKEN, f"a call did not return within {limit_s:g} s")
            result = answer
        results.append(result)
        told(result)
    return results


def _within(rule: Rule, subject: Subject, limit_s: float) -> Result | None:
    """Return the rule's result, or None after the limit; a call that hangs ends with the process."""
    found: list[Result] = []
    # A thread of its own for each: nothing else gets back from a call that hangs.
    thread = threading.Thread(target=lambda: found.append(_tried(rule, subject)), daemon=True)
    thread.start()
    thread.join(limit_s)
    return found[0] if found else None


def _tried(rule: Rule, subject: Subject) -> Result:
    try:
        rule.check(subject)
    except NotChecked as why:
        return Result(rule, Verdict.NOT_CHECKED, str(why))
    except (ContractBroken, RampError) as error:
        return Result(rule, Verdict.BROKEN, " ".join(str(error).split()))
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{where.filename}, line {where.lineno}"
        return Result(rule, Verdict.BROKEN, f"raised {type(error).__name__}: {error} ({place})")
    return Result(rule, Verdict.KEPT)
