"""Every accepted offer that a resource has at hand, and what has to be known of all of them together."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from ramp.model.instant import Instant
from ramp.model.offer import RefusalCode
from ramp.protocol.effects import Effect, ReleaseSlot
from ramp.protocol.events import SlotConfirmed, SlotHeld, SlotLookedUp
from ramp.protocol.faults import guarded
from ramp.protocol.resource.alarms import Alarms
from ramp.protocol.resource.jobs.job_desk import JobDesk
from ramp.protocol.resource.participant import Participant
from ramp.protocol.resource.quotas import Unpaid
from ramp.protocol.resource.releases import Releases
from ramp.protocol.resource.slots.size_desk import SizeDesk
from ramp.protocol.resource.tending import Tending
from ramp.protocol.retention import Retention
from ramp.protocol.transition_tables import ParticipantState

RELEASED_MAX = 20_000
"""Released offers at hand at most, so that repeated messages get the same answer; they are repeated within minutes."""

S = ParticipantState
UNPAID = (S.HOLDING, S.HELD, S.CONFIRMING, S.QUEUED, S.SETTLING)
"""States in which a slot is set aside for a buyer who has not paid."""

FINAL = (S.SOLD, S.RELEASED)
"""States in which nothing is awaited but what somebody may ask for later."""


class KeptParticipants:
    """Base of the resource's party: its participants, and the indexes that follow them.

    Args:
        unpaid: what buyers have set aside without having paid.
        releases: what the machine has been told to give back.
        over: what has ended, until it is forgotten.
        jobs: the jobs on sold slots.
        sizes: the changes of sold slots.
        tending: the machine that has to be told whose they are.

    Attributes:
        participants: by the offer's id.
        jobs: the jobs on sold slots.
        sizes: the changes of sold slots.
    """

    def __init__(
        self,
        *,
        unpaid: Unpaid,
        releases: Releases,
        over: Retention,
        jobs: JobDesk,
        sizes: SizeDesk,
        tending: Tending,
    ) -> None:
        self.participants: OrderedDict[str, Participant] = OrderedDict()
        self.jobs = jobs
        self.sizes = sizes
        self._by_agreement: dict[str, Participant] = {}
        self._unpaid = unpaid
        self._open: dict[str, None] = {}
        self._alarms = Alarms()
        self._releases = releases
        self._released: OrderedDict[str, None] = OrderedDict()
        self._over = over
        self._tending = tending

    @property
    def has_open_participants(self) -> bool:
        """Whether some accepted offer is neither sold nor released, or the machine has not said that it is."""
        return bool(self._open or self._releases)

    def is_releasing(self, offer_id: str) -> bool:
        """Whether the machine has been told, or will be told again, to give a slot back, and has not said yes."""
        return offer_id in self._releases

    def _forget_participant(self, reference: str) -> bool:
        """Let an accepted offer go from every index; says whether there was one."""
        gone = self.participants.pop(reference, None)
        if gone is None:
            return False
        for index in (self._open, self._released):
            index.pop(reference, None)
        self._alarms.set(reference, None)
        self._over.drop(reference)
        self.jobs.forget(reference)
        self.sizes.forget(reference)
        self._tending.forget(reference)
        self._unpaid.remove(gone.user, reference)
        self._drop_agreement(gone)
        return True

    def _drop_agreement(self, gone: Participant) -> None:
        # Another slot may have been sold under its id when it had gone already: both are in memory after a restart.
        if gone.agreement is not None and self._by_agreement.get(gone.agreed.agreement_id) is gone:
            del self._by_agreement[gone.agreed.agreement_id]

    def _act(self, participant: Participant, act: Callable[[], list[Effect]]) -> list[Effect]:
        """Let a participant act and keep the indexes true; a bug in it stays its own."""
        return guarded(participant.offer.offer_id, lambda: self._kept(participant, act()))

    def _kept(self, participant: Participant, effects: list[Effect]) -> list[Effect]:
        """Keep the indexes true after a participant has moved."""
        offer_id = participant.offer.offer_id
        self._tending.kept(participant)
        self.sizes.kept(participant)
        for effect in effects:
            if isinstance(effect, ReleaseSlot):
                self._releases.asked(effect.key)
        if participant.agreement is not None:
            self._by_agreement[participant.agreed.agreement_id] = participant
        if participant.state in UNPAID:
            self._unpaid.add(participant.user, offer_id, participant.offer.cores)
        else:
            self._unpaid.remove(participant.user, offer_id)
        if participant.state in FINAL:
            self._open.pop(offer_id, None)
            ended = participant.released.at if participant.released is not None else participant.offer.end
            self._over.keep(offer_id, ended)
        else:
            self._open[offer_id] = None
            self._over.drop(offer_id)
        self._alarms.set(offer_id, participant.deadline)
        if participant.state is ParticipantState.RELEASED:
            self._released[offer_id] = None
            if len(self._released) > RELEASED_MAX:
                oldest, _ = self._released.popitem(last=False)
                self._drop_agreement(self.participants.pop(oldest))
        return effects

    def _lost(self, offer_id: str, code: RefusalCode, detail: str, now: Instant) -> list[Effect]:
        """A sold slot cannot be had: give its money back, and end its jobs."""
        participant = self.participants.get(offer_id)
        if participant is None or participant.state is not ParticipantState.SOLD:
            return []
        return self._act(participant, lambda: participant.on_lost(code, detail, now) + self.jobs.end(offer_id, now))

    def _with_given_up(self, effects: list[Effect], now: Instant) -> list[Effect]:
        """Give the money of a slot back that can be had neither in its new size nor in the old one.

        That comes first: after a crash between the two the change is still open, and ends once more.
        """
        lost = (self._lost(key, RefusalCode.NOT_DELIVERED, why, now) for key, why in self.sizes.stranded())
        return [*(effect for each in lost for effect in each), *effects]

    def _delivered(self, job_id: str, now: Instant) -> list[Effect]:
        """See whether a job has shown that its slot was not delivered."""
        found = self.jobs.undelivered(job_id)
        return [] if found is None else self._lost(found[0], RefusalCode.NOT_DELIVERED, found[1], now)


def told_of_slot(
    participant: Participant, answer: SlotHeld | SlotConfirmed | SlotLookedUp, now: Instant
) -> list[Effect]:
    """Let a participant take what the machine says of its slot."""
    match answer:
        case SlotHeld():
            return participant.on_held(answer.answer, now)
        case SlotConfirmed():
            return participant.on_confirmed(answer.answer, now)
        case SlotLookedUp():
            return participant.on_looked_up(answer.answer, now)
