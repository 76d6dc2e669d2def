"""The converter between values of the model and JSON types, for journal and control channel.

cattrs reads the types from the classes. A field of several possible classes names its class in the text, for readers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin

import cattrs

TYPE_TAG: Final = "type"


def model_converter() -> cattrs.Converter:
    """Return a converter for values of the model: unions name the class; unknown keys are errors."""
    converter = cattrs.Converter(forbid_extra_keys=True)

    def unstructured(value: Any) -> Any:
        plain = converter.unstructure(value)
        return {**plain, TYPE_TAG: type(value).__name__} if is_dataclass(value) else plain

    converter.register_unstructure_hook_factory(_is_mixed, lambda _: unstructured)
    converter.register_structure_hook_factory(_is_mixed, lambda union: _structured(union, converter))
    return converter


def _is_mixed(kind: Any) -> bool:
    """Return whether a type is a union of several classes, or of a class and numbers or texts."""
    if get_origin(kind) not in (Union, UnionType):
        return False
    kinds = [each for each in get_args(kind) if each is not NoneType]
    return len(kinds) > 1 and any(map(is_dataclass, kinds))


def _structured(union: Any, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    kinds = get_args(union)
    others = [kind for kind in kinds if not is_dataclass(kind) and kind is not NoneType]
    classes = {kind.__name__: kind for kind in kinds if kind is not NoneType and kind not in others}

    def structure(value: Any, _: Any) -> Any:
        if value is None and NoneType in kinds:
            return None
        if others and not isinstance(value, Mapping):
            (kind,) = others
            return converter.structure(value, kind)
        fields = dict(value)
        return converter.structure(fields, classes[fields.pop(TYPE_TAG)])

    return structure


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
