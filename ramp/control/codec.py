"""Requests and events as lines of JSON and back, with one converter for both sides.

A line is an object whose `verb` (of a request) or `event` names the class in `VERBS` or `EVENTS`; the other keys are
the class's fields. Types are checked, not coerced, and an unknown key is an error. The first messages,
`Hello` and `Welcome`, exchange the version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, TypeVar

import cattrs

from ramp.control.events import EVENTS, Event
from ramp.control.requests import VERBS, Request, wire_name
from ramp.errors import ConfigurationError, ControlLineError, DocumentError
from ramp.rfql.xml.markup import escape_text
from ramp.runtime.model_json import exactly, strict_converter

VERSION: Final = 1
"""Version of the table."""

LINE_BYTES_MAX: Final = 16_000_000
"""Longest line that a client reads; an outcome of many rounds with many resources has some hundred kilobytes."""

REQUEST_BYTES_MAX: Final = 1_000_000
"""Longest request line; a document is at most a tenth of it."""

FINDINGS_SHOWN: Final = 3

Message = TypeVar("Message", bound="Request | Event")


def encode_request(request: Request) -> bytes:
    """Encode a request as a line; raises `ConfigurationError` if it is longer than an agent reads."""
    line = _encode("verb", request)
    if len(line) > REQUEST_BYTES_MAX:
        raise ConfigurationError(f"request too long: got {len(line)} bytes, expected at most {REQUEST_BYTES_MAX}")
    return line


def encode_event(event: Event) -> bytes:
    """Encode an event as a line."""
    return _encode("event", event)


def decode_request(line: bytes) -> Request:
    """Decode a request; raises `ControlLineError` that names the error."""
    return _decode(line, "verb", VERBS, _request_converter())


def decode_event(line: bytes) -> Event:
    """Decode an event; raises `ControlLineError` that names the error."""
    return _decode(line, "event", EVENTS, _converter())


def findings_of(error: Exception) -> str:
    """Return the findings of a converter in one line, with the paths of the fields."""
    if isinstance(error, cattrs.BaseValidationError):
        found = [each.replace("@ $", "at $") for each in cattrs.transform_error(error, format_exception=_finding)]
    else:
        found = [str(error)]
    more = f" (and {len(found) - FINDINGS_SHOWN} more)" if len(found) > FINDINGS_SHOWN else ""
    return "; ".join(found[:FINDINGS_SHOWN]) + more


def _finding(error: BaseException, kind: type | None) -> str:
    return str(error) if type(error) is ValueError else cattrs.v.format_exception(error, kind)


def _new_request_converter() -> cattrs.Converter:
    """Make a converter that accepts no character that neither a document nor a log can carry."""
    converter = strict_converter()
    exact = exactly(str, (str,))

    def structure(value: Any, target: Any) -> Any:
        try:
            escape_text(text := exact(value, target))
        except DocumentError as error:
            raise ValueError(error.reason) from error
        return text

    converter.register_structure_hook(str, structure)
    return converter


_converter = cache(strict_converter)  # made when first asked for, not while the program starts
_request_converter = cache(_new_request_converter)


def _encode(tag: str, message: Request | Event) -> bytes:
    plain = {tag: wire_name(type(message)), **_converter().unstructure(message)}
    return json.dumps(plain, separators=(",", ":")).encode() + b"\n"


def _decode(line: bytes, tag: str, table: Mapping[str, type[Message]], converter: cattrs.Converter) -> Message:
    try:
        plain = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ControlLineError("the line is not a JSON object") from error
    name = plain.pop(tag, None) if isinstance(plain, dict) else None
    kind = table.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ControlLineError(f"unknown {tag} {name!r:.80}: expected one of {', '.join(table)}")
    try:
        return converter.structure(plain, kind)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, cattrs.BaseValidationError) as error:
        raise ControlLineError(f"{tag} {name}: {findings_of(error)}") from error
