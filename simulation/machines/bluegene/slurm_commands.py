"""Slurm's commands about a machine at one moment: sinfo, squeue, scontrol show, as records and in Slurm's own formats.

Formats are those of sinfo(1) and squeue(1): `%[.][WIDTH]LETTER`, right-aligned with a dot. As in Slurm on Blue Gene a
node is a midplane, and nodes are counted in midplanes (Slurm 1.0 to 1.3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from ramp.errors import ConfigurationError
from simulation.machines.interface import GridMachine
from simulation.machines.render import duration
from simulation.machines.view import PENDING, MachineView, ViewJob, units_named

Record = dict[str, str]

SINFO: Final = "%9P %.5a %.10l %.6D %.6t %N"
SINFO_NODES: Final = "%12N %.5D %9P %6t"
SINFO_BLOCKS: Final = "%16b %.6D %10u %10t %10c %12m"
SQUEUE: Final = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
"""Defaults of the commands; `sinfo -b` prints the columns BG_BLOCK NODES OWNER STATE CONNECTION USE."""
COLUMNS: Final[dict[str, dict[str, str]]] = {
    "sinfo": {"P": "PARTITION", "a": "AVAIL", "l": "TIMELIMIT", "D": "NODES", "t": "STATE", "T": "STATE",
              "N": "BP_LIST", "E": "REASON"},
    "sinfo -b": {"b": "BG_BLOCK", "D": "NODES", "u": "OWNER", "t": "STATE", "c": "CONNECTION", "m": "USE"},
    "squeue": {"i": "JOBID", "P": "PARTITION", "j": "NAME", "u": "USER", "t": "ST", "T": "STATE", "M": "TIME",
               "D": "NODES", "R": "BP_LIST(REASON)", "N": "BP_LIST", "r": "REASON", "b": "BG_BLOCK"},
}  # fmt: skip
"""Letters of each command's formats and their columns."""
STATES: Final = {"resv": "RESERVED", "drng": "DRAINING", "drain": "DRAINED", "alloc": "ALLOCATED", "idle": "IDLE",
                 "down": "DOWN"}  # fmt: skip
"""Short and long states of nodes, in the order in which sinfo lists them."""
JOB_STATES: Final = {"PD": "PENDING", "CF": "CONFIGURING", "R": "RUNNING", "CG": "COMPLETING"}
_FIELD: Final = re.compile(r"%(\.?)(\d*)([A-Za-z])")


def formatted(command: str, layout: str, records: Sequence[Record], *, header: bool = True) -> list[str]:
    """Return a table in a format of Slurm, one text for each line.

    Args:
        command: a key of `COLUMNS`.
        layout: the format.
        records: values by letter.
        header: whether the table begins with the names of its columns.

    Raises:
        ConfigurationError: the format has an unknown letter.
    """
    names = COLUMNS[command]
    unknown = sorted({letter for _, _, letter in _FIELD.findall(layout)} - names.keys())
    if unknown:
        raise ConfigurationError(
            f"{command}: unknown field %{unknown[0]}; expected one of {', '.join(names)}", key="-o"
        )
    rows = [names, *records] if header else records
    return [_FIELD.sub(lambda field, row=row: _cell(field, row), layout).rstrip() for row in rows]  # type: ignore[misc]


def _cell(field: re.Match[str], row: Record) -> str:
    right, width, letter = field.groups()
    text = row[letter]
    if not width:
        return text
    text = text[: int(width)]
    return text.rjust(int(width)) if right else text.ljust(int(width))


def sinfo(machine: GridMachine, view: MachineView) -> list[Record]:
    """Return the partitions with their nodes by state; each partition's states in sinfo's order."""
    found = []
    for index, partition in enumerate(view.slurm_partitions):
        units = units_named(machine, partition.hostlist)
        named = {"P": partition.name if index else f"{partition.name}*", "a": partition.available}
        for state, everywhere in node_states(view).items():
            members = everywhere & units
            if members:
                shown = {"t": state, "T": STATES[state].lower(), "N": machine.hostlist(members), "E": "none"}
                found.append({**named, "l": partition.time_limit, "D": str(members.bit_count()), **shown})
    return found


def sinfo_nodes(machine: GridMachine, view: MachineView) -> list[Record]:
    """Return each node once for every partition, as `sinfo -N`."""
    found = [
        {**row, "D": "1", "N": machine.unit_name(unit), "unit": str(unit).zfill(6)}
        for row in sinfo(machine, view)
        for unit in range(machine.grid.size)
        if units_named(machine, row["N"]) >> unit & 1
    ]
    return sorted(found, key=lambda row: row["unit"])


def sinfo_blocks(view: MachineView) -> list[Record]:
    """Return the blocks, as `sinfo -b`."""
    return [
        {"b": block.name, "D": str(block.size), "u": block.user or "-", "t": block.state, "c": block.connection.upper(),
         "m": block.node_use.upper() or "COPROCESSOR"}
        for block in view.blocks
    ]  # fmt: skip


