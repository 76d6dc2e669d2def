"""Journal records as JSON text and back.

cattrs reads the types from the record classes themselves; wherever a field may hold one of several classes, the text
names the class, so that a journal stays readable by people and by later versions.
"""

from __future__ import annotations

import json
from typing import Any, get_args

import cattrs
from cattrs.strategies import configure_tagged_union

from ramp.errors import ConfigurationError
from ramp.model.agreement import Signable
from ramp.model.request import NodeDiskSpace, Nodes, TotalCores, TotalDiskSpace
from ramp.protocol.records import Record

_TAG = "type"
_KINDS = frozenset(each.__name__ for each in get_args(Record))


def _new_converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True)
    configure_tagged_union(TotalDiskSpace | NodeDiskSpace, converter, tag_name=_TAG)
    _optional_disk(converter)
    for union in (TotalCores | Nodes, Signable, Record):  # inner ones first: hooks are made when first asked for
        configure_tagged_union(union, converter, tag_name=_TAG)
    return converter


def _optional_disk(converter: cattrs.Converter) -> None:
    """`disk` is a union with None, which the tagged strategy does not take apart by itself."""
    disk = TotalDiskSpace | NodeDiskSpace
    optional = TotalDiskSpace | NodeDiskSpace | None

    def unstructure(value: Any) -> Any:
        return None if value is None else converter.unstructure(value, unstructure_as=disk)

    def structure(value: Any, _: Any) -> Any:
        return None if value is None else converter.structure(value, disk)  # type: ignore[arg-type]

    converter.register_unstructure_hook(optional, unstructure)
    converter.register_structure_hook(optional, structure)


_CONVERTER = _new_converter()


def record_to_json(record: Record) -> str:
    """Write a record as one line of JSON."""
    return json.dumps(_CONVERTER.unstructure(record, unstructure_as=Record), separators=(",", ":"), ensure_ascii=False)


def record_from_json(text: str) -> Record:
    """Read a record back.

    Raises:
        ConfigurationError: if the text is no record of this version; it shows nothing of it but the type.
    """
    try:
        plain = json.loads(text)
    except ValueError as error:
        raise ConfigurationError("this record is no JSON text") from error
    try:
        record: Record = _CONVERTER.structure(plain, Record)  # type: ignore[arg-type]
    except (ValueError, KeyError, TypeError, AttributeError, cattrs.BaseValidationError) as error:
        kind = plain.get(_TAG) if isinstance(plain, dict) else None
        named = f"this {kind}" if isinstance(kind, str) and kind in _KINDS else "this, of no known type,"
        raise ConfigurationError(f"{named} cannot be read as a record") from error
    return record


def to_plain(value: Any) -> Any:
    """Any value of the model or the protocol as plain JSON types, without type names; for reports."""
    return _PLAIN.unstructure(value)


_PLAIN = cattrs.Converter()
