"""The command `ramp`: finds verbs without importing them, and turns errors into one line and an exit code.

Exit codes: 0 done (for `submit`: committed), 1 not bought, refused or failed, 2 bad input, 70 a fault of the program,
130 interrupted.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import metadata
from typing import Final, NamedTuple

import click
from click.shell_completion import CompletionItem

from ramp.cli.views.output import visible_output
from ramp.entry_points import entry_points_by_name
from ramp.errors import ConfigurationError, RampError

VERB_GROUP: Final = "ramp.commands"
"""Entry point group of verbs that live in other packages."""

EXIT_FAULT: Final = 70
"""EX_SOFTWARE of BSD's sysexits: the program is at fault, not its user."""

EXIT_INTERRUPTED: Final = 130
"""Exit code of shells for a program that SIGINT ended (128 + 2)."""

DEBUG_OPTION: Final = "--debug"
DEBUG_VARIABLE: Final = "RAMP_DEBUG"


class Verb(NamedTuple):
    """A verb of this package: where it is, and its line in `ramp --help`, so that nothing is imported for that."""

    section: str
    place: str
    summary: str


_TRY, _BUY, _ACCOUNT = "See it work", "Buy machine time", "Account"
_MARKET, _FILES = "The market", "Documents, keys, configuration"

VERBS: Final[dict[str, Verb]] = {
    "demo": Verb(_TRY, "ramp.cli.verbs.demo:demo", "Launch a market, buy a two-unit request, show everything, stop."),
    "web": Verb(_TRY, "ramp.cli.web:web", "Serve the market's web pages."),
    "up": Verb(_MARKET, "ramp.cli.verbs.launch:up", "Start a market in the foreground (--detach: background)."),
    "down": Verb(_MARKET, "ramp.cli.verbs.launch:down", "Stop the market."),
    "user": Verb(_MARKET, "ramp.cli.verbs.changes:user", "Add or remove a user while the market runs."),
    "resource": Verb(_MARKET, "ramp.cli.verbs.changes:resource", "Add, drain, price or remove a resource at run time."),
    "invite": Verb(_MARKET, "ramp.cli.verbs.joining:invite", "Invite a user or resource of another site."),
    "join": Verb(_MARKET, "ramp.cli.verbs.joining:join", "Join another market with an invitation."),
    "restart": Verb(_MARKET, "ramp.cli.verbs.changes:restart", "Restart one agent."),
    "reload": Verb(_MARKET, "ramp.cli.verbs.changes:reload", "Apply changes from the configuration file."),
    "events": Verb(_MARKET, "ramp.cli.verbs.events:events", "Show sales, refusals, restarts; --follow; --changes."),
    "watch": Verb(_MARKET, "ramp.cli.watching.stream:watch", "Watch auctions, machines, agents and events live."),
    "ps": Verb(_MARKET, "ramp.cli.verbs.launch:ps", "Show the running agents."),
    "doctor": Verb(_MARKET, "ramp.cli.verbs.launch:doctor", "Diagnose problems and suggest fixes."),
    "resources": Verb(_MARKET, "ramp.cli.verbs.machines:resources", "Show the resources that sell now."),
    "qstat": Verb(_MARKET, "ramp.cli.verbs.machines:qstat", "Show a machine's queue, reservations and projected load."),
    "submit": Verb(_BUY, "ramp.cli.verbs.submit:submit", "Auction a request, buy the best offers and pay."),
    "quote": Verb(_BUY, "ramp.cli.verbs.submit:quote", "Auction a request without buying."),
    "status": Verb(_BUY, "ramp.cli.verbs.requests:status", "Show requests and how they ended."),
    "reservations": Verb(_BUY, "ramp.cli.verbs.requests:reservations", "Show reservations."),
    "show": Verb(_BUY, "ramp.cli.verbs.requests:show", "Show a request, agreement or reservation in full."),
    "resize": Verb(_BUY, "ramp.cli.verbs.requests:resize", "Change the size or end of a reservation."),
    "cancel": Verb(_BUY, "ramp.cli.verbs.requests:cancel", "Cancel reservations for a refund; withdraw a request."),
    "launch": Verb(_BUY, "ramp.cli.verbs.jobs:launch", "Run a command or a script on a reservation."),
    "jobs": Verb(_BUY, "ramp.cli.verbs.jobs:jobs", "Show launched jobs, or one with its output; cancel it."),
    "balance": Verb(_ACCOUNT, "ramp.cli.verbs.accounts:balance", "Show your balance; --statement: all payments."),
    "bank": Verb(_MARKET, "ramp.cli.verbs.accounts:bank", "Show all trades and accounts (keeper); audit the ledger."),
    "rfq": Verb(_FILES, "ramp.cli.verbs.rfq:rfq", "Write and check requests for quotation (RFQL)."),
    "verify": Verb(_FILES, "ramp.cli.verbs.verify:verify", "Check an agreement's signatures and contents offline."),
    "keys": Verb(_FILES, "ramp.cli.verbs.keys:keys", "Create, show, renew and revoke keys and certificates."),
    "config": Verb(_FILES, "ramp.cli.verbs.config:config", "Check and show a market's configuration."),
    "completion": Verb(_FILES, "ramp.cli.options:completion", "Print the completion script for a shell."),
}
_SECTIONS: Final = (_TRY, _BUY, _ACCOUNT, _MARKET, _FILES)
ALIASES: Final = {"plugin": "plugins"}
"""Other names of commands, which no list shows."""


