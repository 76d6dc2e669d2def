"""Requests as Slurm's srun and sbatch options for Blue Gene.

`--geometry`/`-g`, `--no-rotate`/`-R`, `--conn-type`, `--node-use`, `--nodes`/`-N`, and the environment variables that
stand for the first three. Option names and values as in Slurm 1.0 to 2.x.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from getopt import GetoptError, getopt
from math import prod

from ramp.errors import ConfigurationError
from simulation.machines.interface import Connection, JobRequest

DEFAULT_CNODES = 512
"""Compute nodes of a Blue Gene midplane."""

_SUFFIXES = {"": 1, "k": 1024, "m": 1024 * 1024}
_NODES = re.compile(r"(\d+)([km]?)(?:-(\d+)([km]?))?", re.IGNORECASE)
_GEOMETRY = re.compile(r"\d+(?:[xX,]\d+)*")
_LETTERS = {"M": Connection.MESH, "T": Connection.TORUS, "N": Connection.NAV}


class NodeUse(enum.StrEnum):
    """Use of a compute node's second processor: communication, or a task of its own."""

    COPROCESSOR = "coprocessor"
    VIRTUAL = "virtual"


@dataclass(frozen=True, slots=True)
class SlurmOptions:
    """The options of one job.

    Attributes:
        cnodes: compute nodes (--nodes), or None.
        geometry: extents in midplanes, or None.
        rotate: False with --no-rotate.
        connection: one value for all dimensions, or one a dimension (TTM); NAV by default, as in Slurm.
        node_use: use of the second processor.
    """

    cnodes: int | None = None
    geometry: tuple[int, ...] | None = None
    rotate: bool = True
    connection: Connection | tuple[Connection, ...] = Connection.NAV
    node_use: NodeUse = NodeUse.COPROCESSOR

    def request(self, job_id: int, *, cnodes_per_midplane: int = DEFAULT_CNODES) -> JobRequest:
        """Return the request to a machine whose units are midplanes.

        Args:
            job_id: of the job.
            cnodes_per_midplane: compute nodes of a midplane; --nodes is rounded up to whole midplanes.

        Raises:
            ConfigurationError: neither a geometry nor a number of nodes is given, or the nodes exceed the geometry.
        """
        midplanes = None if self.cnodes is None else -(-self.cnodes // cnodes_per_midplane)
        if self.geometry is not None:
            size = prod(self.geometry)
            if midplanes is not None and midplanes > size:
                raise ConfigurationError(
                    f"{self.cnodes} nodes need {midplanes} midplanes, but the geometry has {size}", key="--nodes"
                )
            return JobRequest(job_id, size, self.geometry, self.rotate, self.connection)
        if midplanes is None:
            raise ConfigurationError("missing size; give --geometry or --nodes", key="--geometry")
        return JobRequest(job_id, midplanes, None, self.rotate, self.connection)


def parse_options(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> SlurmOptions:
    """Read a job's options from the command line; the environment supplies missing ones.

    Args:
        arguments: words such as `--geometry=2x2x4`, `-g 2x2x4`, `-R`.
        environment: SLURM_GEOMETRY, SLURM_CONN_TYPE, SLURM_NO_ROTATE are read.

    Raises:
        ConfigurationError: an unknown option or an invalid value.
    """
    try:
        words, rest = getopt(list(arguments), "g:RN:", _LONG_OPTIONS)
    except GetoptError as error:
        raise ConfigurationError(f"{error.msg}; expected one of {_EXPECTED}") from error
    if rest:
        raise ConfigurationError(f"unknown option {rest[0]!r}; expected one of {_EXPECTED}")
    given = {_ALIASES.get(name, name): value for name, value in words}
    for variable, name in (
        ("SLURM_GEOMETRY", "--geometry"),
        ("SLURM_CONN_TYPE", "--conn-type"),
        ("SLURM_NO_ROTATE", "--no-rotate"),
    ):
        if environment is not None and variable in environment:
            given.setdefault(name, environment[variable])
    options = SlurmOptions(
        cnodes=_parse_nodes(given["--nodes"]) if "--nodes" in given else None,
        geometry=parse_geometry(given["--geometry"]) if "--geometry" in given else None,
        rotate="--no-rotate" not in given,
        connection=parse_connection(given.get("--conn-type", "NAV")),
        node_use=_parse_node_use(given.get("--node-use", "COPROCESSOR")),
    )
    if isinstance(options.connection, tuple):
        dimensions = len(options.geometry) if options.geometry is not None else None
        if dimensions is not None and dimensions != len(options.connection):
            raise ConfigurationError(
                f"got {len(options.connection)} connections, expected {dimensions}, one for each extent",
                key="--conn-type",
            )
    return options


def parse_geometry(text: str) -> tuple[int, ...]:
    """Parse extents in midplanes: `2x2x4` (also `2,2,4`, as in old srun).

    Raises:
        ConfigurationError: the text is not a list of positive numbers.
    """
    if _GEOMETRY.fullmatch(text) is None or 0 in (extents := tuple(map(int, re.split("[xX,]", text)))):
        raise ConfigurationError(
            f"invalid geometry {text!r}; expected extents in midplanes, as in 2x2x4", key="--geometry"
        )
    return extents


def parse_connection(text: str) -> Connection | tuple[Connection, ...]:
    """Parse MESH, TORUS or NAV in any case, or one letter for each dimension as on Blue Gene/Q (TTM).

    Raises:
        ConfigurationError: the text has another form.
    """
    try:
        return Connection(text.lower())
    except ValueError:
        letters = text.upper()
        if letters and not letters.strip("MTN"):
            several = tuple(_LETTERS[letter] for letter in letters)
            return several[0] if len(several) == 1 else several
        raise ConfigurationError(
            f"got {text!r}, expected MESH, TORUS, NAV or one letter M, T, N for each dimension", key="--conn-type"
        ) from None


def _parse_nodes(text: str) -> int:
    """Return the least number of compute nodes of `MIN` or `MIN-MAX`, with k and m for 1024 and 1024 squared."""
    match = _NODES.fullmatch(text)
    count = int(match.group(1)) * _SUFFIXES[match.group(2).lower()] if match is not None else 0
    if match is None or count < 1:
        raise ConfigurationError(
            f"invalid number of nodes {text!r}; expected for example 512, 2k or 512-2k", key="--nodes"
        )
    if match.group(3) is not None and int(match.group(3)) * _SUFFIXES[match.group(4).lower()] < count:
        raise ConfigurationError(f"the maximum is below the minimum in {text!r}", key="--nodes")
    return count


def _parse_node_use(text: str) -> NodeUse:
    try:
        return NodeUse(text.lower())
    except ValueError:
        raise ConfigurationError(f"must be VIRTUAL or COPROCESSOR, got {text!r}", key="--node-use") from None


_ALIASES = {"-g": "--geometry", "-R": "--no-rotate", "-N": "--nodes", "--comm-type": "--conn-type"}
_LONG_OPTIONS = ["geometry=", "no-rotate", "conn-type=", "comm-type=", "node-use=", "nodes="]
_EXPECTED = "--conn-type, --geometry, --no-rotate, --node-use, --nodes"
