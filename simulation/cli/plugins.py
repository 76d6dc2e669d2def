"""`ramp plugins`: what is installed of each sort that can be added to; `check` is in `ramp.cli.verbs.plugins`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

import click

from ramp.cli.main import VERB_GROUP
from ramp.cli.options import example
from ramp.cli.verbs.plugins import check
from ramp.cli.views.output import print_json, print_line, say
from ramp.declarations import Sort
from ramp.entry_points import entry_points
from ramp.errors import ConfigurationError
from ramp.options import described_options, first_paragraph, nearest_name, options_of
from ramp.queue_bound.predictor import PREDICTORS
from ramp.runtime.auction_rules import RULES
from ramp.runtime.configuration.values import PLUGIN_GROUP, PRICING_GROUP
from simulation.experiments.discovery import GUESTS, shipped_experiments
from simulation.koala.scheduler import APPROACHES, PLACEMENT_POLICIES, SIZE_POLICIES
from simulation.machines.allocator_declaration import ALLOCATORS
from simulation.machines.description import KINDS
from simulation.schedulers.declaration import SCHEDULERS


@dataclass(frozen=True, slots=True)
class Plugin:
    """One thing that is installed.

    Attributes:
        sort: what it is.
        name: under which it is chosen.
        origin: where it comes from.
        about: one line.
        options: name, type, default and words of each.
        error: why it cannot be used; empty where it can.
    """

    sort: str
    name: str
    origin: str
    about: str = ""
    options: tuple[dict[str, str], ...] = ()
    error: str = ""


def _declared(sort: str, declared: Sort[Any], options_in: str = "") -> Callable[[], Iterator[Plugin]]:
    """List a sort of declarations; `options_in` names the attribute that tells of their options."""

    def listed() -> Iterator[Plugin]:
        for one in declared.listed():
            its = one.declaration
            options = tuple(described_options(getattr(its, options_in))) if its and options_in else ()
            yield Plugin(sort, one.name, one.origin, its.about if its else "", options, one.error)

    return listed


def _experiments() -> Iterator[Plugin]:
    for name, shipped in shipped_experiments().items():
        options = tuple(
            {"name": key, "type": type(default).__name__ if default else "", "default": str(default or ""), "about": ""}
            for key, default in shipped.options.items()
        )
        yield Plugin("experiment", name, shipped.cases.__module__, shipped.about, options)
    yield from _declared("experiment", GUESTS)()


def _of_group(sort: str, group: str) -> Callable[[], Iterator[Plugin]]:
    def listed() -> Iterator[Plugin]:
        for entry in sorted(entry_points(group), key=lambda each: each.name):
            try:
                loaded = entry.load()
            except Exception as error:
                why = f"cannot be loaded: {error}"
                yield Plugin(sort, entry.name, entry.value, error=why)
                continue
            words = first_paragraph(_told(loaded, group))
            yield Plugin(sort, entry.name, entry.value, words, tuple(described_options(options_of(loaded))))

    return listed


def _told(loaded: Any, group: str) -> object:
    """What tells of a thing: a verb's function, a strategy itself, the module of what opens a plug-in."""
    if isinstance(loaded, click.Command):
        return loaded.callback
    return loaded if group == PRICING_GROUP and inspect.getdoc(loaded) else inspect.getmodule(loaded)


SORTS: Final[dict[str, Callable[[], Iterator[Plugin]]]] = {
    "scheduler": _declared("scheduler", SCHEDULERS, "options"),
    "allocator": _declared("allocator", ALLOCATORS, "make"),
    "machine": _declared("machine", KINDS, "description"),
    "approach": _declared("approach", APPROACHES),
    "sizes": _declared("sizes", SIZE_POLICIES),
    "placement": _declared("placement", PLACEMENT_POLICIES),
    "rule": _declared("rule", RULES),
    "predictor": _declared("predictor", PREDICTORS, "options"),
    "resource": _of_group("resource", PLUGIN_GROUP),
    "pricing": _of_group("pricing", PRICING_GROUP),
    "experiment": _experiments,
    "verb": _of_group("verb", VERB_GROUP),
}
"""Lists of all sorts, by what one thing of the sort is."""


@click.group(
    invoke_without_command=True,
    epilog=example("ramp plugins", "ramp plugins list scheduler", "ramp plugins check steady"),
)
@click.pass_context
def plugins(ctx: click.Context) -> None:
    """Show what is installed of each sort; try the contract of plug-ins on one. Alone it lists everything."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_installed, sorts=(), as_json=False)


plugins.add_command(check)


@plugins.command("list", epilog=example("ramp plugins list scheduler", "ramp plugins list --json"))
@click.argument("sorts", nargs=-1, metavar=f"[{'|'.join(SORTS)}]...")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def list_installed(sorts: tuple[str, ...], as_json: bool) -> None:
    """Show the installed plug-ins with their options, of the named kinds or of all.

    A plug-in that cannot be used is listed with the reason.
    """
    for sort in sorts:
        if sort not in SORTS:
            raise ConfigurationError(f"unknown sort {sort!r}{nearest_name(sort, list(SORTS))}", key="plugins")
    found = [plugin for sort in sorts or SORTS for plugin in SORTS[sort]()]
    if as_json:
        print_json([asdict(plugin) for plugin in found])
        return
    for sort in sorts or SORTS:
        click.echo(f"{sort}:")
        for plugin in found:
            if plugin.sort == sort:
                _print(plugin)
    if broken := [plugin.name for plugin in found if plugin.error]:
        say(f"cannot be used: {', '.join(broken)}")


def _print(plugin: Plugin) -> None:
    foreign = "" if plugin.origin.startswith(("ramp.", "simulation.")) else f"  [{plugin.origin}]"
    about = f"{plugin.error and 'cannot be used: '}{plugin.error or plugin.about}{foreign}"
    print_line(f"  {plugin.name:<18} {about}", indent=6)
    for option in plugin.options:
        default = f" [{option['default']}]" if option["default"] else ""
        print_line(f"      {option['name']}: {option['type']}{default}  {option['about']}".rstrip(), indent=10)
