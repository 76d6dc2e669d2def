"""`ramp plugins check`: does a plug-in keep the contract of `ramp.plugins.interface`?"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ramp.cli.options import RealNumber, WholeNumber, example, json_option
from ramp.cli.views.output import count_text, print_rows, printed_as_json, say, wants_json
from ramp.errors import ConfigurationError
from ramp.shipped_files import find_config

if TYPE_CHECKING:
    from ramp.plugins.contract import Result, Subject
    from ramp.plugins.interface import PluginSettings

LIMIT_DEFAULT_S: Final = 60.0
"""How long one rule may take by default, in seconds; a rule is some tens of calls."""

CORES_DEFAULT: Final = 64
"""Cores of the machine where no configuration says."""


@click.command(
    "check",
    epilog=example("ramp plugins check steady", "ramp plugins check fake_qstat --config table2 --resource curie3"),
)
@click.argument("name", metavar="NAME")
@click.option(
    "--config", metavar="CONFIG", help="Configuration of a market; take cores and options from its resource with NAME."
)
@click.option("--resource", metavar="RESOURCE", help="Resource to use if several have NAME [default: the first].")
@click.option("--cores", type=WholeNumber(min=4), help=f"Without --config: the machine's cores "
              f"[default: {CORES_DEFAULT}].")  # fmt: skip
@click.option("--limit", "limit_s", type=RealNumber(0.1, 3600), default=LIMIT_DEFAULT_S, show_default=True,
              help="Time limit of one rule in seconds.")  # fmt: skip
@json_option
@click.pass_context
def check(
    ctx: click.Context, name: str, config: str | None, resource: str | None, cores: int | None, limit_s: float
) -> None:
    """Check all rules of the plug-in contract on the plug-in NAME (an entry point in `ramp.resource_plugins`).

    Each rule opens the plug-in with an empty state folder. It quotes, holds, confirms and releases slots in the coming
    week and gives everything back. On a machine in use this reserves some cores for some seconds; some rules take all
    free cores of one hour. Invalid calls are tried too. No call may take longer than --limit. Exit code 0: all rules
    hold; 1: at least one is broken.
    """
    from ramp.plugins.contract import Verdict, check_plugin

    def tell(result: Result) -> None:
        if not wants_json() and result.verdict is not Verdict.KEPT:
            say(f"{result.rule.name}: {result.verdict}: {result.reason}")
            if result.verdict is Verdict.BROKEN:
                say(f"  right: {result.rule.sentence}")

    with tempfile.TemporaryDirectory(prefix="ramp-plugin-", ignore_cleanup_errors=True) as folder:
        subject = _subject(name, config, resource, cores, Path(folder))
        results = check_plugin(subject, limit_s, tell)
    verdicts = [result.verdict for result in results]
    if not printed_as_json(_object(name, subject, results)):
        counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in Verdict)
        click.echo(f"{name} ({subject.settings.resource}): {count_text(len(results), 'rule')}, {counts}")
        print_rows(
            ("Call", "Slowest (ms)"),
            [(call, f"{1000 * slowest:.1f}") for call, slowest in subject.slowest.items()],
            right=("Slowest (ms)",),
        )
    code = 1 if Verdict.BROKEN in verdicts else 0
    if any("did not return" in result.reason for result in results):
        sys.stdout.flush()
        os._exit(code)  # a call still hangs, and the interpreter would wait for its threads
    ctx.exit(code)


def _subject(name: str, config: str | None, resource: str | None, cores: int | None, folder: Path) -> Subject:
    from ramp.plugins.contract import Subject
    from ramp.runtime.clock import SystemClock
    from ramp.runtime.configuration.values import PLUGIN_GROUP, entry_point

    now = SystemClock().now()
    settings = _settings(name, config, resource, cores, now)
    subject = Subject(entry_point(PLUGIN_GROUP, name).load(), settings, now, folder)
    try:
        subject.open_raw()
    except ConfigurationError as error:
        hint = "; give its options with --config CONFIG" if config is None else ""
        raise ConfigurationError(f"cannot open {name}: {error}{hint}") from error
    except Exception as error:  # a plug-in may raise anything, which the rules report
        say(f"cannot open {name}: {error}")
    return subject


def _settings(name: str, config: str | None, resource: str | None, cores: int | None, now: int) -> PluginSettings:
    from ramp.plugins.interface import PluginSettings
    from ramp.runtime.configuration.file import load_config
    from ramp.runtime.configuration.values import plugin_settings

    if config is None:
        if resource is not None:
            raise click.UsageError("--resource needs --config")
        return PluginSettings("checked", cores or CORES_DEFAULT, 1, now)
    if cores is not None:
        raise click.UsageError("--config and --cores exclude each other")
    loaded = load_config(find_config(config))
    having = [each for each in loaded.resources if each.plugin == name]
    if resource is not None:
        having = [each for each in having if each.name == loaded.resource(resource).name]
    if not having:
        which = "no resource has the plug-in" if resource is None else f"{resource} has another plug-in than"
        raise ConfigurationError(f"{which} {name!r}", path=loaded.path, key="resources")
    return plugin_settings(having[0], now, None)


def _object(name: str, subject: Subject, results: list[Result]) -> dict[str, Any]:
    return {
        "plugin": name,
        "resource": subject.settings.resource,
        "rules": [
            {
                "name": result.rule.name,
                "sentence": result.rule.sentence,
                "verdict": result.verdict,
                "reason": result.reason,
            }
            for result in results
        ],
        "slowest_s": subject.slowest,
    }
