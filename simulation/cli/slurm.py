"""`ramp slurm`: Slurm's commands for a simulated machine."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from ramp.cli.options import RealNumber, example, output_type, state_option, user_option
from ramp.errors import ConfigurationError, MachineError
from ramp.model.instant import HOUR
from ramp.runtime.atomic_writes import write_output
from ramp.runtime.state_folder import StateFolder
from ramp.text import printable
from simulation.cli.machines import ask_market, is_resource, machine_of, read_state, read_view, with_trial
from simulation.machine_files import load_machine
from simulation.machines.bluegene import slurm_commands as slurm
from simulation.machines.hostlist import expand
from simulation.machines.interface import GridMachine, Machine, has_places
from simulation.machines.view import MachineView, units_named, view_of_state

_OUT: Final = {"DRAIN": "drained", "DOWN": "down"}
_BACK: Final = frozenset({"RESUME", "IDLE", "UNDRAIN"})
_READ_ONLY: Final = "changes need a machine state; give --state FILE"


@dataclass(frozen=True, slots=True)
class _Shown:
    """The machine that a command is about, and how to print.

    Attributes:
        machine: the machine.
        view: its state.
        state_path: file of the state, which commands may change; None = read only.
        as_json: print JSON.
    """

    machine: GridMachine
    view: MachineView
    state_path: Path | None
    as_json: bool

    def table(self, command: str, layout: str, records: Sequence[slurm.Record], *, header: bool) -> None:
        names = slurm.COLUMNS[command]
        if self.as_json:
            click.echo(json.dumps([{names[key]: row[key] for key in row if key in names} for row in records], indent=2))
        else:
            lines = slurm.formatted(command, layout, records, header=header)
            click.echo("".join(f"{line}\n" for line in lines), nl=False)

    def change(self, edit: Callable[[dict[str, Any]], None]) -> None:
        if self.state_path is None:
            raise ConfigurationError(_READ_ONLY)
        state = read_state(self.state_path)
        edit(state)
        view_of_state(self.machine, state, str(self.state_path))
        write_output(self.state_path, json.dumps(state, indent=2) + "\n")


_SETTINGS: Final = {"help_option_names": ["--help"]}
"""-h is Slurm's."""
_no_header = click.option("-h", "--noheader", is_flag=True)
_format = click.option("-o", "--format", "layout")


@click.command(context_settings=_SETTINGS)
@_no_header
@click.option("-N", "--Node", "by_node", is_flag=True)
@click.option("-b", "blocks", is_flag=True)
@_format
@click.pass_obj
def _sinfo(shown: _Shown, noheader: bool, by_node: bool, blocks: bool, layout: str | None) -> None:
    if blocks:
        shown.table("sinfo -b", layout or slurm.SINFO_BLOCKS, slurm.sinfo_blocks(shown.view), header=not noheader)
        return
    read, usual = (slurm.sinfo_nodes, slurm.SINFO_NODES) if by_node else (slurm.sinfo, slurm.SINFO)
    shown.table("sinfo", layout or usual, read(shown.machine, shown.view), header=not noheader)


@click.command(context_settings=_SETTINGS)
@_no_header
@_format
@click.pass_obj
def _squeue(shown: _Shown, noheader: bool, layout: str | None) -> None:
    shown.table("squeue", layout or slurm.SQUEUE, slurm.squeue(shown.view), header=not noheader)


@click.command(context_settings=_SETTINGS)
@click.option("-o", "--oneliner", is_flag=True)
@click.argument("verb", type=click.Choice(["show", "update"]))
@click.argument("words", nargs=-1)
@click.pass_obj
def _scontrol(shown: _Shown, oneliner: bool, verb: str, words: tuple[str, ...]) -> None:
    if verb == "update":
        fields = {key.lower(): value for key, _, value in (word.partition("=") for word in words)}
        if fields.keys() - {"reason"} != {"nodename", "state"}:
            raise ConfigurationError(f"got {' '.join(words)!r}, expected NodeName=LIST State=STATE", key="scontrol")
        shown.change(lambda state: _update(shown.machine, state, fields["nodename"], fields["state"].upper()))
        return
    what, name = (*words, "", "")[:2]
    if what not in slurm.SHOWN:
        raise ConfigurationError(f"show: got {what!r}, expected one of {', '.join(slurm.SHOWN)}", key="scontrol")
    records = [
        each
        for each in slurm.SHOWN[what](shown.machine, shown.view)
        if not name or next(iter(each.values())) in expand(name)
    ]
    if name and not records:
        click.echo(f"{what.capitalize()} {printable(name)} not found", err=True)
        raise click.exceptions.Exit(1)
    if shown.as_json:
        click.echo(json.dumps(records, indent=2))
    else:
        click.echo("".join(f"{slurm.shown(each, one_line=oneliner)}\n" for each in records), nl=False)


