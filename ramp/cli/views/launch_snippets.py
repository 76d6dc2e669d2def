"""How to launch a job on a reservation: text to paste, for the launchers in use.

Slurm takes a reservation by `--reservation`, Grid Engine by `-ar`, OpenPBS makes a queue of its name, and PSI/J
(psij-python) maps `JobAttributes.reservation_id` to whichever is there. Its flux and rp executors ignore it.

On Blue Gene/L (M. Jette and others, "SLURM resource management for Blue Gene/L", 2004) Slurm selects the block, sets
`BGL_PARTITION_ID` and starts the job's script; the script starts the tasks by IBM's mpirun.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ramp.errors import ConfigurationError
from ramp.model.agreement import Agreement
from ramp.model.instant import SECOND, iso
from ramp.model.offer import Offer
from ramp.model.request import Nodes

ShortName = Callable[[str], str]
PROCESSORS_A_COMPUTE_NODE: Final = 2
"""Of Blue Gene/L: in virtual node mode each runs a task, in coprocessor mode one of them does."""


def snippet(style: str, agreement: Agreement, short: ShortName) -> str:
    """The snippet of a style.

    Args:
        style: a key of `SNIPPETS`.
        agreement: what was bought.
        short: makes agents' names short.

    Raises:
        ConfigurationError: the style is for another kind of machine.
    """
    return SNIPPETS[style](agreement, short(agreement.resource))


def clock_text(duration: int) -> str:
    """A duration as batch systems want it: `HH:MM:SS`, rounded down, for a job must end within its reservation."""
    minutes, seconds = divmod(duration // SECOND, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{seconds:02d}"


def _facts(agreement: Agreement) -> tuple[str, Offer, str]:
    offer = agreement.offer
    return agreement.reservation_id, offer, clock_text(offer.end - offer.start)


def _nodes(agreement: Agreement) -> tuple[int, int] | None:
    cores = agreement.request.cores
    return (cores.count, cores.cores_per_node) if isinstance(cores, Nodes) else None


def _sbatch(agreement: Agreement, resource: str) -> str:
    reservation, offer, limit = _facts(agreement)
    nodes = _nodes(agreement)
    size = f"--ntasks={offer.cores}" if nodes is None else f"--nodes={nodes[0]} --ntasks-per-node={nodes[1]}"
    return (
        f"# on {resource}, from {iso(offer.start)} to {iso(offer.end)}\n"
        f"sbatch --reservation={reservation} {size} --time={limit} job.sh"
    )


def _qsub(agreement: Agreement, resource: str) -> str:
    reservation, offer, limit = _facts(agreement)
    return (
        f"# on {resource}, from {iso(offer.start)} to {iso(offer.end)}\n"
        f"qsub -ar {reservation} -pe mpi {offer.cores} -l h_rt={limit} job.sh     # Grid Engine\n"
        f"qsub -q {reservation} -l ncpus={offer.cores} -l walltime={limit} job.sh     # PBS"
    )


def _psij(agreement: Agreement, resource: str) -> str:
    reservation, offer, _ = _facts(agreement)
    duration = (offer.end - offer.start) // SECOND
    nodes = _nodes(agreement)
    size = f"process_count={offer.cores}" if nodes is None else f"node_count={nodes[0]}, processes_per_node={nodes[1]}"
    return (
        f"# on {resource}, from {iso(offer.start)} to {iso(offer.end)}\n"
        "from datetime import timedelta\n"
        "from psij import Job, JobAttributes, JobExecutor, JobSpec, ResourceSpecV1\n"
        "\n"
        f"attributes = JobAttributes(duration=timedelta(seconds={duration}), reservation_id={reservation!r})\n"
        f"resources = ResourceSpecV1({size})\n"
        'spec = JobSpec(executable="./job.sh", resources=resources, attributes=attributes)\n'
        'JobExecutor.get_instance("slurm").submit(Job(spec))'
    )


def _mpirun(agreement: Agreement, resource: str) -> str:
    reservation, offer, limit = _facts(agreement)
    if not offer.placement:
        raise ConfigurationError(
            f"{reservation} is on {resource}, which gives out no places: mpirun's form is for Blue Gene/L "
            "(--as sbatch, qsub, psij and env are for any machine)",
            key="--as",
        )
    terms = agreement.request.torus
    virtual = terms is not None and terms.node_use == "virtual"
    tasks = offer.cores if virtual else max(offer.cores // PROCESSORS_A_COMPUTE_NODE, 1)
    return (
        "#!/bin/sh\n"
        f"# on {resource}, from {iso(offer.start)} to {iso(offer.end)}: {offer.placement}\n"
        f"# sbatch --reservation={reservation} --time={limit} job.sh runs this script where the reservation begins.\n"
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
        "RAMP_CORES": offer.cores,
        "RAMP_WALLTIME": limit,
    }
    return "\n".join(f"export {name}={value}" for name, value in values.items())


SNIPPETS: Final[dict[str, Callable[[Agreement, str], str]]] = {
    "sbatch": _sbatch,
    "qsub": _qsub,
    "psij": _psij,
    "mpirun": _mpirun,
    "env": _env,
}
"""Snippet writers by name."""
