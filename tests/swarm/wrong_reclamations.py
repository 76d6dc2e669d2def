"""What a lying seller brings to the bank in place of a reclamation by right: all of it well signed, by itself alone.

Or it brings what is right, and hides it from its buyer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from ramp.model.acl import Message
from ramp.model.agreement import Agreement, Amendment, Reclamation, Signed
from ramp.model.contents import Reclaimed, ReclamationAnnounced, ReclamationNotice, ReclamationTaken, Settled
from ramp.model.instant import MINUTE, SECOND, Duration, Instant
from ramp.model.request import ReclaimTerms
from ramp.model.sizes.amended import SlotState, first_state, refund_owed
from ramp.model.sizes.reclaimed import changed, compensation_owed

Sign = Callable[[Reclamation, Instant], Signed]
"""Signs in the liar's name."""


def is_of_what_is_taken(message: Message) -> bool:
    """Whether a seller tells its buyer by this, with the document, what it takes back or has taken."""
    return isinstance(message.content, ReclamationAnnounced | Reclaimed)


def taken_without_right(
    settled: Settled, sign: Sign, random: Random, now: Instant
) -> list[tuple[ReclamationNotice | ReclamationTaken, Duration]]:
    """What is brought to the bank of a slot whose agreement gives no right, and after how long; nothing for others."""
    body = without_right(settled.agreement, 1, now)
    if body is None:
        return []
    taken = ReclamationTaken(body.agreement_id, body.number)
    notice = ReclamationNotice(sign(body, now), settled.agreement)
    return [(notice, 0), (taken, body.effective_at - now + random.choice((1, 20)) * SECOND)]


def wrongly_noticed(
    notice: ReclamationNotice, sign: Sign, random: Random, now: Instant
) -> tuple[ReclamationNotice, ReclamationTaken]:
    """A notice that breaks a term, or one time in five an honest one, and the word that the cores are taken."""
    made = notice.reclamation.body
    assert isinstance(made, Reclamation)
    wrong = wronged(notice, random, now)
    taken = ReclamationTaken(made.agreement_id, made.number)
    if wrong is None or random.random() < 0.2:
        return notice, taken
    return replace(notice, reclamation=sign(wrong, now)), taken


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
    for signed in notice.changes:
        assert isinstance(signed.body, Amendment | Reclamation)
        state = changed(state, signed.body)
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
    extra = compensation_owed(right, state, body.cores, body.effective_at)
    return replace(body, refund=max(refund, 1), compensation=extra)
