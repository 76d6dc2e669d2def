"""The auction rules that an agent knows by name, and which one it takes where a request names none."""

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
        find: the rule of a name, or raises `ConfigurationError`.
        default: name of the rule for requests that name none.
    """

    def __init__(self, find: Callable[[str], AuctionRule], default: str = PAPER_RULE) -> None:
        self._find = find
        self._default = default

    def settled(self, options: AuctionOptions) -> AuctionOptions:
        """The options with the rule by which the request is auctioned; empty stays for the paper's, as in records."""
        return options if options.rule or self._default == PAPER_RULE else replace(options, rule=self._default)

    def rule(self, options: AuctionOptions) -> CheckedRule:
        """The rule of settled options, in use.

        Raises:
            RuleFailed: if no rule has that name.
        """
        name = options.rule or PAPER_RULE
        try:
            # a rule at a place (`FILE.py:Name`) goes by its own name: others have no such file
            return CheckedRule(name.rpartition(":")[2], self._find(name))
        except ConfigurationError as error:
            raise RuleFailed(RuleFault.UNKNOWN, name, error.reason) from error