class LazyGroup(click.Group):
    """Imports a verb only when it is used; one that cannot be loaded does not break the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*VERBS, *_foreign_verbs()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        verb = VERBS.get(cmd_name)
        if verb is not None:
            module, _, attribute = verb.place.partition(":")
            command: click.Command = getattr(importlib.import_module(module), attribute)
            return command
        entry = _foreign_verbs().get(cmd_name)
        if entry is None:
            return None
        try:
            loaded = entry.load()
        except Exception as error:
            raise ConfigurationError(f"cannot load the command {cmd_name!r} from {entry.value}: {error}") from error
        if not isinstance(loaded, click.Command):
            raise ConfigurationError(f"cannot use the command {cmd_name!r}: {entry.value} is not a click command")
        return loaded

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        args = [ALIASES.get(args[0], args[0]), *args[1:]] if args else args
        if args and not args[0].startswith("-") and args[0] not in VERBS and args[0] not in _foreign_verbs():
            close = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise click.UsageError(f"unknown command {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section in _SECTIONS:
            with formatter.section(section):
                rows = [(name, verb.summary) for name, verb in VERBS.items() if verb.section == section]
                formatter.write_dl(rows, col_max=16)
        foreign = sorted(_foreign_verbs())
        if foreign:
            with formatter.section("Simulation and other commands (`ramp COMMAND --help`)"):
                formatter.write_text(", ".join(foreign))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        helps = {name: verb.summary for name, verb in VERBS.items()}
        items = [
            CompletionItem(name, help=helps.get(name, ""))
            for name in self.list_commands(ctx)
            if name.startswith(incomplete)
        ]
        return items + click.Command.shell_complete(self, ctx, incomplete)


def _foreign_verbs() -> dict[str, metadata.EntryPoint]:
    return {name: entry for name, entry in entry_points_by_name(VERB_GROUP).items() if name not in VERBS}


_TOUR: Final = """\b
Five minutes:
  ramp demo                                    the whole market once, then stop
  ramp up --detach                             a market of 24 machines
  ramp rfq new --cores 64 --start +5min --walltime 1h --price 70 -o job.xml
  ramp submit job.xml                          auction, two-phase commit, payment
  ramp reservations                            your reservations
  ramp down

\b
Exit codes: 0 done (submit: bought and paid); 1 refused, failed, not bought, or no market is
running; 2 bad input; 70 internal error; 130 interrupted. COMMAND --help lists those of each command.
"""


@click.group(
    cls=LazyGroup, epilog=_TOUR, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(package_name="ramp-market", prog_name="ramp")
@click.option(DEBUG_OPTION, is_flag=True, help=f"Show tracebacks of errors (also {DEBUG_VARIABLE}=1).")
def cli(debug: bool) -> None:
    """RAMP: a Resource Allocation Market Place where agents trade supercomputer time.

    Results go to standard output, everything else to standard error; --json prints results as JSON.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with these arguments (default: those of the process); return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = DEBUG_OPTION in given or bool(os.environ.get(DEBUG_VARIABLE))
    given = [argument for argument in given if argument != DEBUG_OPTION]  # it may stand anywhere
    with visible_output():
        return _run(given, debug)


def _run(given: list[str], debug: bool) -> int:
    try:
        result = cli.main(given, prog_name="ramp", standalone_mode=False)
        sys.stdout.flush()  # so that a full disk is heard of here
    except RampError as error:
        return _failed(str(error), error.exit_code, debug)
    except click.UsageError as error:
        where = "ramp" if error.ctx is None else error.ctx.command_path
        return _failed(f"{_sentence(error)} (see `{where} --help`)", error.exit_code, debug)
    except click.ClickException as error:
        return _failed(_sentence(error), error.exit_code, debug)
    except (click.Abort, KeyboardInterrupt):
        return _failed("interrupted", EXIT_INTERRUPTED, debug=False)
    except OSError as error:
        from ramp.cli.views.output import silence_output
        from ramp.runtime.storage_errors import is_storage_failure, reason_of

        if error.filename is None:
            silence_output()  # or the interpreter complains at its end
        if isinstance(error, BrokenPipeError):
            return 1
        if error.filename is None and not is_storage_failure(error):
            return _fault(error, debug)
        what = "cannot write the output: " if error.filename is None else ""
        return _failed(f"{what}{reason_of(error)}", 1, debug)
    except Exception as error:
        return _fault(error, debug)
    return result if isinstance(result, int) else 0


def _fault(error: Exception, debug: bool) -> int:
    hint = "" if debug else f" (see the traceback with {DEBUG_OPTION})"
    return _failed(f"internal error: {error}{hint}", EXIT_FAULT, debug)


def _sentence(error: click.ClickException) -> str:
    text = error.format_message().rstrip(".")
    return text if text[:2].isupper() else text[:1].lower() + text[1:]


def _failed(text: str, exit_code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    from ramp.cli.views.output import say

    say(f"ramp: {text}")
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
