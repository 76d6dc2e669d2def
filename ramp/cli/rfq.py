"""`ramp rfq`: writing and checking requests for quotation."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Final

import click

from ramp.cli.moments import DURATION_HELP, MOMENT_HELP, DurationType, MomentType, whole_seconds_up
from ramp.cli.options import example, json_option
from ramp.cli.output import count_text, duration_text, moment_text, print_json, print_rows, say
from ramp.errors import DocumentError
from ramp.model.instant import Duration, Instant, iso, seconds
from ramp.model.request import (
    NodeDiskSpace,
    Nodes,
    RequestForQuotation,
    RequestUnit,
    TorusTerms,
    TotalCores,
    TotalDiskSpace,
)

_TAG: Final = re.compile(r"(<[^>]+>)")
_COUNT: Final = click.IntRange(min=1)


@click.group(
    epilog=example(
        "ramp rfq new --cores 64 --start +5min --walltime 1h --price 70 -o job.xml", "ramp rfq validate job.xml"
    )
)
def rfq() -> None:
    """Write and check requests for quotation (RFQL documents)."""


_TERMS: Final = (
    click.option("--cores", type=_COUNT, metavar="N", help="Cores in all, wherever they are."),
    click.option("--nodes", type=_COUNT, metavar="N", help="Nodes; with --node-cores, in place of --cores."),
    click.option("--node-cores", type=_COUNT, metavar="M", help="Cores on each node."),
    click.option("--price", type=_COUNT, metavar="CREDITS", required=True,
                 help="Most to pay, whole credits per core-hour."),
    click.option("--start", type=MomentType(), metavar="TIME", help=f"Earliest start, {MOMENT_HELP} (default: now)."),
    click.option("--end", type=MomentType(), metavar="TIME",
                 help="Complete by then (default: start + walltime, so that the run begins exactly at the start)."),
    click.option("--walltime", type=DurationType(), metavar="TIME",
                 help=f"Length of the run, {DURATION_HELP} (default: the whole window)."),
    click.option("--os", "operating_system", metavar="NAME", help="Operating system, JSDL 1.0 name such as LINUX."),
    click.option("--os-version", metavar="VERSION", help="Its exact version."),
    click.option("--arch", "architecture", metavar="NAME", help="Architecture, JSDL 1.0 name such as x86_64."),
    click.option("--cpu-speed", "cpu_speed_mhz", type=_COUNT, metavar="MHZ", help="Least clock rate in MHz."),
    click.option("--bandwidth", "inter_node_bandwidth_mbps", type=_COUNT, metavar="MBPS",
                 help="Least bandwidth between nodes in Mbit/s."),
    click.option("--ram", "ram_per_core_mb", type=_COUNT, metavar="MB", help="Least memory per core in MB."),
    click.option("--disk", type=_COUNT, metavar="GB", help="Disk space in all, in GB."),
    click.option("--node-disk", type=_COUNT, metavar="GB", help="Disk space on each node in GB, in place of --disk."),
    click.option("--geometry", metavar="AxBxC", help="Extents on a torus machine, such as 8x8x16."),
    click.option("--no-rotate", is_flag=True, help="Take the extents exactly in that order."),
    click.option("--connection", type=click.Choice(["torus", "mesh", "any"]), help="Wiring on a torus machine."),
    click.option("--node-use", type=click.Choice(["coprocessor", "virtual"]), help="Blue Gene's use of its nodes."),
)  # fmt: skip


def _with_terms(command: Any) -> Any:
    for option in reversed(_TERMS):
        command = option(command)
    return command


@rfq.command(
    "new",
    epilog=example(
        "ramp rfq new --cores 64 --start +5min --walltime 1h --price 70 -o job.xml",
        "ramp rfq new --nodes 16 --node-cores 8 --end +8h --walltime 2h --price 50 --add job.xml -o both.xml",
    ),
)
@_with_terms
@click.option("--add", "earlier", multiple=True, metavar="FILE",
              type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Begin with the units of this document; may be given several times.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write there (default: standard output).")  # fmt: skip
def new(earlier: tuple[Path, ...], output: Path | None, **terms: Any) -> None:
    """Write a request for one unit, or with --add for several that are bought together or not at all."""
    from ramp.cli.submit import load_requests
    from ramp.rfql.request_for_quotation import parse_request, write_request

    before = load_requests(earlier)
    for warning in before.warnings:
        say(f"ramp: warning: {warning}")
    unit = _new_unit(terms, len(before.units) + 1)
    text = write_request(RequestForQuotation((*before.units, unit)))
    parse_request(text, "the new request")
    document = f'<?xml version="1.0" encoding="UTF-8"?>\n{indented(text)}\n'
    if output is None:
        click.echo(document, nl=False)
        return
    try:
        output.write_text(document, "utf-8")
    except OSError as error:
        raise DocumentError(f"cannot be written: {error.strerror}", source=str(output)) from error
    say(f"{output}: {count_text(unit.number, 'unit')}")


def _new_unit(terms: dict[str, Any], number: int) -> RequestUnit:
    from ramp.runtime.clock import SystemClock

    start: Instant | None = terms["start"]
    end: Instant | None = terms["end"]
    wall_time: Duration | None = terms["walltime"]
    if end is None:
        if wall_time is None:
            raise click.UsageError("how long? give --walltime, or --end, or both")
        start = SystemClock().now() if start is None else start
        end = whole_seconds_up(start) + whole_seconds_up(wall_time)
    return RequestUnit(
        number=number,
        cpu_hour_cost=terms["price"],
        deadline=whole_seconds_up(end),
        cores=_cores(terms),
        not_before=None if start is None else whole_seconds_up(start),
        wall_time=None if wall_time is None else whole_seconds_up(wall_time),
        disk=_disk(terms),
        torus=_torus(terms),
        **{
            key: terms[key]
            for key in (
                "operating_system",
                "os_version",
                "architecture",
                "cpu_speed_mhz",
                "inter_node_bandwidth_mbps",
                "ram_per_core_mb",
            )
        },
    )


def _cores(terms: dict[str, Any]) -> TotalCores | Nodes:
    cores, nodes, node_cores = terms["cores"], terms["nodes"], terms["node_cores"]
    if cores is not None and nodes is None and node_cores is None:
        return TotalCores(cores)
    if cores is None and nodes is not None and node_cores is not None:
        return Nodes(nodes, node_cores)
    raise click.UsageError("how many cores? give either --cores, or both --nodes and --node-cores")


def _disk(terms: dict[str, Any]) -> TotalDiskSpace | NodeDiskSpace | None:
    total, on_node = terms["disk"], terms["node_disk"]
    if total is not None and on_node is not None:
        raise click.UsageError("give either --disk or --node-disk")
    if total is not None:
        return TotalDiskSpace(total)
    return None if on_node is None else NodeDiskSpace(on_node)


def _torus(terms: dict[str, Any]) -> TorusTerms | None:
    geometry, connection, node_use = terms["geometry"], terms["connection"], terms["node_use"]
    if geometry is None:
        if terms["no_rotate"]:
            raise click.UsageError("--no-rotate means nothing without --geometry")
        if connection is None and node_use is None:
            return None
    elif not re.fullmatch(r"[1-9][0-9]{0,5}(x[1-9][0-9]{0,5}){1,7}", geometry):
        raise click.UsageError(f"--geometry {geometry!r} is no extents; right would be for example 8x8x16")
    extents = () if geometry is None else tuple(int(extent) for extent in geometry.split("x"))
    return TorusTerms(extents, not terms["no_rotate"], connection or "any", node_use or "")


@rfq.command("validate", epilog=example("ramp rfq validate *.xml --json"))
@click.argument("files", nargs=-1, required=True, metavar="FILE...",
                type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))  # fmt: skip
@json_option
@click.pass_context
def validate(ctx: click.Context, files: tuple[Path, ...], as_json: bool) -> None:
    """Check documents against the schema and for sense; all findings are told at once.

    Exit code 0: all valid; 2: some are not.
    """
    results = [_validated(path) for path in files]
    if as_json:
        print_json([{key: value for key, value in result.items() if key != "rows"} for result in results])
    for result in [] if as_json else results:
        if result["valid"]:
            click.echo(f"{result['path']}: valid, {count_text(len(result['units']), 'unit')}")
            print_rows(_COLUMNS, result["rows"], right=("Unit", "Most credits/core-hour"))
        else:
            say(f"ramp: {result['message']}")
        for warning in result["warnings"]:
            say(f"ramp: {result['path']}: warning: {warning}")
    ctx.exit(0 if all(result["valid"] for result in results) else 2)


_COLUMNS: Final = ("Unit", "Cores", "Not before", "Deadline", "Wall time", "Most credits/core-hour")


def _validated(path: Path) -> dict[str, Any]:
    from ramp.rfql.request_for_quotation import load_request, parse_request

    result: dict[str, Any] = {"path": str(path), "valid": False, "units": [], "warnings": [], "violations": []}
    try:
        piped = str(path) == "-"
        document = parse_request(sys.stdin.buffer.read(), "standard input") if piped else load_request(path)
    except DocumentError as error:
        return result | {"violations": list(error.violations) or [error.reason], "message": str(error), "rows": []}
    return result | {
        "valid": True,
        "units": [_unit_object(unit) for unit in document.units],
        "warnings": list(document.warnings),
        "rows": [_unit_row(unit) for unit in document.units],
    }


def _unit_object(unit: RequestUnit) -> dict[str, Any]:
    nodes = unit.cores if isinstance(unit.cores, Nodes) else None
    return {
        "unit": unit.number,
        "cores": unit.cores.total,
        "nodes": None if nodes is None else nodes.count,
        "node_cores": None if nodes is None else nodes.cores_per_node,
        "cpu_hour_cost": unit.cpu_hour_cost,
        "not_before": None if unit.not_before is None else iso(unit.not_before),
        "deadline": iso(unit.deadline),
        "wall_time_s": None if unit.wall_time is None else seconds(unit.wall_time),
    }


def _unit_row(unit: RequestUnit) -> tuple[object, ...]:
    nodes = f" ({unit.cores.count} x {unit.cores.cores_per_node})" if isinstance(unit.cores, Nodes) else ""
    return (
        unit.number,
        f"{unit.cores.total}{nodes}",
        "as soon as possible" if unit.not_before is None else moment_text(unit.not_before),
        moment_text(unit.deadline),
        "the whole window" if unit.wall_time is None else duration_text(unit.wall_time),
        unit.cpu_hour_cost,
    )


def indented(text: str) -> str:
    """An RFQL document on one line, as `write_request` makes it, with a line and two spaces a level for people."""
    depth, lines, line = 0, [], ""
    for part in _TAG.split(text):
        if not part:
            continue
        if part.startswith("</"):
            depth -= 1
            lines.append((line or "  " * depth) + part)
            line = ""
        elif part.startswith("<"):
            if line:
                lines.append(line)
            line = "  " * depth + part
            depth += 1
        else:
            line += part
    return "\n".join(lines)
