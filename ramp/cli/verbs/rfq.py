"""`ramp rfq`: writing and checking requests for quotation."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import click

from ramp.cli.options import (
    WholeNumber,
    credits_type,
    duration_or_zero_type,
    duration_type,
    example,
    existing_file_type,
    file_type,
    json_option,
    moment_type,
    output_type,
    site_option,
    start_probability_option,
    together,
)
from ramp.cli.views.fields import MOMENT, NUMBER, Field, Fields, Kind
from ramp.cli.views.output import amount_text, count_text, duration_text, moment_text, printed_as_json, say
from ramp.client.request import RequestTemplate, combined, document_of, request
from ramp.client.times import DURATION_HELP, MOMENT_HELP
from ramp.errors import ConfigurationError, DocumentError
from ramp.model.instant import seconds, to_datetime
from ramp.model.machine_terms import STATED_TERMS, Term
from ramp.model.money import credits_decimal
from ramp.model.request import Nodes, RequestForQuotation, RequestUnit
from ramp.options import nearest_name
from ramp.shipped_files import shipped_directory

_NOT_TERMS: Final = {"template", "earlier", "output", "help"}
"""Parameters of the command that are no terms of a request."""


def shipped_templates() -> dict[str, Path]:
    """Return the templates that come with RAMP, by name."""
    return {entry.stem: entry for entry in sorted(shipped_directory("agents_config/requests").glob("*.toml"))}


def take_template(ctx: click.Context, _: click.Parameter, given: str | None) -> None:
    """Take default options from a template; the callback of an eager option."""
    if given is None or ctx.resilient_parsing:
        return
    shipped = shipped_templates()
    path = Path(given) if Path(given).is_file() else shipped.get(given)
    if path is None:
        raise ConfigurationError(f"not found: expected a file or a template of RAMP: {', '.join(shipped)}", path=given)
    try:
        terms = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot be read: {error}", path=path) from error
    ctx.default_map = {**(ctx.default_map or {}), **_checked(ctx.command, terms, path)}


def _checked(command: click.Command, terms: dict[str, Any], path: Path) -> dict[str, Any]:
    """Convert the terms of a template as the command line would."""
    names = {
        option.removeprefix("--"): parameter
        for parameter in command.params
        if parameter.name not in _NOT_TERMS
        for option in parameter.opts
    }
    found: dict[str, Any] = {}
    for key, value in terms.items():
        parameter = names.get(key)
        if parameter is None or parameter.name is None:
            raise ConfigurationError(f"unknown option{nearest_name(key, list(names))}", path=path, key=key)
        is_flag = isinstance(parameter, click.Option) and parameter.is_flag
        if isinstance(value, bool) is not is_flag or not isinstance(value, str | int):
            right = "true or false" if is_flag else "a text or a whole number"
            raise ConfigurationError(f"got {value!r}, expected {right}", path=path, key=key)
        text = value if is_flag else str(value)
        found[parameter.name] = str(value).split() if getattr(parameter, "multiple", False) else text
    return found


_COUNT: Final = WholeNumber(min=1)


@click.group(
    epilog=example(
        "ramp rfq new --cores 64 --start +5min --walltime 1h --price 70 -o job.xml", "ramp rfq validate job.xml"
    )
)
def rfq() -> None:
    """Write and check requests for quotation (RFQL documents)."""


def _help_of(term: Term) -> str:
    """Say what the value of a static term's option is."""
    if term.measure:
        return f"Minimum {term.words} ({term.measure}), such as {term.hint}."
    return f"{term.words[0].upper()}{term.words[1:]}, such as {term.hint}."