def _update(machine: GridMachine, state: dict[str, Any], nodes: str, wanted: str) -> None:
    if wanted not in _OUT.keys() | _BACK:
        expected = ", ".join(sorted(_OUT.keys() | _BACK))
        raise ConfigurationError(f"got {wanted!r}, expected one of {expected}", key="State")
    units = units_named(machine, nodes)
    for key in _OUT.values():
        kept = units_named(machine, str(state.get(key, ""))) & ~units
        state[key] = machine.hostlist(kept | units if _OUT.get(wanted) == key else kept)


@click.command(context_settings=_SETTINGS)
@click.argument("jobs", nargs=-1, type=int, required=True)
@click.pass_obj
def _scancel(shown: _Shown, jobs: tuple[int, ...]) -> None:
    unknown = set(jobs) - {job.job_id for job in shown.view.jobs}
    if unknown:
        click.echo(f"scancel: error: Kill job error on job id {min(unknown)}: Invalid job id specified", err=True)
        raise click.exceptions.Exit(1)
    shown.change(
        lambda state: state.update(jobs=[each for each in state.get("jobs", ()) if each["job_number"] not in jobs])
    )


@click.command(context_settings={**_SETTINGS, "ignore_unknown_options": True})
@click.option("--test-only", is_flag=True, required=True, expose_value=False)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def _srun(shown: _Shown, words: tuple[str, ...]) -> None:
    trial = with_trial(shown.machine, shown.view, shlex.join(words))
    job = trial.view.jobs[-1]
    fields = {"job": job.job_id, "nodes": job.hostlist, "partition": slurm.partition_of(shown.view, job)}
    if shown.as_json:
        click.echo(json.dumps({**fields, "fits": trial.placement is not None, "fits_empty": trial.fits_empty}))
    elif trial.placement is not None:
        count = shown.machine.traits.processors * trial.placement.size
        start = slurm.moment(shown.view.now_s)
        click.echo("srun: Job {job} to start at {} using {} processors on {nodes} in partition {partition}".format(
            start, count, **fields))  # fmt: skip
    else:
        why = "Requested nodes are busy" if trial.fits_empty else "Requested node configuration is not available"
        click.echo(f"allocation failure: {why}", err=True)
    if trial.placement is None:
        raise click.exceptions.Exit(1)


_COMMANDS: Final = {"sinfo": _sinfo, "squeue": _squeue, "scontrol": _scontrol, "scancel": _scancel, "srun": _srun}


@click.command(
    "slurm",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog=example("ramp slurm --machine bgl-slurm sinfo", "ramp slurm --trace trace.jsonl --at 86400 squeue",
                   "ramp slurm srun --test-only -g 2x2x2",
                   exits="0 done, 1 not found, or the job finds no place, 2 bad input"),
)  # fmt: skip
@click.option("--machine", "machine_name", metavar="MACHINE", help="Machine's name or file, or a resource of the "
              "running market [default: that of the trace, or bgl].")  # fmt: skip
@click.option("--state", "state_path", type=output_type, help="Machine state (JSON); commands may change it.")
@click.option("--trace", "trace_path", type=output_type, help="Trace of ramp simulate.")
@click.option("--at", "at_s", type=RealNumber(), default=0.0, help="Second of the trace to show.")
@user_option
@state_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.argument("command", type=click.Choice(sorted(_COMMANDS)))
@click.argument("words", metavar="[ARGUMENTS]...", nargs=-1, type=click.UNPROCESSED)
def slurm_command(
    *,
    machine_name: str | None,
    state_path: Path | None,
    trace_path: Path | None,
    at_s: float,
    user: str | None,
    state: StateFolder,
    as_json: bool,
    command: str,
    words: tuple[str, ...],
) -> None:
    r"""Answer a command of Slurm about a simulated machine, in Slurm's formats.

    \b
    sinfo [-h] [-N] [-b] [-o FORMAT]
    squeue [-h] [-o FORMAT]
    scontrol [-o] show node|block|job|partition [NAME]
    scontrol update NodeName=LIST State=DRAIN|DOWN|RESUME    (needs --state)
    scancel JOB...                                           (needs --state)
    srun --test-only OPTIONS                                 (as ramp smap --test-only)

    Nodes are midplanes. Times are UTC; a log's begin in 1970.
    """
    if state_path is not None and trace_path is not None:
        raise click.UsageError("--state and --trace exclude each other")
    name = machine_name or machine_of(trace_path)
    if state_path is None and trace_path is None and is_resource(name):
        live = ask_market(name, state, user, HOUR)
        machine: Machine = live.machine
        view = live.view
    else:
        machine = load_machine(name)
        view = read_view(machine, state_path, trace_path, at_s)
    if not has_places(machine):
        raise MachineError(f"{machine.name}: its processors have no names, expected a torus")
    shown = _Shown(machine, view, state_path, as_json)
    code = _COMMANDS[command].main(args=list(words), prog_name=command, standalone_mode=False, obj=shown)
    if code:
        raise click.exceptions.Exit(code)
