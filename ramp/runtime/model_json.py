"""The converter between values of the model and JSON types, for journal and control channel.

cattrs reads the types from the classes. A field of several possible classes names its class in the text, for readers.
"""

from __future__ import annotations

from typing import Any, Final

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
