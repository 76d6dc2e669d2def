"""How to launch a job on a reservation: text to paste, for the launchers in use.

Slurm takes a reservation by `--reservation`, Grid Engine by `-ar`, OpenPBS makes a queue of its name, and PSI/J
(psij-python) maps `JobAttributes.reservation_id` to whichever is there. Its flux and rp executors ignore it.

On Blue Gene/L (M. Jette and others, "SLURM resource management for Blue Gene/L", 2004) Slurm selects the block, sets
`BGL_PARTITION_ID` and starts the job's script; the script starts the tasks by IBM's mpirun.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Final

from ramp.errors import ConfigurationError
from ramp.model.agreement import Agreement
from ramp.model.instant import SECOND, iso
from ramp.model.offer import Offer
from ramp.model.request import Nodes
from ramp.text import printable

ShortName = Callable[[str], str]
PROCESSORS_A_COMPUTE_NODE: Final = 2
"""Of Blue Gene/L: in virtual node mode each runs a task, in coprocessor mode one of them does."""

SIMULATED: Final = frozenset({"log", "synthetic"})
"""Sources of the queue of a simulated machine (`Offer.source`)."""


def snippet(style: str, agreement: Agreement, short: ShortName) -> str:
    """Return a launch snippet of a style (a key of `SNIPPETS`); raises `ConfigurationError` if it does not fit.

    The seller has chosen the reservation's id and the placement, and the buyer runs the snippet: each text is a
    `_comment`, a `_word` of a shell, or a literal of Python.
    """
    if agreement.offer.in_queue and style != "env":
        job = f"agreement {agreement.agreement_id} is job {agreement.reservation_id} of a queue, not a reservation"
        raise ConfigurationError(f"{job}; `ramp launch {agreement.agreement_id} -- command` runs in that job")
    return SNIPPETS[style](agreement, short(agreement.resource))


def _word(text: str) -> str:
    return shlex.quote(printable(text))


def _comment(text: str) -> str:
    return f"# {printable(text)}"


def clock_text(duration: int) -> str:
    """Return a duration as `HH:MM:SS`, rounded down because a job must end within its reservation."""
    minutes, seconds = divmod(duration // SECOND, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{seconds:02d}"


def _facts(agreement: Agreement) -> tuple[str, Offer, str]:
    offer = agreement.offer
    return agreement.reservation_id, offer, clock_text(offer.end - offer.start)


def _where(agreement: Agreement, resource: str) -> str:
    offer = agreement.offer
    placement = f": {offer.placement}" if offer.placement else ""
    line = _comment(f"on {resource}, from {iso(offer.start)} to {iso(offer.end)}{placement}")
    if offer.source in SIMULATED:
        line += "\n" + _comment(f"{resource} is simulated: it has no batch system,")
        line += "\n# so this is only an example"
    return line


def _nodes(agreement: Agreement) -> tuple[int, int] | None:
    cores = agreement.request.cores
    if not isinstance(cores, Nodes) or cores.count * cores.cores_per_node > agreement.offer.cores:
        return None  # also where the slot has shrunk since
    return cores.count, cores.cores_per_node


def _sbatch(agreement: Agreement, resource: str) -> str:
    reservation, offer, limit = _facts(agreement)
    nodes = _nodes(agreement)
    size = f"--ntasks={offer.cores}" if nodes is None else f"--nodes={nodes[0]} --ntasks-per-node={nodes[1]}"
    size += f" --gres={agreement.request.gres}" if agreement.request.gpus else ""
    return f"{_where(agreement, resource)}\nsbatch --reservation={_word(reservation)} {size} --time={limit} job.sh"


def _qsub(agreement: Agreement, resource: str) -> str:
    reservation, offer, limit = _facts(agreement)
    # Grid Engine ends a job with its slot, and takes none whose h_rt would end a second later. It runs jobs in the home
    # folder, and holds in error those whose folder is missing on the node: `-cwd` runs them where they are submitted.
    return (
        f"{_where(agreement, resource)}\n"
        f"qsub -cwd -ar {_word(reservation)} -pe mpi {offer.cores} job.sh     # Grid Engine\n"
        f"qsub -q {_word(reservation)} -l ncpus={offer.cores} -l walltime={limit} job.sh     # PBS"
    )


def _layout(agreement: Agreement) -> tuple[str, str, str]:
    """Return Python code that finds the nodes of a slot on Slurm, because PSI/J and Parsl need tasks per node."""
    reservation, offer, _ = _facts(agreement)
    nodes = _nodes(agreement)
    if nodes is not None:
        return "", str(nodes[0]), str(nodes[1])
    lines = (
        "import subprocess\n"
        f'shown = subprocess.check_output(["scontrol", "-o", "show", "reservation", {reservation!r}], text=True)\n'
        'nodes = int(shown.split(" NodeCnt=")[1].split()[0])\n'
    )
    return lines, "nodes", f"{offer.cores} // nodes"


def _psij(agreement: Agreement, resource: str) -> str:
    reservation, offer, _ = _facts(agreement)
    duration = (offer.end - offer.start) // SECOND
    lines, nodes, each = _layout(agreement)
    executor, size = "slurm", f"node_count={nodes}, processes_per_node={each}"
    if reservation.isdecimal():  # an advance reservation of Grid Engine, for the package ramp-psij-gridengine
        lines, executor, size = "", "gridengine", f"process_count={offer.cores}"
    gres = f', custom_attributes={{"slurm.gres": {agreement.request.gres!r}}}' if agreement.request.gpus else ""
    return (
        f"{_where(agreement, resource)}\n"
        "from datetime import timedelta\n"
        "from pathlib import Path\n"
        "from psij import Job, JobAttributes, JobExecutor, JobSpec, ResourceSpecV1\n"
        f"{lines}"
        "\n"
        f"attributes = JobAttributes(duration=timedelta(seconds={duration}), reservation_id={reservation!r}{gres})\n"
        f"resources = ResourceSpecV1({size})\n"
        "here = Path.cwd()\n"
        'spec = JobSpec(str(here / "job.sh"), directory=here, resources=resources, attributes=attributes)\n'
        f'JobExecutor.get_instance("{executor}").submit(Job(spec))'
    )


def _parsl(agreement: Agreement, resource: str) -> str:
    reservation, _, limit = _facts(agreement)
    lines, nodes, each = _layout(agreement)
    option = f"#SBATCH --reservation={_word(reservation)}"
    option += f"\n#SBATCH --gres={agreement.request.gres}" if agreement.request.gpus else ""
    return (
        f"{_where(agreement, resource)}\n"
        "from parsl.config import Config\n"
        "from parsl.executors import HighThroughputExecutor\n"
        "from parsl.launchers import SrunLauncher\n"
        "from parsl.providers import SlurmProvider\n"
        f"{lines}"
        "\n"
        "provider = SlurmProvider(\n"
        f"    scheduler_options={option!r}\n"
        f'    f"\\n#SBATCH --ntasks-per-node={{{each}}}",\n'
        f"    nodes_per_block={nodes},\n"
        f'    walltime="{limit}",\n'
        "    exclusive=False,\n"
        "    launcher=SrunLauncher(),\n"
        ")\n"
        'config = Config(executors=[HighThroughputExecutor(label="slot", provider=provider)])'
    )


def _mpirun(agreement: Agreement, resource: str) -> str:
    reservation, offer, limit = _facts(agreement)
    if not offer.placement:
        raise ConfigurationError(
            f"{reservation} is on {resource}, which assigns no partitions: mpirun is for Blue Gene/L "
            "(--as sbatch, qsub, psij and env are for any machine)",
            key="--as",
        )
    terms = agreement.request.torus
    virtual = terms is not None and terms.node_use == "virtual"
    tasks = offer.cores if virtual else max(offer.cores // PROCESSORS_A_COMPUTE_NODE, 1)
    return (
        "#!/bin/sh\n"
        f"{_where(agreement, resource)}\n"
        f"{_comment(f'sbatch --reservation={_word(reservation)} --time={limit} job.sh runs this script')}\n"
        "# where the reservation begins.\n"
        "# Slurm names the job's block in BGL_PARTITION_ID (from Slurm 1.0 on in MPIRUN_PARTITION).\n"
        f'mpirun -partition "${{BGL_PARTITION_ID:-$MPIRUN_PARTITION}}" -mode {"VN" if virtual else "CO"} -np {tasks} '
        '-cwd "$PWD" -exe "$PWD/program"'
    )


def _env(agreement: Agreement, resource: str) -> str:
    reservation, offer, limit = _facts(agreement)
    values = {
        "RAMP_RESOURCE": resource,
        "RAMP_RESERVATION": reservation,
        "RAMP_AGREEMENT": agreement.agreement_id,
        "RAMP_START": iso(offer.start),
        "RAMP_END": iso(offer.end),
        "RAMP_CORES": str(offer.cores),
        "RAMP_WALLTIME": limit,
    }
    return "\n".join(f"export {name}={_word(value)}" for name, value in values.items())


SNIPPETS: Final[dict[str, Callable[[Agreement, str], str]]] = {
    "sbatch": _sbatch,
    "qsub": _qsub,
    "psij": _psij,
    "parsl": _parsl,
    "mpirun": _mpirun,
    "env": _env,
}
"""Snippet writers by name."""
