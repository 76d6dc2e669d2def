"""A plug-in or a price strategy as the host asks it: a guest whose answers are checked.

An exception or an impossible answer of a guest is reported once and becomes an answer that the protocol knows. A quote
or price is refused with a code. A hold, confirmation or release is in doubt, because its effect is unknown; the party
asks about it again. For a while after a failure the guest is asked for no further offers.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from ramp.errors import PluginError, StorageFailed
from ramp.model.instant import Instant
from ramp.plugins.interface import ResourcePlugin
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.events import MachineInDoubt
from ramp.protocol.pricing import PricingStrategy
from ramp.runtime.guests.health import Health
from ramp.runtime.guests.questions import ROW_OF, raised
from ramp.text import one_line

Asking = TypeVar("Asking", bound=fx.AskMachine | fx.PriceSlots)


class GuardedGuest(Generic[Asking]):
    """A guest whose impossible answers and exceptions become refusals or doubts; only `StorageFailed` passes.

    Args:
        guest: the plug-in or price strategy.
        health: records how its calls end.
        own_memory: whether the plug-in's book of reservations is the agent's own memory, without which it must end.
    """

    def __init__(self, guest: ResourcePlugin | PricingStrategy, health: Health, *, own_memory: bool = True) -> None:
        self.guest = guest
        self._health = health
        self._own_memory = own_memory

    def ask(self, question: Asking, now: Instant) -> ev.Answer:
        """Return the guest's answer to a party's question; during a pause it answers only about promised slots.

        Raises:
            StorageFailed: the agent's own book of reservations cannot be written.
        """
        row, health, values = ROW_OF[type(question)], self._health, []
        for part in row.parts(question):
            # for every part, because the one before may have failed
            if row.impatient and not health.is_well and (resting := health.resting(row.call, now)):
                values.append(row.failed(part, MachineInDoubt(resting), False))
                continue
            problem: str | None
            transient: bool | None = None
            try:
                value = getattr(self.guest, row.call)(part, now) if row.ask is None else row.ask(self.guest, part, now)
                problem = row.problem(part, value) or None
            except StorageFailed as error:
                if row.changes and self._own_memory:  # that ends the agent, like the failure of its journal
                    raise
                problem = str(error)
            except PluginError as error:
                problem, transient = error.reason, error.transient
            except Exception as error:  # any exception of a guest is the guest's fault
                problem = raised(error)
            if problem is not None:
                sentence = f"{row.call}: {one_line(problem)}"
                health.failed(row.call, sentence, now)
                value = row.failed(part, MachineInDoubt(sentence, transient), True)
            elif not health.is_well:
                health.answered(row.call)
            values.append(value)
        answer: ev.Answer = row.answered(question, tuple(values))
        return answer


GuardedPlugin = GuardedGuest[fx.AskMachine]
GuardedStrategy = GuardedGuest[fx.PriceSlots]
