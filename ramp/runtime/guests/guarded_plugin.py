"""A plug-in and a price strategy as the host asks them: guests whose answers are checked.

An exception or an impossible answer of a guest is reported once and becomes an answer that the protocol knows. A quote
or price is refused with a code. A hold, confirmation or release is in doubt, because its effect is unknown; the party
asks about it again. For a while after a failure the guest is asked for no further offers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar, assert_never

from ramp.errors import PluginError, StorageFailed
from ramp.model.instant import Duration, Instant
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit
from ramp.model.slot import Reservation, Slot
from ramp.plugins.answers import (
    firm_problem,
    held_problem,
    lost_problem,
    moves_problem,
    quote_problem,
    reservation_problem,
    resized_problem,
)
from ramp.plugins.interface import (
    ForgettingPlugin,
    HoldingForPlugin,
    MovingPlugin,
    ResizablePlugin,
    ResourcePlugin,
    TendedPlugin,
)
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.amending.asking import ResizeSlot, SlotResized
from ramp.protocol.effects import PriceSlots
from ramp.protocol.events import MachineInDoubt, SlotsPriced
from ramp.protocol.pricing import PriceQuestion, PriceRefusal, PricingStrategy
from ramp.runtime.guests.answers import call_of, price_problem, raised, snapshot_problem, snapshot_text, without_answer
from ramp.runtime.guests.health import Health
from ramp.text import one_line

Answer = TypeVar("Answer")

GONE = "the machine no longer has the reservation"
"""Reason of a lost slot that the plug-in has forgotten."""


class GuardedPlugin:
    """A plug-in whose impossible answers and exceptions become refusals or doubts; only `StorageFailed` passes.

    Args:
        plugin: the guest.
        health: records how its calls end.
        own_memory: whether the plug-in's book of reservations is the agent's own memory, without which it must end.
    """

    def __init__(self, plugin: ResourcePlugin, health: Health, *, own_memory: bool = True) -> None:
        self.plugin = plugin
        self._health = health
        self._own_memory = own_memory

    def ask(self, question: fx.AskMachine, now: Instant) -> ev.Answer:
        """Return the plug-in's answer to a party's question; during a pause it answers only about promised slots.

        Raises:
            StorageFailed: the agent's own book of reservations cannot be written.
        """
        if isinstance(question, fx.HoldSlot | fx.DescribeMachine):
            reason = self._health.resting(call_of(question), now)
            if reason:
                return without_answer(question, reason, asked=False)
        match question:
            case fx.QuoteSlots(call_id, units):
                return ev.SlotsQuoted(call_id, tuple(self.quote(unit, now) for unit in units))
            case fx.HoldSlot(key, unit, slot, until, account):
                return ev.SlotHeld(key, self.hold(key, unit, slot, until, now, account))
            case fx.ConfirmSlot(key):
                return ev.SlotConfirmed(key, self.confirm(key, now))
            case fx.ReleaseSlot(key):
                return ev.SlotFreed(key, self.release(key, now))
            case fx.LookUpSlot(key):
                return ev.SlotLookedUp(key, self.look_up(key, now))
            case fx.DescribeMachine(_, horizon):
                snapshot = self.snapshot(now, horizon)
                if isinstance(snapshot, MachineInDoubt):
                    return without_answer(question, snapshot.reason, asked=True)
                return ev.MachineDescribed(question.call_id, snapshot)
            case fx.ForgetSlots(keys):
                self.forget(keys, now)
                return ev.SlotsForgotten()
            case fx.TendSlots(slots):
                return self.tend(slots, now)
            case ResizeSlot():
                return self.resize(question, now)
        assert_never(question)

    def quote(self, unit: RequestUnit, now: Instant) -> Slot | Refusal:
        resting = self._health.resting("quote", now)  # for every unit, because the one before may have failed
        if resting:
            return Refusal(unit.number, RefusalCode.PLUGIN_FAILED, detail=resting)
        call = lambda: self.plugin.quote(unit, now)  # noqa: E731
        answer = self._ask("quote", now, call, lambda given: quote_problem(unit, given))
        if isinstance(answer, MachineInDoubt):
            return Refusal(unit.number, RefusalCode.PLUGIN_FAILED, detail=answer.reason)
        return answer

    def hold(
        self, key: str, unit: RequestUnit, slot: Slot, until: Instant, now: Instant, account: str = ""
    ) -> Reservation | Refusal | MachineInDoubt:
        plugin = self.plugin

        def call() -> Reservation | Refusal:
            if account and isinstance(plugin, HoldingForPlugin):
                return plugin.hold_for(account, key, unit, slot, until, now)
            return plugin.hold(key, unit, slot, until, now)

        return self._ask("hold", now, call, lambda given: held_problem(key, slot, given), changes=True)

    def confirm(self, key: str, now: Instant) -> Reservation | Refusal | MachineInDoubt:
        call = lambda: self.plugin.confirm(key, now)  # noqa: E731
        return self._ask("confirm", now, call, lambda given: firm_problem(key, given), changes=True)

    def look_up(self, key: str, now: Instant) -> Reservation | MachineInDoubt | None:
        def problem(given: object) -> str:
            return "" if given is None else reservation_problem(key, None, given)

        return self._ask("reservation", now, lambda: self.plugin.reservation(key, now), problem)

    def release(self, key: str, now: Instant) -> MachineInDoubt | None:
        return self._ask("release", now, lambda: self.plugin.release(key, now), lambda _: "", changes=True)

    def forget(self, keys: tuple[str, ...], now: Instant) -> None:
        """Let the plug-in forget unused keys if it can; after a failure it keeps them."""
        plugin = self.plugin
        if isinstance(plugin, ForgettingPlugin):
            self._ask("forget", now, lambda: plugin.forget(keys, now), lambda _: "", changes=True)

    def tend(self, slots: tuple[tuple[str, str], ...], now: Instant) -> ev.SlotsTended:
        """Report the buyers of sold slots to the plug-in and return the lost slots; a failed report is repeated.

        A plug-in without `tend` is asked for each slot, so that no plug-in can forget one unnoticed.
        """
        plugin = self.plugin
        owners = dict(slots)
        if not isinstance(plugin, TendedPlugin):
            return self._looked_for(owners, now)
        call = lambda: plugin.tend(owners, now)  # noqa: E731
        answer = self._ask("tend", now, call, lambda given: lost_problem(owners, given), changes=True)
        if isinstance(answer, MachineInDoubt):
            told = ev.SlotsTended()
        else:
            lost = tuple((key, one_line(why)) for key, why in answer.items())
            told = ev.SlotsTended(lost, seen=tuple(key for key in owners if key not in answer))
        if not isinstance(plugin, MovingPlugin):
            return told
        # also after an incomplete call: the plug-in has recorded the moved slots
        asked = lambda: plugin.moves(tuple(owners))  # noqa: E731
        moves = self._ask("moves", now, asked, lambda given: moves_problem(owners, given))
        if isinstance(moves, MachineInDoubt):
            return told  # it is asked again
        return replace(told, moved=tuple(moves.items()))

    def _looked_for(self, keys: Iterable[str], now: Instant) -> ev.SlotsTended:
        """Look for each sold slot; a failure ends the search, as the question is repeated."""
        lost: list[tuple[str, str]] = []
        seen: list[str] = []
        for key in keys:
            found = self.look_up(key, now)
            if isinstance(found, MachineInDoubt):
                break
            if found is None or not found.firm:
                lost.append((key, GONE))
            else:
                seen.append(key)
        return ev.SlotsTended(tuple(lost), seen=tuple(seen))

    def resize(self, asked: ResizeSlot, now: Instant) -> SlotResized:
        plugin, key, step = self.plugin, asked.key, asked.step
        if not isinstance(plugin, ResizablePlugin):
            detail = "this machine cannot change its reservations"
            return SlotResized(key, step, Refusal(0, RefusalCode.PLUGIN_FAILED, detail=detail), able=False)
        call = lambda: plugin.resize(key, step, asked.cores, asked.until, now)  # noqa: E731
        answer = self._ask(
            "resize", now, call, lambda given: resized_problem(key, asked.cores, asked.until, given), changes=True
        )
        if isinstance(answer, MachineInDoubt):
            return SlotResized(key, step, None, answer.reason)
        return SlotResized(key, step, answer)

    def snapshot(self, now: Instant, horizon: Duration) -> str | MachineInDoubt:
        return self._ask("snapshot", now, lambda: snapshot_text(self.plugin.snapshot(now, horizon)), snapshot_problem)

    def _ask(
        self,
        what: str,
        now: Instant,
        call: Callable[[], Answer],
        problem_of: Callable[[Answer], str],
        *,
        changes: bool = False,
    ) -> Answer | MachineInDoubt:
        transient: bool | None = None
        try:
            answer = call()
            problem = problem_of(answer)
        except StorageFailed as error:
            if changes and self._own_memory:  # that ends the agent, like the failure of its journal
                raise
            problem = str(error)
        except PluginError as error:
            problem, transient = error.reason, error.transient
        except Exception as error:  # any exception of a guest is the guest's fault
            problem = raised(error)
        else:
            if not problem:
                self._health.answered(what)
                return answer
        sentence = f"{what}: {one_line(problem)}"
        self._health.failed(what, sentence, now)
        return MachineInDoubt(sentence, transient)


FAILED = "the price strategy failed: "
"""Start of the sentence for refused callers."""


class GuardedStrategy:
    """A strategy whose impossible prices and exceptions become coded refusals; `health` records how its calls end."""

    def __init__(self, strategy: PricingStrategy, health: Health) -> None:
        self._strategy = strategy
        self._health = health

    def ask(self, question: PriceSlots, now: Instant) -> SlotsPriced:
        """Return a bid or a coded refusal for each slot; refuse during the pause after a failure."""
        return SlotsPriced(question.call_id, tuple(self._price(each, now) for each in question.questions))

    def _price(self, question: PriceQuestion, now: Instant) -> int | PriceRefusal:
        resting = self._health.resting("price", now)
        if resting:
            return PriceRefusal(RefusalCode.PLUGIN_FAILED, detail=FAILED + resting)
        try:
            priced = self._strategy(question)
            problem = price_problem(question, priced)
        except Exception as error:  # whatever a guest raises
            problem = raised(error)
        else:
            if not problem:
                self._health.answered("price")
                return priced
        sentence = one_line(problem)
        self._health.failed("price", sentence, now)
        return PriceRefusal(RefusalCode.PLUGIN_FAILED, detail=FAILED + sentence)
