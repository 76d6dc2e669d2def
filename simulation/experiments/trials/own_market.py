"""What an experiment is run with instead of the paper's: another auction rule, price strategy, requests, machines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ramp.model.instant import HOUR, MINUTE, Duration
from ramp.model.request import RequestUnit
from ramp.rfql.request_for_quotation import load_request
from ramp.runtime.auction_rules import RULES
from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration.values import ResourceConfig, pricing_strategy
from ramp.shipped_files import find_config
from simulation.experiments.trials.plan import UnitWish, table2_resources

LEAD: Final[Duration] = 5 * MINUTE
"""From the submission to the start, as in the paper's exp1; a file's own times are of some day."""

OPTIONS: Final = frozenset({"rule", "pricing", "requests", "swarm"})
"""Names of the fields, which are also those of the command line's options."""


@dataclass(frozen=True, slots=True)
class OwnMarket:
    """One's own choice; what is empty stays the paper's.

    Attributes:
        rule: name of the auction rule.
        pricing: name of the price strategy of all sellers.
        requests: RFQL file; each unit is a request of its own, of which cores, price, wall time and slack are taken.
        swarm: configuration whose resources sell, or the name of one that is shipped.
    """

    rule: str = ""
    pricing: str = ""
    requests: str = ""
    swarm: str = ""

    def __post_init__(self) -> None:
        if self.rule:
            RULES.find(self.rule)
        if self.pricing:
            pricing_strategy(self.pricing)

    def resources(self) -> tuple[ResourceConfig, ...]:
        """The sellers.

        Raises:
            ConfigurationError: if the swarm cannot be read.
        """
        found = load_config(find_config(self.swarm)).resources if self.swarm else table2_resources()
        return tuple(replace(each, pricing=self.pricing or each.pricing) for each in found)

    def wishes(self) -> tuple[UnitWish, ...]:
        """The requests of the file, one a unit.

        Raises:
            DocumentError: if it is no valid request.
        """
        return tuple(_wish(unit) for unit in load_request(Path(self.requests)).units) if self.requests else ()

    def parameters(self) -> dict[str, str]:
        """What was chosen, for the summary."""
        chosen = {"rule": self.rule, "pricing": self.pricing, "requests_file": self.requests, "swarm": self.swarm}
        return {name: value for name, value in chosen.items() if value}


def _wish(unit: RequestUnit) -> UnitWish:
    wall = unit.wall_time
    if wall is None:
        wall = HOUR if unit.not_before is None else unit.deadline - unit.not_before
    slack = 0 if unit.not_before is None else max(0, unit.deadline - unit.not_before - wall)
    return UnitWish(unit.cpu_hour_cost, unit.cores.total, LEAD, wall, slack)
