"""The directory of sellers, and descriptions of machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ramp.model.communicative_acts import Content, Interaction, Performative, said
from ramp.model.instant import Duration
from ramp.model.machine_terms import StaticNeeds
from ramp.model.seal import BY_DIRECTORY, BY_RESOURCE, Role
from ramp.model.slot import StaticTerms

RESOURCE_SERVICE: Final = "resource-trader"
"""Service type under which resources register with the directory; the original system's name."""

DRAINING_SERVICE: Final = "resource-draining"
"""Additional service type of a resource that keeps its sold reservations and sells nothing new."""

ROLE_OF_SERVICE: Final = {RESOURCE_SERVICE: Role.RESOURCE, DRAINING_SERVICE: Role.RESOURCE}
"""The market's services, and the roles that may offer them."""


@said(Performative.SUBSCRIBE, interaction=Interaction.SUBSCRIBE, by=BY_RESOURCE)
@dataclass(frozen=True, slots=True)
class Registration(Content):
    """SUBSCRIBE to the directory: this agent offers `service` for the next `lease`; repeated as a heartbeat.

    Attributes:
        service: one of the market's services.
        lease: how long without a heartbeat.
        number: higher than in every registration and withdrawal before, so that a captured one changes nothing.
        terms: of the machine, to avoid calls that it could never serve; may be empty.
    """

    service: str
    lease: Duration
    number: int
    terms: tuple[StaticTerms, ...] = ()


@said(Performative.INFORM, interaction=Interaction.SUBSCRIBE, by=BY_DIRECTORY)
@dataclass(frozen=True, slots=True)
class Registered(Content):
    """INFORM by the directory: the sender is listed; `number` is the highest known of that agent."""

    service: str
    number: int


@said(Performative.CANCEL, interaction=Interaction.SUBSCRIBE, by=BY_RESOURCE)
@dataclass(frozen=True, slots=True)
class Deregistration(Content):
    """CANCEL to the directory: this agent leaves; numbered as registrations are."""

    service: str
    number: int


@said(Performative.QUERY_REF, interaction=Interaction.QUERY)
@dataclass(frozen=True, slots=True)
class DirectoryQuery(Content):
    """QUERY_REF to the directory: which agents offer `service` now?

    Attributes:
        query_id: names the question.
        service: the service wanted.
        after: the last name of the page before.
        needs: only agents that could serve some of them are wanted; empty for all.
    """

    query_id: str
    service: str
    after: str = ""
    needs: tuple[StaticNeeds, ...] = ()


@dataclass(frozen=True, slots=True)
class UnfitAgent:
    """An agent that could serve none of the needs, with its stated terms."""

    name: str
    terms: tuple[StaticTerms, ...]


@said(Performative.INFORM, interaction=Interaction.QUERY, by=BY_DIRECTORY)
@dataclass(frozen=True, slots=True)
class DirectoryListing(Content):
    """INFORM by the directory: a page of names in alphabetical order.

    Attributes:
        query_id: names the question.
        service: as asked.
        names: of agents that offer it and could serve some of the needs.
        more: whether others follow.
        unfit: on the first page, agents that could serve none of the needs; only as many as fit there.
    """

    query_id: str
    service: str
    names: tuple[str, ...]
    more: bool = False
    unfit: tuple[UnfitAgent, ...] = ()


@said(Performative.QUERY_REF, interaction=Interaction.QUERY)
@dataclass(frozen=True, slots=True)
class MachineQuery(Content):
    """QUERY_REF to a resource for the machine's state; `horizon` is the span of the projected load."""

    query_id: str
    horizon: Duration


@said(Performative.INFORM, interaction=Interaction.QUERY)
@dataclass(frozen=True, slots=True)
class MachineStatus(Content):
    """INFORM by a resource: its plug-in's snapshot as a JSON object in text."""

    query_id: str
    snapshot: str
