"""Machines by the name or path of their file, as the command line and experiments name them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ramp.errors import ConfigurationError
from ramp.options import path_of, read_options, wrong_options
from ramp.shipped_files import shipped_directory
from simulation.machines.description import BuildOptions, build_machine
from simulation.machines.flat import FlatMachine
from simulation.machines.interface import Machine
from simulation.machines.kinds.multicluster import MulticlusterDescription, check

FLAT_PREFIX = "flat:"
"""`flat:N` names a flat machine of N processors without a file."""
FLAT_PROCESSORS_MAX = 10**9
"""A hundred times the cores of the largest machine there has been; more is a slip of the pen."""
MULTICLUSTER = "multicluster"
"""The kind of machine whose file lists clusters."""
_SHOWN_MAX = 40


def machine_directory() -> Path:
    """Directory of the machines that come with the project."""
    return shipped_directory("agents_config/machines")


def machine_names() -> list[str]:
    """Names of the machines that come with the project."""
    return sorted(path.stem for path in machine_directory().glob("*.toml"))


def machine_path(name: str) -> Path:
    """The file of a machine that is no flat one, whether or not it is there."""
    path = Path(name)
    return path if path.suffix == ".toml" or "/" in name else machine_directory() / f"{name}.toml"


def load_machine(
    name: str | Path, *, allocator: str | None = None, allocator_options: Mapping[str, Any] | None = None
) -> Machine:
    """Make a machine.

    Args:
        name: `flat:N`, the name of a machine that comes with the project (`bgl`), or the path of a TOML file.
        allocator: overrules the file's.
        allocator_options: of the allocator, one by one in place of the file's.

    Raises:
        ConfigurationError: there is no such machine, or its file is wrong.
    """
    text = str(name)
    if text.startswith(FLAT_PREFIX):
        processors = text.removeprefix(FLAT_PREFIX)
        digits = processors.lstrip("0")
        if not processors.isascii() or not processors.isdigit() or not digits:
            raise ConfigurationError(f"{text!r}: flat: wants a number of processors, as in flat:512", key="machine")
        if len(digits) > len(str(FLAT_PROCESSORS_MAX)) or int(digits) > FLAT_PROCESSORS_MAX:
            shown = text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
            raise ConfigurationError(
                f"{shown!r}: a flat machine has at most {FLAT_PROCESSORS_MAX} processors", key="machine"
            )
        if allocator is not None or allocator_options:
            raise ConfigurationError("a flat machine has no allocator to choose", key="allocator")
        return FlatMachine(int(processors))
    path, description, written = _read(text)
    options = BuildOptions(allocator, allocator_options or {}, lambda file: _text(path.parent / file))
    return build_machine(description, source=path.name, text=written, options=options)


def load_multicluster(name: str | Path) -> MulticlusterDescription:
    """What the file of a multicluster says of its clusters.

    Args:
        name: of one that comes with the project (`das3`), or the path of a TOML file.

    Raises:
        ConfigurationError: there is no such file, it is of another kind of machine, or it is wrong.
    """
    if str(name).startswith(FLAT_PREFIX):
        raise ConfigurationError(f"got {str(name)!r}, expected a machine of clusters, such as das3", key="machine")
    path, description, written = _read(str(name))
    kind = description.pop("kind", None)
    if kind != MULTICLUSTER:
        raise ConfigurationError(f"got the kind '{kind}', expected '{MULTICLUSTER}'", path=path, key="kind")
    read = read_options(description, MulticlusterDescription, source=path.name, text=written)
    try:
        check(read)
    except ConfigurationError as error:
        raise wrong_options([(path_of(error.key or ""), error.reason)], source=path.name, text=written) from error
    return read


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(str(error), path=path) from error


def _read(text: str) -> tuple[Path, dict[str, Any], str]:
    path = machine_path(text)
    if not path.is_file() and path.parent == machine_directory():
        known = ", ".join(machine_names())
        raise ConfigurationError(
            f"unknown machine {text!r}: expected one of {known}, flat:N, or the path of a .toml file", key="machine"
        )
    try:
        written = path.read_text(encoding="utf-8")
        return path, tomllib.loads(written), written
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(str(error), path=path) from error
