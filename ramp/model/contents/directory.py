"""Who sells, and what a machine says of itself."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.communicative_acts import Interaction, Performative, said
from ramp.model.instant import Duration
from ramp.model.seal import BY_DIRECTORY, BY_RESOURCE


@said(Performative.SUBSCRIBE, interaction=Interaction.SUBSCRIBE, by=BY_RESOURCE)
@dataclass(frozen=True, slots=True)
class Registration:
    """SUBSCRIBE to the directory: this agent offers `service` for the next `lease`; repeated as a heartbeat.

    Attributes:
        service: one of the market's services.
        lease: how long without a heartbeat.
        number: higher than in every registration and withdrawal before, so that a captured one changes nothing.
    """

    service: str
    lease: Duration
    number: int


@said(Performative.INFORM, interaction=Interaction.SUBSCRIBE, by=BY_DIRECTORY)
@dataclass(frozen=True, slots=True)
class Registered:
    """INFORM by the directory: whoever asks is listed; `number` is the highest that it knows of that agent."""

    service: str
    number: int


@said(Performative.CANCEL, interaction=Interaction.SUBSCRIBE, by=BY_RESOURCE)
@dataclass(frozen=True, slots=True)
class Deregistration:
    """CANCEL to the directory: this agent leaves; numbered as registrations are."""

    service: str
    number: int


@said(Performative.QUERY_REF, interaction=Interaction.QUERY)
@dataclass(frozen=True, slots=True)
class DirectoryQuery:
    """QUERY_REF to the directory: who offers `service` now? `after` is the last name of the page before."""

    query_id: str
    service: str
    after: str = ""


@said(Performative.INFORM, interaction=Interaction.QUERY, by=BY_DIRECTORY)
@dataclass(frozen=True, slots=True)
class DirectoryListing:
    """INFORM by the directory: a page of names in alphabetical order; `more` says that others follow."""

    query_id: str
    service: str
    names: tuple[str, ...]
    more: bool = False


@said(Performative.QUERY_REF, interaction=Interaction.QUERY)
@dataclass(frozen=True, slots=True)
class MachineQuery:
    """QUERY_REF to a resource: how is the machine? `horizon` is how far ahead the projected load is wanted."""

    query_id: str
    horizon: Duration


@said(Performative.INFORM, interaction=Interaction.QUERY)
@dataclass(frozen=True, slots=True)
class MachineStatus:
    """INFORM by a resource: its plug-in's snapshot as a JSON object in text."""

    query_id: str
    snapshot: str
