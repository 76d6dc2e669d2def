"""Alice, who changes what she has bought; what her agreements are meanwhile, and what she hears, is said by the test.

Two slots of 16 cores, from the first hour to the fifth, were bought at 60 credits: 16 * 4 * 60 = 3 840 credits each.
"""

from dataclasses import dataclass, replace
from typing import Any

from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement
from ramp.model.contents import NotUnderstood
from ramp.model.instant import HOUR
from ramp.model.offer import Offer
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.seal import Role
from ramp.protocol.conversations import Registry
from ramp.protocol.effects import Effect
from ramp.protocol.events import AgreementResized
from ramp.protocol.timing import Pace, Timing
from ramp.protocol.user.changing.desk import Changes
from simulation.market.actors import CountedIds
from simulation.market.virtual_notary import VirtualNotary
from tests.agreements import agreement_of

OFFER = Offer("o1", "r1", 1, "res1", 60, HOUR, 5 * HOUR, 16, 0.0, HOUR)
UNIT = RequestUnit(1, 70, 5 * HOUR, TotalCores(16), HOUR)
AGREEMENT = agreement_of(OFFER, UNIT, units_total=2)
OTHER = agreement_of(replace(OFFER, offer_id="o2", unit=2, resource="res2"), replace(UNIT, number=2), agreement_id="a2")


@dataclass
class Buyer:
    standing: str = "active"
    agreements: tuple[Agreement, ...] = (AGREEMENT, OTHER)

    def __post_init__(self) -> None:
        self.registry = Registry()
        agreements = {each.agreement_id: each for each in self.agreements}
        self.changes = Changes(agreements, lambda _: self.standing, Pace(Timing()), CountedIds("alice"), self.registry)

    def resize(self, now: int = 0, *, cores: int | None = 8, **wish: Any) -> list[Effect]:
        return self.changes.resize(AgreementResized("a1", cores, **wish), now)

    def hears(
        self, content: Any, now: int = 1, sender: str = "res1", role: Role = Role.RESOURCE, *, sealed: bool = True
    ) -> list[Effect]:
        message = Message(Performative.INFORM, sender, "alice", "r1", content)
        if sealed:
            message = VirtualNotary(sender, role).seal(message, now)
        return self.changes.handle(message, content, now)

    def is_not_understood(self, sender: str = "res1", reference: str = "a1#1", now: int = 2) -> list[Effect]:
        content = NotUnderstood("what?")
        message = Message(Performative.NOT_UNDERSTOOD, sender, "alice", "r1", content, in_reply_to=reference)
        return self.changes.not_understood(message, now)
