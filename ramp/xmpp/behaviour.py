"""Behaviours that pass messages to an agent; the only module that imports SPADE, whose classes all others take from it.

It repairs SPADE 4.1.4 and slixmpp 1.12.0, the exact versions that `pyproject.toml` requires.
`tests/unit/xmpp/test_spade_patches.py` has one test for each repair; it fails when a newer version no longer needs it.

| repair | where | instead of |
|---|---|---|
| SPADE imported without its XMPP server and pages | `_import_spade` | 0.7 s and a scratch directory a process |
| SCRAM's key derivation by OpenSSL | `_derive_key` | 10 000 HMACs in Python, 22 ms an agent |
| no delivery inside the process, no uvloop | `ramp.xmpp.transport` | messages that no server sees |
| the running event loop | `ramp.xmpp.transport` | the loop of the first agent of the process |
| one TLS context for all agents of a process | `ramp.xmpp.stream` | 33 ms and 0.8 MB an agent |
| stanzas written as text | `ramp.xmpp.wire`, `ramp.xmpp.stream` | slixmpp's form objects, 0.27 ms a message |
| chat messages read off the XML element | `ramp.xmpp.stream` | slixmpp's stanza objects, 0.18 ms a message |
| no message traces, no task per message | `ramp.xmpp.transport` | 1 000 messages kept by each agent |
"""

from __future__ import annotations

import hashlib
import importlib
import sys
import types
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from slixmpp.util.sasl.mechanisms import SCRAM

from ramp.model.acl import EncodedMessage

_SERVER_MODULES = ("pyjabber", "pyjabber.server", "pyjabber.server_parameters")
_STAND_INS = (*_SERVER_MODULES, "aiohttp", "spade.web")


class _NotAvailable:
    """Replaces pyjabber's server and aiohttp's session in SPADE."""

    def __init__(self, *_: object, **__: object) -> None:
        raise RuntimeError("SPADE's own XMPP server and downloads are not available in RAMP's agents")


class _NoPages:
    """Replaces the web pages of a SPADE agent."""

    def __init__(self, agent: object) -> None:
        self.app = None

    def start(self, *_: object, **__: object) -> None:
        raise RuntimeError("SPADE's web pages are not available in RAMP's agents; use `ramp web`")


def _import_spade() -> None:
    """Import SPADE without the parts that RAMP's agents never use.

    SPADE's container imports pyjabber for `spade.run(embedded_xmpp_server=True)`. pyjabber imports SQLAlchemy and
    alembic and makes a scratch directory. SPADE's agents can serve web pages with jinja2 and aiohttp, and its
    behaviours can download files with aiohttp, which reads all certificates of the system on import. Stand-ins
    replace these modules during the import and are removed afterwards, so a later real import works. Modules that
    are already imported stay.
    """
    if "spade" in sys.modules or any(name in sys.modules for name in _SERVER_MODULES):
        importlib.import_module("spade")
        return
    stand_ins = {name: types.ModuleType(name) for name in _STAND_INS if name not in sys.modules}
    stand_ins["pyjabber.server"].__dict__["Server"] = _NotAvailable
    stand_ins["pyjabber.server_parameters"].__dict__["Parameters"] = _NotAvailable
    stand_ins["spade.web"].__dict__["WebApp"] = _NoPages
    if "aiohttp" in stand_ins:
        stand_ins["aiohttp"].__dict__.update(ClientSession=_NotAvailable, ClientError=OSError)
    sys.modules.update(stand_ins)
    try:
        importlib.import_module("spade")
    finally:
        for name in stand_ins:
            sys.modules.pop(name, None)


def _derive_key(self: Any, text: bytes, salt: bytes, iterations: int) -> bytes:
    """SCRAM's Hi() (RFC 5802, 2.2) is PBKDF2 with an output of one block."""
    return hashlib.pbkdf2_hmac(self.hash().name, bytes(text), bytes(salt), iterations)


SCRAM.Hi = _derive_key
_import_spade()

from spade.agent import Agent  # noqa: E402 (after the import without SPADE's own server)
from spade.behaviour import CyclicBehaviour  # noqa: E402

if TYPE_CHECKING:
    from ramp.xmpp.transport import MarketAgent

__all__ = ["Agent", "Courier", "CyclicBehaviour", "UnmatchedMessages", "behaviour"]

NO_CONDITIONS: Final[Mapping[str, str]] = MappingProxyType({})


class Courier(CyclicBehaviour):  # type: ignore[misc]
    """A behaviour that passes its messages to the agent's `on_message`.

    A subclass, which `behaviour` makes, states its performatives. Its name is the name of the behaviour.

    All couriers of an agent call the same `on_message`, one message at a time. If several couriers match a message, the
    courier added first gets it.

    Attributes:
        performatives: accepted values of the metadata field `performative`.
        conditions: required values of further metadata fields.
    """

    performatives: ClassVar[tuple[str, ...]] = ()
    conditions: ClassVar[Mapping[str, str]] = NO_CONDITIONS

    agent: MarketAgent

    def match(self, message: EncodedMessage) -> bool:
        """Return whether a message has a performative and the conditions of this courier."""
        metadata = message.metadata
        if metadata.get("performative") not in self.performatives:
            return False
        return all(metadata.get(name) == value for name, value in self.conditions.items())

    def kill(self, exit_code: object = None) -> None:
        # an empty item wakes `run` while it waits for a message
        super().kill(exit_code)
        if self.queue is not None:
            self.queue.put_nowait(None)

    async def run(self) -> None:
        message: EncodedMessage | None = await self.queue.get()
        if message is not None and not self.is_killed():
            await self.agent.carry(message)


def behaviour(name: str, *performatives: str, conditions: Mapping[str, str] = NO_CONDITIONS) -> type[Courier]:
    """Return a behaviour by its name, with the messages that it takes."""
    return type(name, (Courier,), {"performatives": performatives, "conditions": conditions})


class UnmatchedMessages(Courier):
    """The last behaviour of each agent, for messages that match no other."""

    def match(self, message: EncodedMessage) -> bool:
        return True
