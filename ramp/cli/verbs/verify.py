"""`ramp verify`: an agreement, a cancellation or a sealed message checked offline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ramp.cli.options import example, json_option, state_option
from ramp.cli.views.output import amount_text, moment_text, price_text, print_json, print_line, print_pairs, say
from ramp.errors import DocumentError
from ramp.model.agreement import Agreement, Cancellation
from ramp.model.instant import iso
from ramp.model.price_paid import how_priced
from ramp.runtime.state_folder import StateFolder

if TYPE_CHECKING:
    from ramp.model.acl import Message
    from ramp.rfql.signing.verification import FileReport


@click.command(epilog=example("ramp verify agreement.xml --ca market-ca.pem", "ramp verify payment.txt --json"))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE")
@click.option("--ca", "ca_file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="The market's authority, PEM (default: the state folder's, and its revocations).")  # fmt: skip
@state_option
@json_option
@click.pass_context
def verify(ctx: click.Context, file: Path, ca_file: Path | None, state: StateFolder, as_json: bool) -> None:
    """Check what somebody has signed without asking anybody: whose it is, in which role, and that its parts agree.

    FILE is an agreement or a cancellation (XML), or a sealed message (text that begins with "RAMP sealed message 1").
    Every check is listed. Exit code 0: it holds; 1: it does not; 2: there is no such file or authority, or it is
    neither of these.
    """
    from ramp.rfql.signing.verification import verify_file
    from ramp.runtime.clock import SystemClock
    from ramp.runtime.keys.store import KeyStore, load_ca_certificates

    if _is_request(file):
        raise DocumentError(
            "is a request for quotation, which nobody signs; `ramp rfq validate` checks it", source=str(file)
        )
    now = SystemClock().now()
    if ca_file is not None:
        report = verify_file(file, load_ca_certificates(ca_file), now)
    else:
        store = KeyStore(state.keys)
        report = verify_file(
            file, store.ca_certificates(), now, pins=store.certificate_on_file, revoked=store.is_revoked
        )
    if as_json:
        print_json(report.as_dict())
        ctx.exit(0 if report.holds else 1)
    for sentence in report.passed:
        print_line(f"passed: {sentence}")
    for warning in report.warnings:
        say(f"ramp: warning: {warning}")
    if not report.holds:
        print_line(f"FAILED: {report.failure}")
        say(f"ramp: {file}: does not hold")
        ctx.exit(1)
    _print_what(report)
    click.echo(f"{file}: holds")


def _is_request(file: Path) -> bool:
    """Whether a file looks like a request for quotation."""
    with file.open("rb") as stream:
        return b"<RequestForQuotation" in stream.read(2000)


def _print_what(report: FileReport) -> None:
    if report.agreement is not None:
        print_line(_agreement_summary(report.agreement))
    elif report.cancellation is not None:
        print_line(_cancellation_summary(report.cancellation))
    elif report.message is not None:
        _print_message(report.message)


def _agreement_summary(agreement: Agreement) -> str:
    offer = agreement.offer
    return (
        f"{agreement.user} has bought {offer.cores} cores of {agreement.resource} "
        f"from {moment_text(offer.start)} to {moment_text(offer.end)} at {price_text(offer.cpu_hour_cost)}, "
        f"{amount_text(agreement.cost)} in all (agreement {agreement.agreement_id}, "
        f"reservation {agreement.reservation_id}, order {agreement.order_id})" + _found(agreement)
    )


def _found(agreement: Agreement) -> str:
    text = how_priced(agreement)
    return f"\n{text}" if text else ""


def _cancellation_summary(cancellation: Cancellation) -> str:
    return (
        f"{cancellation.user} has cancelled agreement {cancellation.agreement_id} with {cancellation.resource} "
        f"at {moment_text(cancellation.issued_at)}: {cancellation.reason}"
    )


def _print_message(message: Message) -> None:
    from ramp.rfql.signing.verification import sealed_document

    assert message.seal is not None, "it was opened"
    print_pairs(
        (
            ("Said by", f"{message.sender}, certified as {message.seal.role}"),
            ("To", message.receiver),
            ("At", iso(message.seal.signed_at)),
            ("Conversation", message.conversation_id),
            ("In answer to", message.in_reply_to),
            ("What", f"{type(message.content).__name__} ({message.performative})"),
            ("Document", sealed_document(message)),
        )
    )
