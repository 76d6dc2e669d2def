"""Check that an agreement and its amendments, verified one by one, are an unbroken chain.

Source: the market's rules of amendments (`ramp.model.sizes.amended`), which buyer and seller check before they sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ramp.model.agreement import Agreement, ContractChange
from ramp.model.sizes.amended import SlotState, after, change_problem, first_state
from ramp.rfql.signing.verification import FileReport


@dataclass(frozen=True, slots=True)
class Chain:
    """One agreement and the amendments of it that were given.

    Attributes:
        agreement: the purchase.
        states: of the slot after the agreement and after each of them that fits.
        failure: the amendment that does not fit the state before it, and why; empty if all do.
    """

    agreement: Agreement
    amendments: tuple[ContractChange, ...]
    states: tuple[SlotState, ...]
    failure: str = ""

    @property
    def given_back(self) -> int:
        """Return the total refund of the amendments that fit, in minor units."""
        return sum(each.refund for each in self._fitting)

    @property
    def charged(self) -> int:
        """Return the total charge of the amendments that fit, in minor units."""
        return sum(each.charge for each in self._fitting)

    @property
    def _fitting(self) -> tuple[ContractChange, ...]:
        return self.amendments[: len(self.states) - 1]


def chains_of(reports: Sequence[FileReport]) -> tuple[Chain, ...]:
    """Return a chain for each agreement with amendments among the valid reports."""
    holding = [each for each in reports if each.holds]
    shown = [each.amendment for each in holding if each.amendment is not None]
    found: list[Chain] = []
    for report in holding:
        agreement = report.agreement
        if agreement is None:
            continue
        named = {each.number: each for each in shown if each.agreement_id == agreement.agreement_id}
        if named:
            found.append(chain_of(agreement, [named[number] for number in sorted(named)]))
    return tuple(found)


def chain_of(agreement: Agreement, amendments: Sequence[ContractChange]) -> Chain:
    """Follow an agreement through its amendments, ordered by number, as far as each fits the state before it."""
    states = [first_state(agreement)]
    for amendment in amendments:
        problem = change_problem(agreement, states[-1], amendment)
        if problem is not None:
            code, detail = problem
            failure = f"amendment {amendment.number} does not follow: {code}: {detail}"
            return Chain(agreement, tuple(amendments), tuple(states), failure)
        states.append(after(states[-1], amendment))
    return Chain(agreement, tuple(amendments), tuple(states))
