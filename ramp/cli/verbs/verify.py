"""`ramp verify`: offline checks of agreements with their amendments, of cancellations and of sealed messages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ramp.cli.options import example, existing_file_type, state_options
from ramp.cli.views.output import (
    amount_text,
    count_text,
    moment_text,
    price_text,
    print_line,
    print_pairs,
    printed_as_json,
    say,
)
from ramp.cli.views.reports import amendment_text, amount_moved
from ramp.errors import DocumentError
from ramp.model.instant import iso
from ramp.model.money import credits_decimal
from ramp.model.price_paid import how_priced
from ramp.runtime.state_folder import StateFolder

if TYPE_CHECKING:
    from ramp.model.acl import Message
    from ramp.rfql.signing.verification import Chain, FileReport


@click.command(epilog=example("ramp verify agreement.xml --ca market-ca.pem", "ramp verify payment.txt --json"))
@click.argument("files", type=existing_file_type, metavar="FILE...", nargs=-1,
                required=True)  # fmt: skip
@click.option("--ca", "ca_file", type=existing_file_type, metavar="FILE",
              help="The authority's certificate, PEM (default: the state folder's, with its revocations).")  # fmt: skip
@state_options
def verify(files: tuple[Path, ...], ca_file: Path | None, state: StateFolder) -> int:
    """Check signed documents offline: the signatures, the signers' roles, and that the parts agree.

    FILE is an agreement, an amendment or a cancellation (XML), or a sealed message (text that begins with "RAMP sealed
    message 1"). Every check is listed. Give an agreement together with its amendments to check the whole chain: each
    must change the state that the previous one made, and refund the right amount.

    Exit code 0: all are valid; 1: at least one is invalid; 2: no such file or authority, or an unknown document.
    """
    from ramp.rfql.signing.certificates import Trust
    from ramp.rfql.signing.verification import chains_of, verify_file
    from ramp.runtime.clock import SystemClock
    from ramp.runtime.keys.store import KeyStore, load_ca_certificates, trust_of

    for file in files:
        with file.open("rb") as stream:
            is_request = b"<RequestForQuotation" in stream.read(2000)
        if is_request:
            raise DocumentError(
                "is a request for quotation, which has no signature; check it with `ramp rfq validate`",
                source=str(file),
            )
    now = SystemClock().now()
    trust = trust_of(KeyStore(state.keys)) if ca_file is None else Trust(load_ca_certificates(ca_file))
    reports = [verify_file(file, trust, now) for file in files]
    chains = chains_of(reports)
    holds = all(report.holds for report in reports) and not any(chain.failure for chain in chains)
    several = {"holds": holds, "files": [report.as_dict() for report in reports], "chains": _chain_objects(chains)}
    if not printed_as_json(reports[0].as_dict() if len(reports) == 1 else several):
        for report in reports:
            _print_report(report)
        for chain in chains:
            _print_chain(chain)
    return 0 if holds else 1


def _print_report(report: FileReport) -> None:
    for sentence in report.passed:
        print_line(f"passed: {sentence}")
    for warning in report.warnings:
        say(f"ramp: warning: {warning}")
    if not report.holds:
        print_line(f"FAILED: {report.failure}")
        say(f"ramp: {report.path}: does not hold")
        return
    _print_what(report)
    print_line(f"{report.path}: holds")


def _chain_objects(chains: Sequence[Chain]) -> list[dict[str, object]]:
    return [
        {
            "agreement_id": chain.agreement.agreement_id,
            "amendments": [each.number for each in chain.amendments],
            "holds": not chain.failure,
            "failure": chain.failure,
            "cores": chain.states[-1].cores,
            "end": iso(chain.states[-1].until),
            "returned": credits_decimal(chain.given_back),
            "charged": credits_decimal(chain.charged),
        }
        for chain in chains
    ]


def _print_chain(chain: Chain) -> None:
    name = chain.agreement.agreement_id
    if chain.failure:
        print_line(f"FAILED: {chain.failure}")
        say(f"ramp: {name}: its amendments do not form a chain")
        return
    last, paid = chain.states[-1], amount_text(chain.agreement.cost + chain.charged)
    print_line(
        f"agreement {name} and its {count_text(len(chain.amendments), 'amendment')} are one chain: {last.cores} cores "
        f"until {moment_text(last.until)}, {amount_text(chain.given_back)} returned of {paid}"
    )
    for amendment in chain.amendments:
        print_line(f"  {amendment_text(amendment)}")


def _print_what(report: FileReport) -> None:
    if report.agreement is not None:
        bought = report.agreement
        print_line(
            f"{bought.user} has bought {bought.offer.cores} cores of {bought.resource} "
            f"from {moment_text(bought.offer.start)} to {moment_text(bought.offer.end)} "
            f"at {price_text(bought.offer.cpu_hour_cost)}, {amount_text(bought.cost)} in all (agreement "
            f"{bought.agreement_id}, reservation {bought.reservation_id}, order {bought.order_id})"
        )
        if how := how_priced(bought):
            print_line(how)
    elif report.amendment is not None:
        changed = report.amendment
        print_line(
            f"{changed.user} and {changed.resource} have changed agreement {changed.agreement_id} (amendment "
            f"{changed.number}): {changed.cores} cores until {moment_text(changed.until)} from "
            f"{moment_text(changed.effective_at)} on, for {amount_moved(changed)}"
        )
    elif report.cancellation is not None:
        ended = report.cancellation
        print_line(
            f"{ended.user} has cancelled agreement {ended.agreement_id} with {ended.resource} "
            f"at {moment_text(ended.issued_at)}: {ended.reason}"
        )
    elif report.message is not None:
        _print_message(report.message)


def _print_message(message: Message) -> None:
    from ramp.rfql.signing.verification import sealed_document

    assert message.seal is not None, "it was opened"
    print_pairs(
        (
            ("Said by", f"{message.sender}, certified as {message.seal.role}"),
            ("To", message.receiver),
            ("At", moment_text(message.seal.signed_at)),
            ("Conversation", message.conversation_id),
            ("In answer to", message.in_reply_to),
            ("What", f"{type(message.content).__name__} ({message.performative})"),
            ("Document", sealed_document(message)),
        )
    )
