"""Cores that a seller takes back by right: when the agreement allows it, and what the buyer gets for it.

A buyer may sell a right with its request (`ramp.model.request.ReclaimTerms`, a part of the signed agreement): down to
so many cores, with so long a notice, for so much compensation, the seller may shrink the slot without being agreed to.
It is the mandatory shrink of KOALA (Buisson et al., CoreGRID TR-0092, 2007, section 3: one that the application must
meet because the system needs the processors), with a price. The bank judges a reclamation by this, and so do seller,
buyer, and whoever verifies the documents.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final

from ramp.model import money
from ramp.model.agreement import Agreement, Amendment, Reclamation
from ramp.model.instant import DAY, SECOND, Duration, Instant, iso, seconds
from ramp.model.request import ReclaimTerms, RequestUnit
from ramp.model.sizes.amended import SlotState, after, first_state, refund_owed, state_digest, within

TOO_MANY_CHANGES: Final = "too_many_changes"
"""Code of a change of a slot that was changed as often as one may be."""

NOTICE_MAX: Final[Duration] = 30 * DAY
"""Longest notice; longer than any slot."""

COMPENSATION_MAX: Final = 1_000_000
"""Highest compensation, credits per core hour: far above every price."""

RECLAMATION_NUMBER_MAX: Final = 1_000
"""Reclamations of one slot; the bank keeps what it decides of each."""


CHANGES_MAX: Final = 16
"""Changes of a slot that a seller can bring to the bank in one message, which must not be too long."""

AMENDMENTS_BESIDE_A_RIGHT: Final = CHANGES_MAX // 2
"""Amendments of a slot that its seller may take cores back of: the other half is left for what it takes."""

SLOT_CHANGES_MAX: Final = 48
"""Changes of any slot: whoever judges one looks at all that was bought before, in exact fractions that grow with it."""


def reclaim_problems(unit: RequestUnit) -> tuple[str, ...]:
    """What makes no sense about the right that a unit grants, as sentences that say what would be right."""
    right = unit.reclaim
    if right is None:
        return ()
    found = []
    if not 1 <= right.least < most_cores(unit):
        wrong = f"{right.least} of {most_cores(unit)} cores are left"
        found.append(f"{wrong}; right would be 1 or more, and fewer than all")
    if right.notice % SECOND or not SECOND <= right.notice <= NOTICE_MAX:
        right_is = f"whole seconds, 1 s to {NOTICE_MAX // DAY} days"
        found.append(f"a notice of {seconds(right.notice):g} s; right would be {right_is}")
    if not 0 <= right.compensation <= COMPENSATION_MAX:
        right_is = f"0 to {COMPENSATION_MAX} credits/core-hour"
        found.append(f"a compensation of {right.compensation}; right would be {right_is}")
    if unit.start_probability is not None:
        found.append("beside a StartProbability; right would be one of the two, for a submitted job keeps its size")
    return tuple(found)


def most_cores(unit: RequestUnit) -> int:
    """Cores that a slot for a unit has at most by the request; a machine with whole nodes may sell more."""
    return unit.cores.total if unit.moldable is None else unit.moldable.most


def compensation_owed(right: ReclaimTerms, state: SlotState, cores: int, effective_at: Instant) -> int:
    """What a seller pays on top of the refund, in minor units, rounded as prices are.

    Args:
        right: as the agreement grants it.
        state: of the slot before.
        cores: after.
        effective_at: from when on.
    """
    begins = max(effective_at, state.since)
    return money.cost(right.compensation, state.cores - cores, max(state.until - begins, 0))


def reclaimed(state: SlotState, reclamation: Reclamation) -> SlotState:
    """The state of a slot once a reclamation has been posted; numbers of amendments go on as they were."""
    return replace(
        state,
        cores=reclamation.cores,
        digest=state_digest(reclamation),
        since=max(reclamation.effective_at, state.since),
        spans=within(state, reclamation.cores, reclamation.until),
    )


def changed(state: SlotState, change: Amendment | Reclamation) -> SlotState:
    """The state of a slot once either has been posted."""
    return after(state, change) if isinstance(change, Amendment) else reclaimed(state, change)


def number_problem(agreement: Agreement, changes: Collection[Amendment | Reclamation]) -> tuple[str, str] | None:
    """Why a slot is not amended once more, as code and sentence; None where it may be.

    Asked by its buyer and its seller before either signs.

    Args:
        agreement: what was bought.
        changes: all that was posted of it.
    """
    amended = sum(isinstance(each, Amendment) for each in changes)
    if agreement.request.reclaim is not None and amended >= AMENDMENTS_BESIDE_A_RIGHT:
        right_is = f"{AMENDMENTS_BESIDE_A_RIGHT} at most where its seller may take cores back"
        return TOO_MANY_CHANGES, f"the slot was amended {amended} times; right would be {right_is}"
    if len(changes) >= SLOT_CHANGES_MAX:
        return TOO_MANY_CHANGES, f"the slot was changed {len(changes)} times; right would be {SLOT_CHANGES_MAX} at most"
    return None


def in_order(agreement: Agreement, changes: Iterable[Amendment | Reclamation]) -> list[Amendment | Reclamation]:
    """The changes of a slot in the order in which they were posted, as far as each follows the one before.

    Args:
        agreement: what was bought.
        changes: amendments and reclamations of it, in any order.
    """
    state, left = first_state(agreement), list(changes)
    found: list[Amendment | Reclamation] = []
    while (following := next((each for each in left if each.previous == state.digest), None)) is not None:
        left.remove(following)
        found.append(following)
        state = changed(state, following)
    return found


def reclamation_problem(agreement: Agreement, state: SlotState, reclamation: Reclamation) -> tuple[str, str] | None:
    """Why a reclamation does not fit agreement and state, as code and sentence; None where it fits.

    Asked alike by the seller before it signs, the bank before it notes or posts it, the buyer who is told of it, and
    whoever verifies the documents. When its notice was given is not the seller's to say: see `notice_given_problem`.

    Args:
        agreement: what was bought.
        state: as the slot stands.
        reclamation: what the seller has signed, or would.
    """
    offer, right = agreement.offer, agreement.request.reclaim
    parties = (reclamation.agreement_id, reclamation.offer_id, reclamation.user, reclamation.resource, reclamation.bank)
    if parties != (agreement.agreement_id, offer.offer_id, agreement.user, agreement.resource, agreement.bank):
        return "other_parties", "it names another agreement, offer, or other parties"
    if right is None or offer.start_probability is not None:
        return "no_right", "the agreement gives its seller no right to take cores back"
    if not 1 <= reclamation.number <= RECLAMATION_NUMBER_MAX:
        return "old_number", f"its number is {reclamation.number}; right would be 1 to {RECLAMATION_NUMBER_MAX}"
    if reclamation.previous != state.digest:
        return "other_state", "it changes another state of the slot than the one that stands"
    if reclamation.cores < right.least:
        return "below_minimum", f"it leaves {reclamation.cores} cores; right would be at least {right.least}"
    if reclamation.cores >= state.cores or reclamation.until != state.until:
        return "not_smaller", (
            f"it leaves {reclamation.cores} cores until {iso(reclamation.until)}; right would be fewer than the "
            f"{state.cores} that the slot has, until {iso(state.until)}"
        )
    if not reclamation.issued_at < reclamation.effective_at < reclamation.valid_until <= state.until:
        return "bad_times", "it takes effect after its issue, and is posted after that and before the slot's end"
    if short := notice_given_problem(right, reclamation, reclamation.issued_at):
        return "short_notice", short
    owed = refund_owed(agreement, state, reclamation.cores, reclamation.until, reclamation.effective_at)
    if owed < 1:
        return "nothing_back", "what is taken back is worth less than a hundredth of a credit"
    if reclamation.refund != owed:
        return "bad_price", f"it gives {reclamation.refund} minor units back; right would be {owed}"
    extra = compensation_owed(right, state, reclamation.cores, reclamation.effective_at)
    if reclamation.compensation != extra:
        return "bad_compensation", f"it pays {reclamation.compensation} minor units on top; right would be {extra}"
    return None


def notice_given_problem(right: ReclaimTerms, reclamation: Reclamation, told_at: Instant) -> str:
    """Why a notice is too short, as a sentence; empty where it is not.

    Args:
        right: as the agreement grants it.
        reclamation: what the seller does.
        told_at: when it was told of; what counts is when the bank had it, for the seller may date it as it likes.
    """
    given = reclamation.effective_at - told_at
    if given >= right.notice:
        return ""
    return f"its notice is {seconds(given):g} s; right would be {seconds(right.notice):g} s"
