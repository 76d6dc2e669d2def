"""The converter between values of the model and JSON types, for journal and control channel.

cattrs reads the types from the classes. A field of several possible classes names its class in the text, for readers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin

import cattrs
from cattrs.strategies import configure_tagged_union

from ramp.model.request import NodeDiskSpace, Nodes, TotalCores, TotalDiskSpace

TYPE_TAG: Final = "type"


def model_converter() -> cattrs.Converter:
    """Return a converter for values of the model: unions name the class; unknown keys are errors."""
    converter = cattrs.Converter(forbid_extra_keys=True)
    configure_tagged_union(TotalDiskSpace | NodeDiskSpace, converter, tag_name=TYPE_TAG)
    _optional_disk(converter)
    configure_tagged_union(TotalCores | Nodes, converter, tag_name=TYPE_TAG)
    return converter


def strict_converter() -> cattrs.Converter:
    """Return a converter of the model that accepts no text for a number and no number for a text."""
    converter = model_converter()
    for kind, accepted in ((int, (int,)), (float, (int, float)), (str, (str,)), (bool, (bool,))):
        converter.register_structure_hook(kind, exactly(kind, accepted))  # also for enumerations of that kind
    return converter


def exactly(kind: type, accepted: tuple[type, ...]) -> Callable[[Any, Any], Any]:
    """Return a hook that accepts values of some types only."""

    def structure(value: Any, target: Any) -> Any:
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
            raise ValueError(f"got {value!r:.80}, expected a value of type {kind.__name__}")
        return target(value)

    return structure


def name_classes(converter: cattrs.Converter) -> None:
    """Let every union name the class of a value in it; numbers, texts and None stay as they are."""

    def unstructured(value: Any) -> Any:
        plain = converter.unstructure(value)
        return {TYPE_TAG: type(value).__name__, **plain} if is_dataclass(value) else plain

    def structured(union: Any) -> Callable[[Any, Any], Any]:
        kinds = get_args(union)
        others = [kind for kind in kinds if not is_dataclass(kind) and kind is not NoneType]
        classes = {kind.__name__: kind for kind in kinds if kind is not NoneType and kind not in others}

        def structure(value: Any, _: Any) -> Any:
            if value is None and NoneType in kinds:
                return None
            if others and not (classes and isinstance(value, Mapping)):
                (kind,) = others
                return converter.structure(value, kind)
            fields = dict(value)
            return converter.structure(fields, classes[fields.pop(TYPE_TAG)])

        return structure

    converter.register_unstructure_hook_factory(_is_union, lambda _: unstructured)
    converter.register_structure_hook_factory(_is_union, structured)


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, UnionType)


def _optional_disk(converter: cattrs.Converter) -> None:
    """Convert the union of `disk` with None, which the tagged strategy does not support."""
    disk = TotalDiskSpace | NodeDiskSpace
    optional = TotalDiskSpace | NodeDiskSpace | None

    def unstructure(value: Any) -> Any:
        return None if value is None else converter.unstructure(value, unstructure_as=disk)

    def structure(value: Any, _: Any) -> Any:
        return None if value is None else converter.structure(value, disk)  # type: ignore[arg-type]

    converter.register_unstructure_hook(optional, unstructure)
    converter.register_structure_hook(optional, structure)
