"""`ramp hostlist` and `ramp smap`: Slurm's words for machines with coordinates."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from ramp.cli.options import RealNumber, WholeNumber, duration_type, example, output_type, state_option, user_option
from ramp.cli.views.output import raw_stream
from ramp.errors import ConfigurationError, DocumentError, MachineError, TransportError
from ramp.model.instant import Duration
from ramp.runtime.state_folder import StateFolder
from simulation.lab import check_pictures
from simulation.machine_files import FLAT_PREFIX, load_machine, machine_names
from simulation.machines.hostlist import DEFAULT_DIMENSIONS, compress, expand, expand_coordinates
from simulation.machines.interface import Machine, has_cables
from simulation.machines.render import DOCUMENTED_LETTERS, SMAP_LETTERS, Display, Style, letters_of, map_lines, render
from simulation.machines.slurm_options import parse_options
from simulation.machines.view import (
    TRACE_VERSION,
    MachineView,
    out_of_service,
    seconds_text,
    view_of,
    view_of_state,
    view_of_trace,
)

if TYPE_CHECKING:
    from simulation.cli.live import LiveMap
    from simulation.machines.trial import Trial

CLEAR_SCREEN = "\x1b[H\x1b[2J"
"""Cursor home, then clear."""
_NO_FILE = re.compile(r"[A-Za-z0-9:_-]+")
_DISPLAYS: dict[str, Display] = {display[0]: display for display in get_args(Display)}


@click.command(
    epilog=example(
        "ramp hostlist 'bgl[000x133]'",
        "ramp hostlist --compress bgl000 bgl001",
        "ramp hostlist 'bgl[100x300]' --cables bgl",
    )
)
@click.argument("lists", nargs=-1)
@click.option("-c", "--compress", "compressed", is_flag=True, help="Print one list instead of names.")
@click.option("--count", is_flag=True, help="Print only the number of names.")
@click.option(
    "--dimensions",
    type=WholeNumber(min=1),
    default=DEFAULT_DIMENSIONS,
    show_default=True,
    help="With --compress: number of coordinate digits in a name; 1: names have only numbers.",
)
@click.option("--cables", "machine_name", metavar="MACHINE", help="Print the cables of MACHINE that can join these "
              "midplanes, a box: link sets of each dimension.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list; with --compress an object.")
def hostlist(
    lists: tuple[str, ...], compressed: bool, count: bool, dimensions: int, machine_name: str | None, as_json: bool
) -> None:
    """Print the names of Slurm's LISTS of midplanes and hosts (bgl[000x733], linux[0-3]), one a line.

    LISTS are names or host lists; without any they come from standard input.
    """
    texts = lists or tuple(sys.stdin.read().split())
    names = [name for text in texts for name in expand(text)]
    if machine_name is not None:
        lines = _link_sets(load_machine(machine_name), ",".join(names))
        click.echo(json.dumps(lines) if as_json else "\n".join(lines))
    elif count:
        click.echo(json.dumps(len(names)))
    elif compressed:
        text = compress(names, dimensions=dimensions)
        click.echo(json.dumps({"hostlist": text, "count": len(set(names))}) if as_json else text)
    else:
        click.echo(json.dumps(names) if as_json else "\n".join(names))


@click.command(
    epilog=example(
        "ramp smap bgl --test-only '--geometry=2x2x2 --conn-type=TORUS'", "ramp smap bluegene1 -D r --png map.png"
    )
)
@click.argument("machine_name", metavar="[MACHINE]", required=False)
@click.option("--state", "state_path", type=output_type, help="Machine state (JSON).")
@click.option("--trace", "trace_path", type=output_type, help="Trace of ramp simulate.")
@click.option("--at", "at_s", type=RealNumber(), default=0.0, help="Second of the trace to show.")
@click.option("--step", "step_s", type=RealNumber(), default=3600.0, show_default=True, help="With -i: seconds of the "
              "trace between two pictures.")  # fmt: skip
@click.option("-c", "--commandline", is_flag=True, help="Print once (also the default without -i).")
@click.option("-i", "--iterate", "iterate_s", type=RealNumber(min=0.1), help="Redraw interval in seconds.")
@click.option("--count", type=WholeNumber(min=1), help="With -i: number of pictures.")
@click.option("-D", "--display", type=click.Choice(sorted(_DISPLAYS)), default="j", show_default=True,
              help="Table: jobs, slurm partitions, blocks, reservations.")  # fmt: skip
@click.option("-h", "--noheader", is_flag=True, help="Print the table without column names.")
@click.option(
    "--lower", is_flag=True, help="Letters a-z first, as in Slurm's documentation; smap itself begins with A."
)
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True,
              help="Colour the letters; auto: on a terminal, unless NO_COLOR is set.")  # fmt: skip
@click.option("--test-only", "test_options", metavar="OPTIONS", help="Also show the place of a job with these Slurm "
              "options: '--geometry=2x2x2 --conn-type=TORUS'.")  # fmt: skip
@click.option("--cables", is_flag=True, help="With --test-only: print the cables of the place.")
@click.option("--svg", "svg_path", type=output_type, help="File of a 3D picture.")
@click.option("--png", "png_path", type=output_type, help="File of a 3D picture.")
@click.option("--horizon", type=duration_type, default="24h", show_default=True, metavar="TIME",
              help="Period of the projected load, on a running market.")  # fmt: skip
@user_option
@state_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def smap(
    machine_name: str | None,
    state_path: Path | None,
    trace_path: Path | None,
    at_s: float,
    step_s: float,
    commandline: bool,
    iterate_s: float | None,
    count: int | None,
    display: str,
    noheader: bool,
    lower: bool,
    color: str,
    test_options: str | None,
    cables: bool,
    svg_path: Path | None,
    png_path: Path | None,
    horizon: Duration,
    user: str | None,
    state: StateFolder,
    as_json: bool,
) -> None:
    """Show which job runs where on MACHINE, as Slurm's smap does.

    MACHINE is a machine's name or file (default: that of the trace, or bgl). Without --state or --trace it is empty,
    except for drained and down parts. Any other name is a resource of the running market: its jobs (R), held slots (H),
    sold slots (RV), and a line with its projected load.
    """
    if state_path is not None and trace_path is not None:
        raise click.UsageError("--state and --trace exclude each other")
    if iterate_s is not None and (commandline or as_json):
        raise click.UsageError("-i excludes -c and --json")
    for key, path in (("--svg", svg_path), ("--png", png_path)):
        if path is not None:
            check_pictures(key)
    machine_name = machine_name or machine_of(trace_path)
    on_market = state_path is None and trace_path is None and is_resource(machine_name)
    machine = None if on_market else load_machine(machine_name)
    style = Style(
        letters=DOCUMENTED_LETTERS if lower else SMAP_LETTERS,
        color=color == "always" or (color == "auto" and sys.stdout.isatty() and "NO_COLOR" not in os.environ),
        header=not noheader,
    )
    rounds = count if iterate_s is not None else 1
    try:
        for shown in range(rounds) if rounds is not None else itertools.count():
            if shown and iterate_s is not None:
                time.sleep(iterate_s)
            live = None
            if machine is None:
                live = ask_market(machine_name, state, user, horizon)
                view = live.view
            else:
                view = read_view(machine, state_path, trace_path, at_s + shown * step_s)
            shown_machine = machine if live is None else live.machine
            assert shown_machine is not None
            trial = None
            if test_options is not None:
                trial = with_trial(shown_machine, view, test_options)
                view = trial.view
            _write_pictures(shown_machine, view, svg_path, png_path, live)
            if as_json:
                now = {} if live is None else live.as_json()
                click.echo(json.dumps(_as_json(shown_machine, view, style.letters, trial) | now, indent=2))
            else:
                _print_map(view, _DISPLAYS[display], style, clear=iterate_s is not None)
                click.echo(_notes(trial if cables else None, live), nl=False)
            if trial is not None and not trial.fits_empty:
                click.echo(f"this job would not fit {view.machine} even if nothing ran there", err=True)
    except KeyboardInterrupt:
        if iterate_s is None:  # a live map is left this way
            raise


def is_resource(name: str) -> bool:
    """Return whether a name is neither a machine nor a file and so means a resource of the running market."""
    looks_like_file = name.endswith(".toml") or "/" in name or name.startswith(FLAT_PREFIX)
    return not looks_like_file and name not in machine_names()


def ask_market(name: str, state: StateFolder, user: str | None, horizon: Duration) -> LiveMap:
    """Return the live map of a resource; raises `TransportError` if no market answers."""
    # brings the command line of the market along: not for machines from files
    from simulation.cli.live import ask_live_map

    try:
        return ask_live_map(name, state, user, horizon)
    except TransportError as error:
        known = ", ".join(machine_names())
        raise TransportError(f"{error}; machines known without a market are {known}") from error


def read_view(machine: Machine, state_path: Path | None, trace_path: Path | None, at_s: float) -> MachineView:
    """Return the view of a machine in a state file, in a trace at a second, or as its file says."""
    if state_path is not None:
        return view_of_state(machine, read_state(state_path), str(state_path))
    if trace_path is not None:
        out_of_service(machine, trace_header(trace_path), str(trace_path))
        return view_of_trace(machine, itertools.islice(_trace_rows(trace_path), 1, None), at_s, str(trace_path))
    return view_of(machine)


def read_state(path: Path) -> dict[str, Any]:
    """Read a machine state.

    Raises:
        DocumentError: there is no such file, or it is no JSON object.
    """
    try:
        state = json.loads(_read(path, "machine state"))
    except ValueError as error:
        raise DocumentError(f"not JSON: {error}", source=str(path)) from error
    if not isinstance(state, dict):
        raise DocumentError("not a machine state: expected a JSON object", source=str(path))
    return state


def machine_of(trace_path: Path | None) -> str:
    """Return the machine that a trace names; without a trace, bgl.

    Raises:
        DocumentError: the trace names a file, which may be anybody's: it is loaded only where the user names it.
    """
    name = "bgl" if trace_path is None else str(trace_header(trace_path)["machine"])
    if _NO_FILE.fullmatch(name) is None:
        raise DocumentError(f"line 1: got the machine {name!r}, a file; name it as MACHINE", source=str(trace_path))
    return name


def trace_header(path: Path) -> Mapping[str, Any]:
    """Return the first line of a trace.

    Raises:
        DocumentError: there is no such file, or it is no trace.
    """
    number, header = next(_trace_rows(path), (1, {}))
    if header.get("trace") != TRACE_VERSION or not isinstance(header.get("machine"), str):
        form = f'{{"trace": {TRACE_VERSION}, "machine": NAME, ...}}'
        raise DocumentError(f"line {number}: not a trace: expected {form}", source=str(path))
    return header


def _trace_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for line_number, line in enumerate(_read(path, "trace").splitlines(), start=1):
        if line.strip():
            try:
                row = json.loads(line)
            except ValueError as error:
                raise DocumentError(f"line {line_number}: not JSON: {error}", source=str(path)) from error
            if not isinstance(row, dict):
                raise DocumentError(f"line {line_number}: expected a JSON object", source=str(path))
            yield line_number, row


def _read(path: Path, kind: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        hint = "; write one with `ramp simulate ... --trace FILE`" if kind == "trace" else ""
        raise DocumentError(f"file of the {kind} not found{hint}", source=str(path)) from error
    except OSError as error:
        raise DocumentError(f"cannot read the {kind}: {error.strerror}", source=str(path)) from error
    except UnicodeDecodeError as error:
        raise DocumentError(f"cannot read the {kind}: not UTF-8 text", source=str(path)) from error


def with_trial(machine: Machine, view: MachineView, options_text: str) -> Trial:
    """Try a job of Slurm options on a machine in the state of a view."""
    # only here: most commands try no job
    from simulation.machines.trial import try_job

    if not has_cables(machine):
        raise MachineError(f"{machine.name}: --test-only needs a machine with cabled lines")
    try:
        words = shlex.split(options_text)
    except ValueError as error:
        raise ConfigurationError(f"{options_text!r}: {error}", key="--test-only") from error
    options = parse_options(words, os.environ)
    job_id = max([job.job_id for job in view.jobs], default=0) + 1
    request = options.request(job_id, cnodes_per_midplane=machine.layout.cnodes)
    return try_job(machine, view, request, str(options.node_use))


def _notes(trial: Trial | None, live: LiveMap | None) -> str:
    lines = [*(() if trial is None else trial.cables), *(() if live is None else [live.load_line])]
    return "".join(f"{line}\n" for line in lines)


def _link_sets(machine: Machine, names: str) -> list[str]:
    # only here: the tables of the machine take a while
    from simulation.machines.trial import link_set_lines

    if not has_cables(machine):
        raise MachineError(f"{machine.name}: --cables needs a machine with cabled lines")
    cells = expand_coordinates(names, machine.prefix, len(machine.extents))
    members = [sorted(set(axis)) for axis in zip(*cells, strict=True)]
    if prod(map(len, members)) != len(set(cells)):
        raise MachineError(f"--cables: expected a box of midplanes, got {compress(names.split(','))}")
    return link_set_lines(machine, members)


def _print_map(view: MachineView, display: Display, style: Style, *, clear: bool) -> None:
    text = render(view, display, style)
    if clear and sys.stdout.isatty():
        click.echo(CLEAR_SCREEN, raw_stream(), nl=False)
    if clear:
        click.echo(f"second {seconds_text(view.now_s)}")
    # colours were decided by --color; click must not strip them again
    click.echo(text, raw_stream() if style.color else None, nl=clear, color=style.color)


def _write_pictures(
    machine: Machine, view: MachineView, svg_path: Path | None, png_path: Path | None, live: LiveMap | None
) -> None:
    if svg_path is None and png_path is None:
        return
    # matplotlib takes most of a second to import: only for pictures
    from simulation.plots.machine3d import LiveDetails, draw_machine

    now = LiveDetails() if live is None else LiveDetails(live.moment, live.load)
    wirings = machine.wirings if has_cables(machine) else None
    try:
        if svg_path is not None:
            draw_machine(view, svg_path, "svg", wirings, now)
        if png_path is not None:
            draw_machine(view, png_path, "png", wirings, now)
    except OSError as error:
        raise DocumentError(str(error), source=str(error.filename)) from error


def _as_json(machine: Machine, view: MachineView, letters: str, trial: Trial | None) -> dict[str, Any]:
    given = letters_of(view, letters)
    wirings = machine.wirings if has_cables(machine) else {}
    return {
        "machine": view.machine,
        "extents": list(view.extents),
        "time_s": view.now_s,
        "units": view.total,
        "allocated": view.allocated,
        "out_of_service": (view.drained | view.down).bit_count(),
        "map": map_lines(view, Style(letters)),
        "jobs": [
            {
                "id": given[job.job_id],
                "job_number": None if job.job_id < 0 else job.job_id,
                "state": job.state,
                "size": job.size,
                "nodes": job.hostlist,
                "elapsed_s": job.elapsed_s,
                "connection": list(job.connection),
                "links": {name: list(labels) for name, labels in job.links},
                "slurm_partition": job.slurm_partition,
                "block": job.block,
                "user": job.user,
                "name": job.name,
            }
            for job in view.jobs
        ],
        **{
            key: [asdict(entry) for entry in getattr(view, key)]
            for key in ("blocks", "reservations", "slurm_partitions")
        },
        "cables": {name: [[cable.source, cable.target] for cable in line.cables] for name, line in wirings.items()},
        "test_only": None
        if trial is None
        else {
            "fits": trial.placement is not None,
            "fits_empty": trial.fits_empty,
            "cables": list(trial.cables),
            "link_count": None if trial.placement is None else trial.placement.link_count,
        },
    }