_with_terms: Final = together(
    click.option("--cores", metavar="N|N..M", help="Number of cores, on any nodes; with a range and --speedup the "
                 "seller chooses the number."),
    click.option("--reference-cores", type=_COUNT, metavar="N",
                 help="With a range: number of cores for which --walltime and --price hold (default: the least)."),
    click.option("--speedup", "speed_up", metavar="LAW",
                 help="With a range: speed-up law, amdahl:SERIAL_SHARE, downey:AVERAGE:SIGMA or "
                      "table:CORES=TIME,..., such as amdahl:0.05."),
    click.option("--nodes", type=_COUNT, metavar="N", help="Number of nodes; with --node-cores, instead of --cores."),
    click.option("--node-cores", type=_COUNT, metavar="M", help="Number of cores on each node."),
    click.option("--price", type=_COUNT, metavar="CREDITS", required=True,
                 help="Maximum price in credits per core-hour asked, a whole number."),
    click.option("--start", type=moment_type, metavar="TIME", help=f"Earliest start, {MOMENT_HELP} (default: now)."),
    click.option("--end", type=moment_type, metavar="TIME",
                 help="Deadline of the run (default: start + walltime + slack)."),
    click.option("--slack", type=duration_or_zero_type, metavar="TIME",
                 help="Without --end: maximum delay of the start; 0 for an exact start "
                      "(default: as long as the run, at least 1 h)."),
    click.option("--walltime", "wall_time", type=duration_type, metavar="TIME",
                 help=f"Length of the run, {DURATION_HELP} (default: the whole window)."),
    *(
        click.option(term.option[0], term.name, type=_COUNT if term.measure else str, metavar=term.option[1],
                     help=_help_of(term))
        for term in STATED_TERMS
        if term.option
    ),
    click.option("--disk", "disk_gb", type=_COUNT, metavar="GB", help="Total disk space in GB."),
    click.option("--node-disk", "node_disk_gb", type=_COUNT, metavar="GB",
                 help="Disk space on each node in GB, instead of --disk."),
    click.option("--geometry", metavar="AxBxC", help="Extents on a torus machine, such as 8x8x16."),
    click.option("--no-rotate", is_flag=True, help="Keep the order of the extents."),
    click.option("--connection", type=click.Choice(["torus", "mesh", "any"]), help="Wiring on a torus machine."),
    click.option("--node-use", type=click.Choice(["coprocessor", "virtual"]), help="Mode of the nodes on Blue Gene."),
    start_probability_option,
    site_option,
)  # fmt: skip


@rfq.command(
    "new",
    epilog=example(
        "ramp rfq new --cores 64 --start +5min --walltime 1h --price 70 -o job.xml",
        "ramp rfq new --cores 64..512 --speedup amdahl:0.05 --walltime 1h --price 70 -o moldable.xml",
        "ramp rfq new --template torus --price 60 --max-cost 20000 -o torus.xml",
        "ramp rfq new --nodes 16 --node-cores 8 --end +8h --walltime 2h --price 50 --add job.xml -o both.xml",
    ),
)
@_with_terms
@click.option(
    "--template",
    is_eager=True,
    expose_value=False,
    callback=take_template,
    metavar="NAME|FILE",
    help='TOML file of default options, such as `walltime = "1h"`, or a template of RAMP: small, large, torus.',
)
@click.option(
    "--max-cost",
    type=credits_type,
    metavar="CREDITS",
    help="Maximum total cost in credits; with --add of all units, if the earlier ones have a limit too.",
)
@click.option("--add", "earlier", multiple=True, type=existing_file_type, metavar="FILE",
              help="Document whose units come first; repeatable.")  # fmt: skip
@click.option(
    "-o", "--output", type=output_type, metavar="FILE", help="Output file (default, and `-`: standard output)."
)
def new(earlier: tuple[Path, ...], output: Path | None, max_cost: int | None, **terms: Any) -> None:
    """Write a request for one unit, or with --add for several that are bought all or none.

    Without --end the run may start later than --start by --slack. This leaves room for a late submission or a machine
    that is busy at first.
    """
    from ramp.cli.verbs.submit import load_requests
    from ramp.rfql.xml.parser import indented
    from ramp.runtime.atomic_writes import write_output
    from ramp.runtime.clock import SystemClock

    before = load_requests(earlier)
    for warning in before.warnings:
        say(f"ramp: warning: {warning}")
    document = combined([before, replace(_template(terms).at(SystemClock().now()), max_cost=max_cost)])
    shown = f'<?xml version="1.0" encoding="UTF-8"?>\n{indented(document_of(document))}'
    if output is None or output == Path("-"):
        click.echo(shown, nl=False)
        return
    write_output(output, shown)
    windows = "; ".join(_window_text(unit) for unit in document.units)
    say(f"{output}: {count_text(len(document.units), 'unit')}, {windows}")


def _window_text(unit: RequestUnit) -> str:
    start = "as soon as possible" if unit.not_before is None else f"from {moment_text(unit.not_before)}"
    return f"{start}, complete by {moment_text(unit.deadline)}"


def _template(terms: Mapping[str, Any]) -> RequestTemplate:
    given = {name: value for name, value in terms.items() if value is not None}
    for name in given.keys() & {"start", "end"}:
        given[name] = to_datetime(given[name])
    for name in given.keys() & {"wall_time", "slack"}:
        given[name] = timedelta(microseconds=given[name])
    try:
        return request(rotate=not given.pop("no_rotate"), **given)
    except ConfigurationError as error:
        named = f"{error.key}= {error.reason}" if error.key else error.reason
        raise click.UsageError(_KEYWORD.sub(_as_option, named)) from error


