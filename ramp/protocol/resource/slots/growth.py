"""The resource's side of one amendment that adds to a slot: from the buyer's proposal to the bank's word on it.

What is added is set aside on the machine first, and is on record before the machine is asked, so that a restart knows
what to ask again or to give back. Only when the bank has posted the payment may the buyer use it. If it comes to
nothing (no money in time, withdrawn by the buyer, void at the bank) the machine is asked for the old size again, which
is less, so that the slot itself is never lost by it.
"""

from __future__ import annotations

from ramp.model.instant import Instant, iso
from ramp.model.offer import Refusal
from ramp.protocol.amending.asking import BANK_TOO_OLD, SlotResized
from ramp.protocol.amending.memory import AmendmentReceived, CapacityTaken
from ramp.protocol.effects import Effect, Persist
from ramp.protocol.resource.slots.size_change import S, SizeChange
from ramp.protocol.timing import earliest


class SlotGrowth(SizeChange):
    """One amendment that adds to a slot; see `SizeChange` for its arguments."""

    @property
    def is_binding(self) -> bool:
        """Never: until it is posted the slot may be used in its old size, which is within the new one."""
        return False

    @property
    def set_aside(self) -> int:
        """Cores that the machine keeps for it and that nobody has paid yet."""
        longer = self.body.until > self._state.until
        return self.body.cores if longer else self.body.cores - self._state.cores

    # -- entries -------------------------------------------------------------------------------------------------

    def start(self, now: Instant) -> list[Effect]:
        """The amendment fits: make that durable, and have the machine set aside what is added."""
        self._enter(S.HOLDING, "Amendment")
        self._arm()
        return [Persist(AmendmentReceived(self.body.offer_id, self.signed, now)), self._ask_machine()]

    def recover(self, now: Instant) -> list[Effect]:
        """Go on after a restart; what was asked of machine and bank before is asked again."""
        if self._taken:
            self._enter(S.POSTING, "recover")
            return [self._post(now)]
        self._enter(S.HOLDING, "recover")
        self._arm()
        return [self._ask_machine()]

    def tick(self, now: Instant, *, sold: bool, old_bank: str) -> list[Effect]:
        """Give up what is not paid in time, or ask machine or bank again; see `SizeChange.tick`."""
        if self.state in (S.HOLDING, S.AGREED) and now >= self.body.valid_until:
            detail = f"the bank was not asked to post it by {iso(self.body.valid_until)}"
            return self._restore("expired", detail, "deadline", now)
        if not self._retry.is_due(now):
            return []
        if self.state is S.POSTING and old_bank:
            return self._restore(BANK_TOO_OLD, old_bank, "deadline", now)
        if self.state is S.POSTING:
            self._retry.again(now)
            self._arm()
            return [self._to_bank()]
        self._retry.stop()
        self._arm()
        return [self._ask_machine()]

    # -- the machine's answers and the buyer's messages ----------------------------------------------------------

    def on_resized(self, resized: SlotResized, now: Instant) -> list[Effect]:
        """The machine has set aside what is added, or given it back, or not, or nobody knows."""
        if resized.step != self._step():
            return []
        if resized.answer is None:
            self._ask_again_later(now)
            return []
        if self.state is S.HOLDING:
            if isinstance(resized.answer, Refusal):
                code = str(resized.answer.code) if resized.able else "cannot_resize"
                return self._end(code, resized.answer.detail, "SlotResized", now)
            self._enter(S.AGREED, "SlotResized")
            self._retry.stop()
            self._arm()
            return [self._agreed()]
        if self.state is S.RESTORING:
            return self._end(*self._why, "SlotResized", now)
        return []

    def on_funded(self, now: Instant) -> list[Effect]:
        """The buyer says that the money is set aside: countersign the amendment and have it posted."""
        if self.state is not S.AGREED:
            return []
        self._enter(S.POSTING, "AmendmentFunded")
        return [Persist(CapacityTaken(self.body.offer_id, self.body.number, now)), self._post(now)]

    def on_withdrawn(self, now: Instant) -> list[Effect]:
        """The buyer says that the order is void; once the bank has been asked, its word counts alone."""
        if self.state not in (S.HOLDING, S.AGREED):
            return []
        return self._restore("withdrawn", "its buyer has withdrawn it", "AmendmentWithdrawal", now)

    def _arm(self) -> None:
        limit = self.body.valid_until if self.state in (S.HOLDING, S.AGREED) else None
        self.deadline = earliest(self._retry.due, limit)
