"""Agreements with what has changed their slots: whether files that were checked one by one are an unbroken chain.

Source: the market's rules of amendments (`ramp.model.sizes.amended`), which buyer and seller ask before they sign, and
of what a seller takes back by right (`ramp.model.sizes.reclaimed`), by which the bank judges too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ramp.model.agreement import Agreement, Amendment, Reclamation
from ramp.model.sizes.amended import SlotState, amendment_problem, first_state
from ramp.model.sizes.reclaimed import changed, in_order, reclamation_problem
from ramp.rfql.signing.verification import FileReport


@dataclass(frozen=True, slots=True)
class Chain:
    """One agreement and the changes of it that were shown with it.

    Attributes:
        agreement: what was bought.
        changes: amendments and reclamations, in the order in which each follows the one before; what follows nothing
            comes last.
        states: of the slot after the agreement and after each of them that fits.
        failure: which change does not fit the state before it, and why; empty where all do.
    """

    agreement: Agreement
    changes: tuple[Amendment | Reclamation, ...]
    states: tuple[SlotState, ...]
    failure: str = ""

    @property
    def amendments(self) -> tuple[Amendment, ...]:
        """What both have signed."""
        return tuple(each for each in self.changes if isinstance(each, Amendment))

    @property
    def reclamations(self) -> tuple[Reclamation, ...]:
        """What the seller has taken back by right."""
        return tuple(each for each in self.changes if isinstance(each, Reclamation))

    @property
    def given_back(self) -> int:
        """What the changes that fit have given back of the price together, in minor units."""
        return sum(each.refund for each in self._fitting)

    @property
    def charged(self) -> int:
        """What those of them that add have cost together, in minor units."""
        return sum(each.charge for each in self._fitting if isinstance(each, Amendment))

    @property
    def compensation(self) -> int:
        """What the seller has paid on top of what it gave back, in minor units."""
        return sum(each.compensation for each in self._fitting if isinstance(each, Reclamation))

    @property
    def _fitting(self) -> tuple[Amendment | Reclamation, ...]:
        return self.changes[: len(self.states) - 1]


def chains_of(reports: Sequence[FileReport]) -> tuple[Chain, ...]:
    """The chains that files which hold are, one for each agreement that was shown with changes of it.

    Args:
        reports: of the files; those that do not hold count as not shown.
    """
    holding = [each for each in reports if each.holds]
    found: list[Chain] = []
    for report in holding:
        agreement = report.agreement
        if agreement is None:
            continue
        shown = [change for each in holding if (change := each.amendment or each.reclamation) is not None]
        named = {
            (type(each).__name__, each.number): each for each in shown if each.agreement_id == agreement.agreement_id
        }
        if named:
            found.append(chain_of(agreement, [named[key] for key in sorted(named)]))
    return tuple(found)


def chain_of(agreement: Agreement, changes: Sequence[Amendment | Reclamation]) -> Chain:
    """Follow an agreement through its changes, as far as each fits the state that the one before has made.

    Args:
        agreement: what was bought.
        changes: amendments by number, then reclamations by number.
    """
    following = in_order(agreement, changes)
    ordered = (*following, *(each for each in changes if each not in following))
    states = [first_state(agreement)]
    for change in ordered:
        of_both = isinstance(change, Amendment)
        problem = (
            amendment_problem(agreement, states[-1], change)
            if isinstance(change, Amendment)
            else reclamation_problem(agreement, states[-1], change)
        )
        if problem is not None:
            code, detail = problem
            kind = "amendment" if of_both else "reclamation"
            failure = f"{kind} {change.number} does not follow: {code}: {detail}"
            return Chain(agreement, ordered, tuple(states), failure)
        states.append(changed(states[-1], change))
    return Chain(agreement, ordered, tuple(states))
