"""A chaos run: load, blows by turns, rest, and what is found then."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Any, Final

from ramp.errors import RampError
from ramp.runtime.configuration.file import load_config
from tests.chaos.blows import Struck, processes, strike, turns
from tests.chaos.checks import findings
from tests.chaos.load import Load
from tests.chaos.market import AGAIN_LIMIT_S, ChaosMarket, wait_until

BETWEEN_S: Final = (0.5, 4.0)
"""Pause between everybody's being up again and the next blow, in seconds."""

UNMET: Final = "what was struck is up again"
LOADED: Final = "purchases go on after every blow"
"""Checks of the run itself, beside those of the books."""


@dataclass(frozen=True, slots=True)
class ChaosReport:
    """What a run came to.

    Attributes:
        seed: of load and blows.
        market: what was struck, in a sentence.
        seconds: how long the load lasted.
        requests: how many requests ended how.
        blows: every blow with its times of recovery.
        rest_s: until nothing was wrong any more after the load had ended, in seconds; None where that never was.
        checks: findings by check; empty lists where it holds.
    """

    seed: int
    market: str
    seconds: float
    requests: dict[str, int]
    blows: tuple[Struck, ...]
    rest_s: float | None
    checks: dict[str, list[str]]

    @property
    def holds(self) -> bool:
        """Whether nothing was found."""
        return not any(self.checks.values())

    def as_json(self) -> dict[str, Any]:
        """For `--json`."""
        return {"holds": self.holds, **asdict(self)}


def run_chaos(
    sites: Sequence[ChaosMarket],
    what: str,
    *,
    seconds: float,
    seed: int,
    tell: Callable[[str], None] = lambda _: None,
) -> ChaosReport:
    """Load a market, or its two sites, strike it by turns for so long, let it rest, and check it; it is up afterwards.

    The seed draws requests and blows; `what` the market consists of stands in the report.
    """
    by_name = {each.name: each for each in sites}
    victims = [(site.name, victim) for site in sites for victim in _processes(site)]
    load, random = Load(seed), Random(seed)
    struck: list[Struck] = []
    began = time.monotonic()
    moments: list[float] = []
    load.start([(site.state, user) for site in sites for user in site.users])
    for blow in turns(victims, random):
        time.sleep(random.uniform(*BETWEEN_S))
        if time.monotonic() - began >= seconds:
            break
        moments.append(time.monotonic())
        struck.append(strike(by_name, blow, moments[-1] - began))
        tell(_line(struck[-1]))
        if struck[-1].up_again_s is None:
            break
    last = moments[-1] if moments else began
    wait_until(lambda: bool(load.commits_since(last)))
    lasted = time.monotonic() - began
    ended = load.stop(AGAIN_LIMIT_S)
    struck = [replace(each, next_purchase_s=_next(load, moment)) for each, moment in zip(struck, moments, strict=True)]
    tell(f"the load has ended after {lasted:.0f} s; the market comes to rest")
    rest_s, checks = _at_rest(sites)
    checks[UNMET] = [f"{_line(each)}" for each in struck if each.up_again_s is None]
    checks[LOADED] = [f"none after {_line(each)}" for each in struck if each.next_purchase_s is None]
    if not ended:
        checks[LOADED].append("a user's last request does not end")
    return ChaosReport(seed, what, round(lasted, 1), dict(load.outcomes), tuple(struck), rest_s, checks)


def _processes(market: ChaosMarket) -> tuple[str, ...]:
    status = market.status()
    assert status is not None, "what is struck is up"
    return tuple(processes(status))


def _at_rest(sites: Sequence[ChaosMarket]) -> tuple[float | None, dict[str, list[str]]]:
    """Wait until nothing is wrong any more; returns how long that took, and what is wrong at last."""
    files = [(load_config(each.config), each.state) for each in sites]
    found: dict[str, list[str]] = {}

    def right() -> bool:
        try:
            found.update(findings(files))
        except RampError as error:
            found["every agent answers"] = [str(error)]
        else:
            found.pop("every agent answers", None)
        return not any(found.values())

    waited = wait_until(right)
    return None if waited is None else round(waited, 1), found


def _next(load: Load, moment: float) -> float | None:
    later = load.commits_since(moment)
    return round(later[0] - moment, 2) if later else None


def _line(struck: Struck) -> str:
    blow = struck.blow
    who = f"{blow.victim} ({len(struck.agents)} agents)" if len(struck.agents) > 1 else blow.victim
    who = f"{who} of {blow.site}" if blow.site else who
    how = f"{blow.kind} for {blow.lasting_s:g} s" if blow.lasting_s else blow.kind
    end = "not up again" if struck.up_again_s is None else f"all up again after {struck.up_again_s:.1f} s"
    return f"{struck.at_s:6.1f} s: {how} of {who}: {end}"
