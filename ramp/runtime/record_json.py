"""Journal records as JSON text and back."""

from __future__ import annotations

import json
from functools import cache
from typing import get_args

import cattrs

from ramp.errors import ConfigurationError
from ramp.protocol.records import Record
from ramp.runtime.model_json import TYPE_TAG, model_converter

_KINDS = frozenset(each.__name__ for each in get_args(Record))


# Created at the first use: that takes as long as many imports, and most processes read no record.
_converter = cache(model_converter)


def record_to_json(record: Record) -> str:
    """Write a record as one line of JSON."""
    return json.dumps(
        _converter().unstructure(record, unstructure_as=Record), separators=(",", ":"), ensure_ascii=False
    )


def record_from_json(text: str) -> Record:
    """Read a record.

    Raises:
        ConfigurationError: the text is no record of this version; the error quotes only its type.
    """
    try:
        plain = json.loads(text)
    except ValueError as error:
        raise ConfigurationError("this record is not JSON") from error
    try:
        record: Record = _converter().structure(plain, Record)  # type: ignore[arg-type]
    except (ValueError, KeyError, TypeError, AttributeError, cattrs.BaseValidationError) as error:
        kind = plain.get(TYPE_TAG) if isinstance(plain, dict) else None
        named = f"this {kind}" if isinstance(kind, str) and kind in _KINDS else "this, of no known type,"
        raise ConfigurationError(f"{named} cannot be read as a record") from error
    return record
