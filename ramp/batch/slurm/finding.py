"""Look up a Slurm cluster's default partition and static terms, so that a configuration need not state them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ramp.batch.commands import Question, Runner, ask
from ramp.batch.slurm.partition import ALL, Choice, listed_nodes
from ramp.errors import BatchSystemError, ConfigurationError

CONF_VARIABLE: Final = "SLURM_CONF"
USUAL_CONFS: Final = ("/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf", "/etc/slurm-llnl/slurm.conf")
"""Where Slurm's commands look by default: the usual place, "configless" clusters, older Debian."""

ARCHITECTURES: Final[Mapping[str, str]] = {
    "x86_64": "x86_64",
    "aarch64": "arm",
    "armv7l": "arm",
    "ppc64le": "powerpc",
    "ppc64": "powerpc",
    "ia64": "ia64",
    "i686": "x86",
}
"""The kernel's names of architectures, and JSDL 1.0's (section 5.2.1)."""

_NODE: Final = re.compile(r"\bArch=(\S+)")
_DEFAULT: Final = "*"


def found_conf(given: str) -> str:
    """Return the `slurm.conf` for the commands; empty if they find it by themselves.

    Args:
        given: value of the option.

    Raises:
        ConfigurationError: if there is no such file.
    """
    for source, path in (("conf", given), (CONF_VARIABLE, os.environ.get(CONF_VARIABLE, ""))):
        if path:
            if not Path(path).is_file():
                raise ConfigurationError(f"{path} is not a file", key=source)
            return path
    if not any(Path(path).exists() for path in USUAL_CONFS):
        raise ConfigurationError(
            f"no {USUAL_CONFS[0]}; set {CONF_VARIABLE} in the environment or the option conf to its path"
        )
    return ""


def cluster_variables(conf: str) -> dict[str, str]:
    """Return the variables for commands of the cluster of a `slurm.conf`, by default of the agent's environment."""
    conf = conf or os.environ.get(CONF_VARIABLE, "")
    return {CONF_VARIABLE: conf} if conf else {}


def default_partition(run: Runner) -> str:
    """Return the partition for jobs that name no partition.

    Raises:
        BatchSystemError: there is no default partition, or the cluster cannot be asked.
    """
    names = ask(Question(("sinfo", "-h", "-o", "%P"), str.split), run)
    found = next((name.removesuffix(_DEFAULT) for name in names if name.endswith(_DEFAULT)), "")
    if not found:
        raise BatchSystemError(f"no default partition: expected one of {', '.join(names) or 'none'}", transient=False)
    return found


def static_terms(run: Runner, partition: str, choice: Choice = ALL) -> dict[str, Any]:
    """Return the static terms of a partition's nodes for sale, as a table `[machines.NAME]` has them.

    Raises:
        BatchSystemError: the cluster cannot be asked, or the partition has no nodes for sale.
    """
    nodes = listed_nodes(partition, choice, run).nodes
    found: dict[str, Any] = {
        "cores": sum(node.cores for node in nodes),
        "cores_per_node": max(node.cores for node in nodes),
        "operating_system": "LINUX",
    }
    memories = [node.memory_mb // node.cores for node in nodes if node.memory_mb]
    if len(memories) == len(nodes) and min(memories) > 0:
        found["ram_per_core_mb"] = min(memories)
    models = {model for node in nodes for model, _ in node.gpus}
    if all(node.gpus for node in nodes) and len(models) == 1:  # others cannot be sold: a term is one of all nodes
        found["gpus_per_node"] = min(sum(count for _, count in node.gpus) for node in nodes)
        if model := models.pop():
            found["gpu_model"] = model
    shown = ask(Question(("scontrol", "-o", "show", "node", nodes[0].name), str), run)
    architecture = ARCHITECTURES.get((_NODE.search(shown) or ("", ""))[1])
    return found if architecture is None else {**found, "architecture": architecture}