def squeue(view: MachineView) -> list[Record]:
    """Return the jobs that wait, then those that run; the first that waits lacks resources."""
    waiting = [job for job in view.jobs if job.state == PENDING]
    found = []
    for job in [*waiting, *(job for job in view.jobs if job.state != PENDING and not job.is_booked)]:
        reason = "None" if job.state != PENDING else "Resources" if job is waiting[0] else "Priority"
        found.append(
            {"i": str(job.job_id), "P": partition_of(view, job), "j": job.name or f"job{job.job_id}",
             "u": job.user or "-", "t": job.state, "T": JOB_STATES.get(job.state, job.state),
             "M": duration(0 if job.state == PENDING else job.elapsed_s), "D": str(job.size), "N": job.hostlist,
             "R": f"({reason})" if job.state == PENDING else job.hostlist, "r": reason, "b": job.block or "-"}
        )  # fmt: skip
    return found


def node_states(view: MachineView) -> dict[str, int]:
    """Return the units in each state, as bit sets, in sinfo's order."""
    running = reserved = 0
    for job in view.placed_jobs:
        if job.is_booked:
            reserved |= job.units
        else:
            running |= job.units
    everything = (1 << view.total) - 1
    drained, down = view.drained & ~view.down, view.down
    up = everything & ~down
    found = dict.fromkeys(STATES, 0)
    found |= {"down": down, "drng": drained & running, "drain": drained & ~running, "alloc": running & up & ~drained}
    found["resv"] = reserved & up & ~drained & ~running
    found["idle"] = up & ~drained & ~running & ~reserved
    return found


def partition_of(view: MachineView, job: ViewJob) -> str:
    """Return the partition of a job: its own, else the first."""
    return job.slurm_partition or next((each.name for each in view.slurm_partitions), view.machine)


def show_nodes(machine: GridMachine, view: MachineView) -> list[Record]:
    """Return the fields of `scontrol show node` that a simulated machine knows."""
    processors = machine.traits.processors
    found = []
    for state, units in node_states(view).items():
        words = {"drain": "IDLE+DRAIN", "drng": "ALLOCATED+DRAIN", "resv": "IDLE+RESERVED"}.get(state, STATES[state])
        for unit in range(machine.grid.size):
            if units >> unit & 1:
                busy = processors if state in {"alloc", "drng"} else 0
                partitions = [each.name for each in view.slurm_partitions
                              if units_named(machine, each.hostlist) >> unit & 1]  # fmt: skip
                found.append((unit, {"NodeName": machine.unit_name(unit), "CPUAlloc": str(busy),
                                     "CPUTot": str(processors), "State": words,
                                     "Partitions": ",".join(partitions)}))  # fmt: skip
    return [record for _, record in sorted(found, key=lambda each: each[0])]


def show_blocks(view: MachineView) -> list[Record]:
    """Return the fields of `scontrol show block`."""
    jobs = {job.block: job.job_id for job in view.jobs if job.block}
    return [
        {"BlockName": block.name, "TotalNodes": str(block.size), "State": block.state,
         "JobRunning": str(jobs.get(block.name, -1)), "User": block.user or "(null)",
         "ConnType": block.connection.upper(), "NodeUse": block.node_use.upper() or "COPROCESSOR",
         "BasePartitions": block.hostlist}
        for block in view.blocks
    ]  # fmt: skip


def show_jobs(view: MachineView) -> list[Record]:
    """Return the fields of `scontrol show job`, with those of Blue Gene."""
    found = []
    for row, job in ((row, job) for row in squeue(view) for job in view.jobs if str(job.job_id) == row["i"]):
        started = "N/A" if job.state == PENDING else moment(view.now_s - job.elapsed_s)
        kinds = sorted(set(job.connection))
        found.append(
            {"JobId": row["i"], "JobName": row["j"], "UserId": row["u"], "JobState": row["T"], "Reason": row["r"],
             "StartTime": started, "RunTime": row["M"], "Partition": row["P"], "NumNodes": row["D"],
             "BP_List": row["N"] or "(null)", "Connection": kinds[0] if len(kinds) == 1 else ",".join(job.connection),
             "Block_ID": job.block or "unassigned"}
        )  # fmt: skip
    return found


def show_partitions(machine: GridMachine, view: MachineView) -> list[Record]:
    """Return the fields of `scontrol show partition`."""
    processors = machine.traits.processors
    return [
        {"PartitionName": each.name, "Default": "YES" if index == 0 else "NO", "MaxTime": "UNLIMITED",
         "Nodes": each.hostlist, "State": each.available.upper(), "TotalCPUs": str(processors * each.size),
         "TotalNodes": str(each.size)}
        for index, each in enumerate(view.slurm_partitions)
    ]  # fmt: skip


SHOWN: Final[dict[str, Callable[[GridMachine, MachineView], list[Record]]]] = {
    "node": show_nodes,
    "block": lambda _, view: show_blocks(view),
    "job": lambda _, view: show_jobs(view),
    "partition": show_partitions,
}
"""What `scontrol show` shows."""


def shown(record: Record, *, one_line: bool) -> str:
    """Return a record as scontrol prints it: `Key=value`, the first on a line of its own unless `one_line`."""
    first, *rest = (f"{key}={value}" for key, value in record.items())
    if one_line:
        return " ".join([first, *rest])
    lines = [" ".join(rest[start : start + 4]) for start in range(0, len(rest), 4)]
    return "\n   ".join([first, *lines]) + "\n"


def moment(second: float) -> str:
    """Return a second of the machine's clock as Slurm prints times; a log's begins in 1970."""
    try:
        return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError, OSError):  # a state file may state any second
        return "Unknown"
