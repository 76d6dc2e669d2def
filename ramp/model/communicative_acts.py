"""The communicative acts of the market: each content declares its performatives, roles and interaction with `said`.

Sources: FIPA SC00037 (communicative acts), SC00030, SC00026, SC00027 and SC00035 (interaction protocols); the market's
use of them is the paper's section 5.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeVar

from ramp.model.seal import Role

_Declared = TypeVar("_Declared", bound=type)


class Content:
    """Base of the contents of all messages."""

    __slots__ = ()


class Performative(StrEnum):
    """The communicative acts that the market uses."""

    CFP = "cfp"
    PROPOSE = "propose"
    REFUSE = "refuse"
    REJECT_PROPOSAL = "reject-proposal"
    ACCEPT_PROPOSAL = "accept-proposal"
    AGREE = "agree"
    CONFIRM = "confirm"
    CANCEL = "cancel"
    REQUEST = "request"
    INFORM = "inform"
    FAILURE = "failure"
    QUERY_REF = "query-ref"
    SUBSCRIBE = "subscribe"
    NOT_UNDERSTOOD = "not-understood"


class Interaction(StrEnum):
    """FIPA interaction protocols, slot `protocol` of a message's metadata; for information only."""

    CONTRACT_NET = "fipa-iterated-contract-net"
    REQUEST = "fipa-request"
    QUERY = "fipa-query"
    SUBSCRIBE = "fipa-subscribe"
    ANY = ""


@dataclass(frozen=True, slots=True)
class Said:
    """The declaration of a content.

    Attributes:
        performatives: the communicative acts that may carry it; others are answered with NOT_UNDERSTOOD.
        interaction: the interaction protocol that it belongs to.
        by: roles that may send it under a seal; a right key in the wrong role is refused. Empty: any sender, without a
            seal.
        is_offer: sealed only if the market wants signed offers; canonical names prevent forged ones.
        any_age: its seal may be of any age by the reader's clock.
    """

    performatives: tuple[Performative, ...]
    interaction: Interaction
    by: frozenset[Role]
    is_offer: bool
    any_age: bool


_SAID: Final[dict[type, Said]] = {}
DECLARED: Final[Mapping[type, Said]] = MappingProxyType(_SAID)
"""All declared contents, in the order of their declaration."""


def said(
    *performatives: Performative,
    interaction: Interaction,
    by: frozenset[Role] = frozenset(),
    is_offer: bool = False,
    any_age: bool = False,
) -> Callable[[_Declared], _Declared]:
    """Declare a content; for the arguments see `Said`."""

    def declare(content: _Declared) -> _Declared:
        _SAID[content] = Said(performatives, interaction, by, is_offer, any_age)
        return content

    return declare
