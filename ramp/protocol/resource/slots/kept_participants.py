"""The accepted offers of a resource, their releases at the machine, and the indexes over all of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial

from ramp.model.acl import Message
from ramp.model.agreement import Signed
from ramp.model.instant import Instant
from ramp.model.offer import RefusalCode
from ramp.protocol.conversations import Conversations, Registry, Retention, guarded
from ramp.protocol.effects import Effect, ReleaseSlot
from ramp.protocol.events import SlotsTended
from ramp.protocol.resource.jobs.job_desk import JobDesk
from ramp.protocol.resource.jobs.launching import LaunchTerms
from ramp.protocol.resource.participant import Participant
from ramp.protocol.resource.quotas import Quotas, Unpaid
from ramp.protocol.resource.seller import Seller
from ramp.protocol.resource.slots.growth_prices import refused
from ramp.protocol.resource.slots.size_desk import SizeDesk
from ramp.protocol.resource.tending import Tending
from ramp.protocol.timing import Pace, Retried, Retry
from ramp.protocol.transition_tables import ParticipantState


class Release(Retried):
    """The releases of one slot.

    A slot may be released several times, and answers may overtake each other. It counts as free only when all answers
    are in and none is in doubt; else it is released once more.
    """

    def __init__(self, key: str, pace: Pace) -> None:
        self.key = key
        self._retry = Retry(pace)
        self._under_way = 0
        self._in_doubt = False

    @property
    def is_done(self) -> bool:
        return self._under_way == 0 and self._retry.due is None

    def asked(self) -> list[Effect]:
        """Note that the machine is asked to release the slot."""
        self._under_way += 1
        self._retry.stop()
        return []

    def on_answer(self, now: Instant, *, in_doubt: bool) -> list[Effect]:
        """Take an answer; after the last one, wait for another try if any was in doubt."""
        self._in_doubt |= in_doubt
        self._under_way -= 1
        if self._under_way == 0 and self._in_doubt:
            self._in_doubt = False
            self._retry.again(now)
        return []

    def on_timer(self, now: Instant) -> list[Effect]:
        """Release the slot once more."""
        return [*self.asked(), ReleaseSlot(self.key)]


RELEASED_MAX = 20_000
"""Maximum released offers kept to answer repeated messages, which come within minutes."""

S = ParticipantState
UNPAID = (S.HOLDING, S.HELD, S.CONFIRMING, S.QUEUED, S.SETTLING)
"""States of a reserved slot that is not paid."""

FINAL = (S.SOLD, S.RELEASED)
"""States in which the resource waits for no answer."""


class KeptParticipants:
    """The accepted offers of one resource, and what follows their states.

    Attributes:
        jobs: jobs on sold slots.
        unpaid: unpaid slots of each buyer.
        sizes: resizes of sold slots.
        releases: releases that the machine has not confirmed, by the key of the slot.
        over: ended offers, until they are archived.
        tending: sold slots, which the machine may lose or move.
        participants: by the offer's id.
        by_agreement: the same by the agreement's id, once there is an agreement.
    """

    def __init__(
        self, name: str, seller: Seller, pace: Pace, registry: Registry, quotas: Quotas, launching: LaunchTerms
    ) -> None:
        self.jobs = JobDesk(name, launching, pace.timing, registry, self.lost)
        self.unpaid = Unpaid(quotas, seller.cores)
        self.sizes = SizeDesk(
            pace, self.jobs.in_the_way, self.lost, seller=seller, unpaid=self.unpaid, registry=registry
        )
        self.releases: Conversations[Release] = Conversations(registry, followed=self._release_followed)
        self.over = Retention(pace.timing)
        self.tending = Tending(name, launching, pace, registry)
        self.participants: Conversations[Participant] = Conversations(registry, followed=self._followed)
        self.by_agreement: dict[str, Participant] = {}
        self._pace = pace
        self._released: OrderedDict[str, None] = OrderedDict()

    def forget(self, reference: str) -> bool:
        """Remove an accepted offer from every index; return whether it was there."""
        gone = self.participants.drop(reference)
        if gone is None:
            return False
        self._released.pop(reference, None)
        self.over.drop(reference)
        self.jobs.forget(reference)
        self.sizes.forget(reference)
        self.tending.forget(reference)
        self.unpaid.remove(gone.user, reference)
        self._drop_agreement(gone)
        return True

    def _drop_agreement(self, gone: Participant) -> None:
        # After a restart, memory may also have a later slot sold under the same agreement id.
        if gone.agreement is not None and self.by_agreement.get(gone.agreed.agreement_id) is gone:
            del self.by_agreement[gone.agreed.agreement_id]

    def act(self, participant: Participant, act: Callable[[], list[Effect]], now: Instant) -> list[Effect]:
        """Run a participant's action and update the indexes; a bug stays in its conversation."""
        return self.participants.act(participant.offer.offer_id, act, now)

    def _followed(self, participant: Participant, effects: list[Effect], now: Instant) -> list[Effect]:
        """Update the indexes after a participant's action."""
        offer_id = participant.offer.offer_id
        self.tending.kept(participant)
        self.sizes.kept(participant)
        for effect in effects:
            if isinstance(effect, ReleaseSlot):
                release = self.releases.get(effect.key) or self.releases.add(
                    effect.key, Release(effect.key, self._pace)
                )
                self.releases.act(effect.key, release.asked, now)
        if participant.agreement is not None:
            self.by_agreement[participant.agreed.agreement_id] = participant
        if participant.state in UNPAID:
            self.unpaid.add(participant.user, offer_id, participant.offer.cores)
        else:
            self.unpaid.remove(participant.user, offer_id)
        if participant.state in FINAL:
            ended = participant.released.at if participant.released is not None else participant.offer.end
            self.over.keep(offer_id, ended)
        else:
            self.over.drop(offer_id)
        if participant.state is ParticipantState.RELEASED:
            self._released[offer_id] = None
            if len(self._released) > RELEASED_MAX:
                oldest, _ = self._released.popitem(last=False)
                gone = self.participants.drop(oldest)
                if gone is not None:
                    self._drop_agreement(gone)
        return effects

    def on_freed(self, key: str, now: Instant, *, in_doubt: bool) -> list[Effect]:
        """Take the machine's answer to a release."""
        return self.releases.act(key, partial(self.releases[key].on_answer, now, in_doubt=in_doubt), now)

    def _release_followed(self, release: Release, effects: list[Effect], now: Instant) -> list[Effect]:
        if release.is_done:
            self.releases.drop(release.key)
        return effects

    def on_change(self, message: Message, signed: Signed, now: Instant) -> list[Effect]:
        """Take a buyer's change of what it has bought, for the first time or again.

        Raises:
            RemoteProtocolError: if the buyer is not the only signer.
        """
        body = signed.change
        participant = self.participants.get(body.offer_id)
        if participant is None or participant.agreement is None:
            return [refused(message, body, "unknown_agreement", "no slot is sold for this offer")]
        participant.check_signer(signed)
        if body.agreement_id != participant.agreed.agreement_id:
            return [refused(message, body, "unknown_agreement", "the slot is sold under another agreement")]
        if body.is_terminal:
            return self.act(participant, partial(participant.on_cancellation, signed, now), now)
        return guarded(body.offer_id, partial(self.sizes.on_change, message, signed, participant, now))

    def lost(self, offer_id: str, code: RefusalCode, detail: str, now: Instant) -> list[Effect]:
        """Report a sold slot as failed, and end its jobs."""
        participant = self.participants.get(offer_id)
        if participant is None or participant.state is not ParticipantState.SOLD:
            return []
        lose = lambda: participant.on_lost(code, detail, now) + self.jobs.end(offer_id, now, lost=True)  # noqa: E731
        return self.act(participant, lose, now)

    def tended(self, told: SlotsTended, now: Instant) -> list[Effect]:
        """Take the machine's word about sold slots: lost ones have failed, and others are in order or have moved."""
        for key, move in told.moved:
            if key in self.participants:
                self.participants[key].reserved_as = move.reservation_id
        effects = [each for key, why in told.lost for each in self.lost(key, RefusalCode.PLUGIN_FAILED, why, now)]
        jobs = [job for key in told.seen for job in self.jobs.jobs_of(key)]
        for job in jobs:
            effects += self.jobs.act(job, partial(job.slot_seen, now), now)
        return effects
