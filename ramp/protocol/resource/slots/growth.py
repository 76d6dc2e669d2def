"""The resource's side of one amendment that adds to a slot: from the buyer's proposal to the bank's word on it.

What is added is set aside on the machine first, and is on record before the machine is asked, so that a restart knows
what to ask again or to give back. Only when the bank has posted the payment may the buyer use it. If it comes to
nothing (no money in time, withdrawn by the buyer, void at the bank) the machine is asked for the old size again, which
is less, so that the slot itself is never lost by it.
"""

from __future__ import annotations

from ramp.model.instant import Instant, iso
from ramp.model.offer import Refusal
from ramp.protocol.amending.asking import SlotResized
from ramp.protocol.effects import Effect, Persist
from ramp.protocol.resource.slots.size_change import S, SizeChange, refusal_code


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
        return [self._received(now), self._ask_machine()]

    def recover(self, now: Instant) -> list[Effect]:
        """Go on after a restart; what was asked of machine and bank before is asked again."""
        if self._taken:
            return super().recover(now)
        self._in_doubt = True
        self._enter(S.HOLDING, "recover")
        self._arm()
        return [self._ask_machine()]

    def tick(self, now: Instant, *, sold: bool) -> list[Effect]:
        """Give up what is not paid in time, or ask machine or bank again; see `SizeChange.tick`."""
        if self.state in (S.HOLDING, S.AGREED) and now >= self.body.valid_until:
            detail = f"the bank was not asked to post it by {iso(self.body.valid_until)}"
            return self._restore("expired", detail, "deadline")
        return self._ask_again(now)

    def on_funded(self, now: Instant) -> list[Effect]:
        """The buyer says that the money is set aside: countersign the amendment and have it posted."""
        if self.state is not S.AGREED:
            return []
        self._enter(S.POSTING, "AmendmentFunded")
        return [Persist(self._is_taken(now)), self._ask_bank(now)]

    def on_withdrawn(self, now: Instant) -> list[Effect]:
        """The buyer says that the order is void; once the bank has been asked, its word counts alone."""
        if self.state not in (S.HOLDING, S.AGREED):
            return []
        return self._restore("withdrawn", "its buyer has withdrawn it", "AmendmentWithdrawal")

    # -- the machine ---------------------------------------------------------------------------------------------

    def _on_new_size(self, resized: SlotResized, now: Instant) -> list[Effect]:
        """The machine has set aside what is added, or not."""
        if self.state is not S.HOLDING:
            return []
        if isinstance(resized.answer, Refusal):
            return self._not_done(resized.answer, refusal_code(resized.answer, able=resized.able), now)
        self._enter(S.AGREED, "SlotResized")
        self._retry.stop()
        self._arm()
        return [self._agreed()]

    def _not_restored(self, refusal: Refusal) -> None:
        """The slot is not lost, whatever the machine says: it keeps more than that, not less."""

    def _limit(self) -> Instant | None:
        return self.body.valid_until if self.state in (S.HOLDING, S.AGREED) else None
