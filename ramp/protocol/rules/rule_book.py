"""The auction rules that an agent knows by name, with its default rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ramp.errors import ConfigurationError, RuleFailed
from ramp.protocol.events import AuctionOptions
from ramp.protocol.rules.auction_rule import PAPER_RULE, AuctionRule
from ramp.protocol.rules.checked_rule import CheckedRule, RuleFault


class RuleBook:
    """Rules by name.

    Args:
        find: returns the rule of a name, or raises `ConfigurationError`.
        default: name of the rule for requests without one.
    """

    def __init__(self, find: Callable[[str], AuctionRule], default: str = PAPER_RULE) -> None:
        self._find = find
        self._default = default

    def settled(self, options: AuctionOptions) -> AuctionOptions:
        """Return the options with the rule of the auction; the empty name means the paper's rule, as in records."""
        return options if options.rule or self._default == PAPER_RULE else replace(options, rule=self._default)

    def rule(self, options: AuctionOptions) -> CheckedRule:
        """Return the rule of settled options.

        Raises:
            RuleFailed: if no rule has that name.
        """
        name = options.rule or PAPER_RULE
        try:
            # a rule by path (`FILE.py:Name`) uses its own name, as other parties lack the file
            return CheckedRule(name.rpartition(":")[2], self._find(name))
        except ConfigurationError as error:
            raise RuleFailed(RuleFault.UNKNOWN, name, error.reason) from error
