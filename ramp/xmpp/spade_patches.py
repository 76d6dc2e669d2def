"""The repairs of SPADE 4.1.4 and slixmpp 1.12.0, the exact versions that `pyproject.toml` requires.

`tests/unit/xmpp/test_spade_patches.py` has one test for each repair; it fails when a newer version no longer needs it.

| repair | where | instead of |
|---|---|---|
| SPADE imported without its XMPP server and pages | `import_spade` | 0.7 s and a scratch directory a process |
| SCRAM's key derivation by OpenSSL | `apply` | 10 000 HMACs in Python, 22 ms an agent |
| no delivery inside the process, no uvloop | `leave_container` | messages that no server sees |
| the running event loop | `adopt_loop` | the loop of the first agent of the process |
| one TLS context for all agents of a process | `ramp.xmpp.stream` | 33 ms and 0.8 MB an agent |
| stanzas written as text | `ramp.xmpp.wire`, `ramp.xmpp.stream` | slixmpp's form objects, 0.27 ms a message |
| chat messages read off the XML element | `ramp.xmpp.stream` | slixmpp's stanza objects, 0.18 ms a message |
| no message traces, no task per message | `ramp.xmpp.transport` | 1 000 messages kept by each agent |
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib
import sys
import types
from typing import Any

_SERVER_MODULES = ("pyjabber", "pyjabber.server", "pyjabber.server_parameters")
_STAND_INS = (*_SERVER_MODULES, "aiohttp", "spade.web")


def apply() -> None:
    """Apply the repairs of slixmpp to this process; further calls do nothing."""
    importlib.import_module("slixmpp.util.sasl.mechanisms").SCRAM.Hi = _derive_key


def _derive_key(self: Any, text: bytes, salt: bytes, iterations: int) -> bytes:
    """SCRAM's Hi() (RFC 5802, 2.2) is PBKDF2 with an output of one block."""
    return hashlib.pbkdf2_hmac(self.hash().name, bytes(text), bytes(salt), iterations)


def leave_container(agent: Any, policy: asyncio.AbstractEventLoopPolicy) -> None:
    """Remove a new agent from SPADE's container, which delivers messages inside the process.

    Args:
        agent: the agent.
        policy: event loop policy of the process, which the container has replaced by uvloop's.
    """
    asyncio.set_event_loop_policy(policy)
    agent.container.unregister(str(agent.jid))
    adopt_loop(agent)


def adopt_loop(agent: Any) -> None:
    """Let an agent use the running event loop, if any; SPADE's container keeps that of its first agent."""
    with contextlib.suppress(RuntimeError):
        agent.loop = agent.container.loop = asyncio.get_running_loop()
        asyncio.set_event_loop(agent.loop)


def import_spade() -> None:
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
