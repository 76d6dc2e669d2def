"""Speed-ups of SPADE 4.1.4 and slixmpp 1.12.0, applied only to these exact versions.

They cut the processor time of a 2 kB message to between a tenth and a quarter, and that of an agent's start from 64 ms
to 6 ms. The bytes on the connection stay the same. With other versions installed, `apply` changes nothing and logs a
warning; the transport then works without the speed-ups. The tests cover both.

| speed-up | where | instead of |
|---|---|---|
| SCRAM's key derivation by OpenSSL | `apply` here | 10 000 HMACs in Python, 22 ms an agent |
| escaping by `str.replace` | `apply` here | a generator over every character |
| one TLS context for all agents of a process | `ramp.xmpp.stream` | 33 ms and 0.8 MB an agent |
| stanzas written as text | `ramp.xmpp.wire`, `ramp.xmpp.stream` | slixmpp's form objects, 0.27 ms a message |
| chat messages read off the XML element | `ramp.xmpp.stream` | slixmpp's stanza objects, 0.18 ms a message |
| no message traces, no task per message | `ramp.xmpp.transport` | 1 000 messages kept by each agent |
| SPADE imported without its XMPP server and pages | `import_spade` here | 0.7 s and a scratch directory a process |
"""

from __future__ import annotations

import hashlib
import importlib
import logging
import sys
import types
from importlib import metadata
from typing import Any
from xml.sax.saxutils import escape as sax_escape

EXPECTED_VERSIONS = {"spade": "4.1.4", "slixmpp-multiplatform": "1.12.0"}
"""The versions whose internals these speed-ups rely on."""

_log = logging.getLogger(__name__)
_QUOTES = {'"': "&quot;", "'": "&apos;"}
_SERVER_MODULES = ("pyjabber", "pyjabber.server", "pyjabber.server_parameters")
_STAND_INS = (*_SERVER_MODULES, "aiohttp", "spade.web")


def versions_match() -> bool:
    """Return whether exactly the expected versions of SPADE and slixmpp are installed."""
    return not _differing_versions()


def _differing_versions() -> list[str]:
    found = []
    for name, expected in EXPECTED_VERSIONS.items():
        try:
            installed = metadata.version(name)
        except metadata.PackageNotFoundError:
            installed = "not installed"
        if installed != expected:
            found.append(f"{name} {installed} (expected {expected})")
    return found


def apply() -> bool:
    """Apply the process-wide speed-ups; further calls do nothing.

    Returns:
        True if they are applied, False if the installed versions differ and nothing was changed.
    """
    differing = _differing_versions()
    if differing:
        _log.warning("speed-ups of SPADE are off: %s", ", ".join(differing))
        return False
    # the package exports a function with the module's name and hides the module
    tostring = importlib.import_module("slixmpp.xmlstream.tostring")
    mechanisms = importlib.import_module("slixmpp.util.sasl.mechanisms")
    if getattr(mechanisms.SCRAM.Hi, "__module__", "") != __name__:
        mechanisms.SCRAM.Hi = _derive_key
        tostring.escape = _escaper(tostring.escape)  # type: ignore[attr-defined]
    return True


def _derive_key(self: Any, text: bytes, salt: bytes, iterations: int) -> bytes:
    """SCRAM's Hi() (RFC 5802, 2.2) is PBKDF2 with an output of one block."""
    return hashlib.pbkdf2_hmac(self.hash().name, bytes(text), bytes(salt), iterations)


def _escaper(original: Any) -> Any:
    def escape(text: str, use_cdata: bool = False) -> str:
        return str(original(text, use_cdata)) if use_cdata else sax_escape(text, _QUOTES)

    return escape


def import_spade() -> None:
    """Import SPADE without the parts that RAMP's agents never use.

    SPADE's container imports pyjabber for `spade.run(embedded_xmpp_server=True)`. pyjabber imports SQLAlchemy and
    alembic and makes a scratch directory. SPADE's agents can serve web pages with jinja2 and aiohttp, and its
    behaviours can download files with aiohttp, which reads all certificates of the system on import. Stand-ins
    replace these modules during the import and are removed afterwards, so a later real import works. Modules that
    are already imported stay.
    """
    if "spade" in sys.modules or any(name in sys.modules for name in _SERVER_MODULES) or not versions_match():
        importlib.import_module("spade")
        return
    stand_ins = {name: types.ModuleType(name) for name in _STAND_INS if name not in sys.modules}
    stand_ins["pyjabber.server"].__dict__["Server"] = _NoServer
    stand_ins["pyjabber.server_parameters"].__dict__["Parameters"] = _NoServer
    stand_ins["spade.web"].__dict__["WebApp"] = _NoPages
    if "aiohttp" in stand_ins:
        stand_ins["aiohttp"].__dict__.update(ClientSession=_NoDownload, ClientError=OSError)
    sys.modules.update(stand_ins)
    try:
        importlib.import_module("spade")
    finally:
        for name in stand_ins:
            sys.modules.pop(name, None)


class _NoServer:
    """Replaces pyjabber's server class in SPADE."""

    def __init__(self, *_: object, **__: object) -> None:
        raise RuntimeError("SPADE's own XMPP server is not available in RAMP; use ramp.servers.embedded")


class _NoDownload:
    """Replaces aiohttp's session in SPADE's behaviours."""

    def __init__(self, *_: object, **__: object) -> None:
        raise RuntimeError("SPADE's downloads are not available in RAMP's agents")


class _NoPages:
    """Replaces the web pages of a SPADE agent, which asks at its end whether they are served."""

    def __init__(self, agent: object) -> None:
        self.app = None

    def is_started(self) -> bool:
        return False

    def start(self, *_: object, **__: object) -> None:
        raise RuntimeError("SPADE's web pages are not available in RAMP's agents; use `ramp web`")
