"""Agreements with what has changed their slots: whether files that were checked one by one are an unbroken chain.

Source: the market's rules of amendments (`ramp.model.sizes.amended`), which buyer and seller ask before they sign, and
of what a seller takes back by right (`ramp.model.sizes.reclaimed`), by which the bank judges too. When it gave notice
a seller may write as it likes: that a reclamation was by right only the bank's sealed word on it shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ramp.model.acl import Message
from ramp.model.agreement import Agreement, Amendment, Reclamation
from ramp.model.contents import Reclaimed, ReclamationAnnounced, ReclamationNoticed, ReclamationPosted
from ramp.model.seal import Role
from ramp.model.sizes.amended import SlotState, amendment_problem, first_state
from ramp.model.sizes.reclaimed import changed, in_order, notice_given_problem, reclamation_problem
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
        vouched_for: numbers of the reclamations whose notice or posting was shown with them, in the bank's sealed word.
    """

    agreement: Agreement
    changes: tuple[Amendment | Reclamation, ...]
    states: tuple[SlotState, ...]
    failure: str = ""
    vouched_for: frozenset[int] = frozenset()

    @property
    def unvouched(self) -> tuple[int, ...]:
        """Numbers of the reclamations of which no word of the bank was shown."""
        return tuple(each.number for each in self.reclamations if each.number not in self.vouched_for)

    @property
    def amendments(self) -> tuple[Amendment, ...]:
        """What both have signed."""
        return tuple(each for each in self.changes if isinstance(each, Amendment))

    @property
    def reclamations(self) -> tuple[Reclamation, ...]:
        """What the seller has taken back."""
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
            chain = chain_of(agreement, [named[key] for key in sorted(named)])
            messages = [each.message for each in holding if each.message is not None]
            vouched_for = frozenset(
                each.number
                for each in chain.reclamations
                if any(_vouches_for(message, agreement, each) for message in messages)
            )
            found.append(replace(chain, vouched_for=vouched_for))
    return tuple(found)


def _vouches_for(message: Message, agreement: Agreement, reclamation: Reclamation) -> bool:
    """Whether a sealed message is, or passes on, the bank's word that a reclamation was noticed in time, or posted."""
    content, seal = message.content, message.seal
    match message.content:
        case Reclaimed(_, word, passed_on):
            content, seal = word, passed_on
        case ReclamationAnnounced(notice, passed_on):
            content, seal = notice, passed_on
    if seal is None or (seal.signer, seal.role) != (agreement.bank, Role.BANK):
        return False
    if isinstance(content, ReclamationPosted):
        return (content.agreement_id, content.number, content.refund, content.compensation) == (
            reclamation.agreement_id,
            reclamation.number,
            reclamation.refund,
            reclamation.compensation,
        )
    right = agreement.request.reclaim
    return (
        isinstance(content, ReclamationNoticed)
        and content.reclamation.body == reclamation
        and right is not None
        and not notice_given_problem(right, reclamation, content.noticed_at)
    )


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