_KEYWORD: Final = re.compile(r"\b([a-z_]+)=(False|)(?=(.?))")


def _as_option(found: re.Match[str]) -> str:
    """Convert an argument of `ramp.request` in a message to its option: `wall_time=` is `--walltime`."""
    option = next((each.opts[0] for each in new.params if each.name in (found[1], f"no_{found[1]}")), found[1])
    return f"{option}{' ' if found[3] in (chr(39), chr(34)) else ''}"


@rfq.command("validate", epilog=example("ramp rfq validate *.xml --json"))
@click.argument("files", nargs=-1, required=True, type=file_type, metavar="FILE...")
@json_option
def validate(files: tuple[Path, ...]) -> int:
    """Check documents against the schema and the rules, and print all findings.

    Exit code 0: all valid; 2: some are not.
    """
    checked = [_validated(path) for path in files]
    for each, document in [] if printed_as_json([each for each, _ in checked]) else checked:
        if document is not None:
            limit = "" if document.max_cost is None else f", at most {amount_text(document.max_cost)} together"
            click.echo(f"{each['path']}: valid, {count_text(len(document.units), 'unit')}{limit}")
            _UNIT.print_table(document.units)
            for warning in document.warnings:
                say(f"ramp: {each['path']}: warning: {warning}")
        else:
            say(f"ramp: {each['message']}")
    return 2 if any(document is None for _, document in checked) else 0


def _validated(path: Path) -> tuple[dict[str, object], RequestForQuotation | None]:
    """Check a file; return the object that --json prints, and the document if it is valid."""
    from ramp.cli.verbs.submit import load_file

    found: dict[str, object] = {"path": str(path), "valid": False, "units": [], "warnings": []}
    try:
        document = load_file(path)
    except DocumentError as error:
        violations = list(error.violations or (error.reason,))
        return {**found, "violations": violations, "max_cost": None, "message": str(error)}, None
    found |= {"valid": True, "units": [_UNIT.plain(unit) for unit in document.units]}
    found |= {"warnings": list(document.warnings), "violations": []}
    limit = None if document.max_cost is None else credits_decimal(document.max_cost)
    return {**found, "max_cost": limit}, document


def _cores_text(unit: RequestUnit) -> str:
    nodes = f" ({unit.cores.count} x {unit.cores.cores_per_node})" if isinstance(unit.cores, Nodes) else ""
    sizes = "" if unit.moldable is None else f" ({unit.moldable.least} to {unit.moldable.most}, {unit.moldable.law})"
    return f"{unit.cores.total}{nodes}{sizes}"


def _nodes(unit: RequestUnit) -> Nodes | None:
    return unit.cores if isinstance(unit.cores, Nodes) else None


_UNIT: Final[Fields[RequestUnit]] = Fields(
    Field("unit", "Unit", lambda unit: unit.number, NUMBER),
    Field("cores", "Cores", lambda unit: unit.cores.total, text=_cores_text),
    Field("nodes", "", lambda unit: (nodes := _nodes(unit)) and nodes.count),
    Field("node_cores", "", lambda unit: (nodes := _nodes(unit)) and nodes.cores_per_node),
    *(Field(term.name, "", attrgetter(term.name)) for term in STATED_TERMS),
    Field(
        "not_before",
        "Not before",
        lambda unit: unit.not_before,
        MOMENT,
        text=lambda unit: "as soon as possible" if unit.not_before is None else moment_text(unit.not_before),
    ),
    Field("deadline", "Deadline", lambda unit: unit.deadline, MOMENT),
    Field("cores_least", "", lambda unit: unit.moldable and unit.moldable.least),
    Field("cores_most", "", lambda unit: unit.moldable and unit.moldable.most),
    Field("speed_up", "", lambda unit: unit.moldable and unit.moldable.law),
    Field("sites", "", lambda unit: None if unit.sites is None else list(unit.sites)),
    Field(
        "wall_time_s",
        "Wall time",
        lambda unit: unit.wall_time,
        Kind(seconds),
        text=lambda unit: "the whole window" if unit.wall_time is None else duration_text(unit.wall_time),
    ),
    Field("cpu_hour_cost", "Most credits/core-hour", lambda unit: unit.cpu_hour_cost, NUMBER),
)
