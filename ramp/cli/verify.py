"""`ramp verify`: an agreement checked offline."""

from __future__ import annotations

from pathlib import Path

import click

from ramp.cli.options import example, json_option, state_option
from ramp.cli.output import amount_text, moment_text, price_text, print_json, say
from ramp.model.agreement import Agreement
from ramp.runtime.state_folder import StateFolder


@click.command(epilog=example("ramp verify agreement.xml --ca market-ca.pem"))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="AGREEMENT.xml")
@click.option("--ca", "ca_file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="The market's authority, PEM (default: the state folder's, and its revocations).")  # fmt: skip
@state_option
@json_option
@click.pass_context
def verify(ctx: click.Context, file: Path, ca_file: Path | None, state: StateFolder, as_json: bool) -> None:
    """Check an agreement without asking anybody: both signatures, whose they are, and that its parts agree.

    Every check is listed. Exit code 0: it holds; 1: it does not; 2: there is no such file or no authority.
    """
    from ramp.rfql.verification import verify_agreement_file
    from ramp.runtime.clock import SystemClock
    from ramp.runtime.keys import KeyStore, load_ca_certificates

    now = SystemClock().now()
    if ca_file is not None:
        report = verify_agreement_file(file, load_ca_certificates(ca_file), now)
    else:
        store = KeyStore(state.keys)
        report = verify_agreement_file(
            file, store.ca_certificates(), now, pins=store.certificate_on_file, revoked=store.is_revoked
        )
    if as_json:
        print_json(report.as_dict())
        ctx.exit(0 if report.holds else 1)
    for sentence in report.passed:
        click.echo(f"passed: {sentence}")
    for warning in report.warnings:
        say(f"ramp: warning: {warning}")
    if report.agreement is None:
        click.echo(f"FAILED: {report.failure}")
        say(f"ramp: {file}: does not hold")
        ctx.exit(1)
    click.echo(_summary(report.agreement))
    click.echo(f"{file}: holds")


def _summary(agreement: Agreement) -> str:
    offer = agreement.offer
    return (
        f"{agreement.user} has bought {offer.cores} cores of {agreement.resource} "
        f"from {moment_text(offer.start)} to {moment_text(offer.end)} at {price_text(offer.cpu_hour_cost)}, "
        f"{amount_text(agreement.cost)} in all (agreement {agreement.agreement_id}, "
        f"reservation {agreement.reservation_id})"
    )
