"""Agreements with what has changed their slots: whether files that were checked one by one are an unbroken chain.

Source: the market's rules of amendments (`ramp.model.sizes.amended`), which buyer and seller ask before they sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ramp.model.agreement import Agreement, Amendment
from ramp.model.sizes.amended import SlotState, after, amendment_problem, first_state
from ramp.rfql.signing.verification import FileReport


@dataclass(frozen=True, slots=True)
class Chain:
    """One agreement and the amendments of it that were shown with it.

    Attributes:
        agreement: what was bought.
        amendments: by number.
        states: of the slot after the agreement and after each of them that fits.
        failure: which amendment does not fit the state before it, and why; empty where all do.
    """

    agreement: Agreement
    amendments: tuple[Amendment, ...]
    states: tuple[SlotState, ...]
    failure: str = ""

    @property
    def given_back(self) -> int:
        """What the amendments that fit have given back of the price together, in minor units."""
        return sum(each.refund for each in self._fitting)

    @property
    def charged(self) -> int:
        """What those of them that add have cost together, in minor units."""
        return sum(each.charge for each in self._fitting)

    @property
    def _fitting(self) -> tuple[Amendment, ...]:
        return self.amendments[: len(self.states) - 1]


def chains_of(reports: Sequence[FileReport]) -> tuple[Chain, ...]:
    """The chains that files which hold are, one for each agreement that was shown with amendments of it.

    Args:
        reports: of the files; those that do not hold count as not shown.
    """
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


def chain_of(agreement: Agreement, amendments: Sequence[Amendment]) -> Chain:
    """Follow an agreement through its amendments, as far as each fits the state that the one before has made.

    Args:
        agreement: what was bought.
        amendments: by number.
    """
    states = [first_state(agreement)]
    for amendment in amendments:
        problem = amendment_problem(agreement, states[-1], amendment)
        if problem is not None:
            code, detail = problem
            failure = f"amendment {amendment.number} does not follow: {code}: {detail}"
            return Chain(agreement, tuple(amendments), tuple(states), failure)
        states.append(after(states[-1], amendment))
    return Chain(agreement, tuple(amendments), tuple(states))
