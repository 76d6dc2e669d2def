"""What a lying seller brings to the bank in place of a reclamation by right: all of it well signed, by itself alone."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ramp.model.agreement import Agreement, Amendment, Reclamation, Signed
from ramp.model.contents import ReclamationNotice
from ramp.model.instant import MINUTE, SECOND, Instant
from ramp.model.request import ReclaimTerms
from ramp.model.sizes.amended import SlotState, first_state, refund_owed
from ramp.model.sizes.reclaimed import changed, compensation_owed


def wronged(notice: ReclamationNotice, random: Random, now: Instant) -> Reclamation | None:
    """A reclamation that breaks one term of its agreement and keeps to all others; None where none can be made.

    Args:
        notice: an honest one.
        random: draws which.
        now: the liar's clock.
    """
    body, agreement = notice.reclamation.body, notice.agreement.body
    assert isinstance(body, Reclamation)
    assert isinstance(agreement, Agreement)
    state = first_state(agreement)
    if notice.last is not None:
        last = notice.last.body
        assert isinstance(last, Amendment | Reclamation)
        state = changed(state, last)
    right = agreement.request.reclaim
    if right is None:
        return None
    short = replace(body, issued_at=now - right.notice, effective_at=now + SECOND)
    wrong = [
        worth(short, agreement, state, right),  # dated as if it had been told of in time
        replace(body, refund=max(1, body.refund - 1)),
        replace(body, compensation=max(0, body.compensation - 1)),
        replace(body, compensation=0),
        replace(body, previous=first_state(agreement).digest),
        replace(body, until=body.until - MINUTE),
    ]
    if right.least > 1:
        wrong += [worth(replace(body, cores=right.least - 1), agreement, state, right)] * 6
    found = random.choice(wrong)
    return None if found == body else found


def without_right(agreement: Signed, number: int, now: Instant) -> Reclamation | None:
    """A reclamation of a slot whose agreement gives no right to one, worth what it would be; None for other slots."""
    body = agreement.body
    if not isinstance(body, Agreement) or body.request.reclaim is not None or body.offer.cores < 2:
        return None
    if body.offer.in_queue:
        return None
    state, right = first_state(body), ReclaimTerms(1, 10 * SECOND)
    made = Reclamation(
        agreement_id=body.agreement_id,
        number=number,
        previous=state.digest,
        offer_id=body.offer.offer_id,
        user=body.user,
        resource=body.resource,
        bank=body.bank,
        cores=body.offer.cores // 2,
        until=state.until,
        effective_at=now + 30 * SECOND,
        refund=1,
        compensation=0,
        issued_at=now,
        valid_until=min(now + 3 * MINUTE, state.until),
    )
    return worth(made, body, state, right)


def worth(body: Reclamation, agreement: Agreement, state: SlotState, right: ReclaimTerms) -> Reclamation:
    """The reclamation with refund and compensation as they would be owed."""
    refund = refund_owed(agreement, state, body.cores, body.until, body.effective_at)
    extra = compensation_owed(right, agreement, state, body.cores, body.effective_at)
    return replace(body, refund=max(refund, 1), compensation=extra)
