"""The page of messages, drawn from the codec: what each says, who may say it, its document, and an example."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any, Final

from ramp.model import contents
from ramp.model.acl import CONTENT_OF, OFFERS, ROLES_OF, SEALED
from ramp.model.agreement import Signed
from ramp.model.communicative_acts import DECLARED
from ramp.rfql.record import attribute_name
from ramp.shipped_files import shipped_directory
from sentences import attribute_sentences, cell, first_paragraph

_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/=]{40,}\s+)*[A-Za-z0-9+/=]{40,}(?:\s+[A-Za-z0-9+/=]+(?=\s*<))?")
FEW_LINES: Final = 4
"""A document of fewer lines was written by the program, without line ends."""
WIDTH: Final = 100
"""Columns of an example that fit a page."""

_KINDS: Final = {
    "str": "text",
    "int": "whole number",
    "int | None": "whole number",
    "float": "number",
    "bool": "`true` or `false`",
    "Instant": "time, ISO 8601 in UTC",
    "Instant | None": "time, ISO 8601 in UTC",
    "Duration": "duration, ISO 8601",
    "Duration | None": "duration, ISO 8601",
    "RefusalCode": "refusal code",
    "JobState": "state of a job",
    "Delivery": "measured delivery",
    "Seal": "a sealed message in full",
    "Signed": "a signed document in full",
    "RequestForQuotation": "an RFQL document",
}


_INTRODUCTION: Final = """\
Each message is a FIPA ACL message over XMPP. The metadata of the stanza holds its slots, the thread is the
conversation, and the body is one XML document that follows the schemas in `schemas/`. Messages about obligations and
money are sealed: a detached signature covers the exact text, addressee and time. Agreements and cancellations also
have XML signatures. This page is generated from the codec's tables and tested examples.

Times are ISO 8601 in UTC, durations are ISO 8601, amounts are hundredths of a credit. An attribute with its default
value is left out.

An offer to a call that names an auction rule repeats the call: `asked` is its price, and `terms` is the SHA-256
digest of the unit, as base64url without padding. The digest covers JSON in UTF-8 with sorted keys, no blanks and
escaped non-ASCII characters: `{"rule": NAME, "unit": {...}}`. The unit has all terms under the names of
{py:class}`ramp.model.request.RequestUnit` except `cpu_hour_cost`. Times and durations are microseconds. Cores, disk
and torus terms are objects with their class under `is`.

""".splitlines()

SENTENCES: Final = {
    "request_id": "The auction.",
    "round_number": "The answered round, from 1.",
    "offers": "An offer for each unit that the resource can serve.",
    "refusals": "A coded refusal for each other unit.",
    "offer_id": "The offer.",
    "code": "Reason as a code from a closed list.",
    "detail": "Reason as a sentence.",
    "reason": "Reason as a sentence.",
    "order_id": "The payment order.",
    "agreement_id": "The agreement.",
    "nonce": "Id of the query, which rules out old answers.",
    "reference": "Id of the refused order.",
    "reservation_id": "The resource's name of the reservation.",
    "hold_for": "Length of the hold from the sending of the message.",
    "transfer_id": "The bank's name of the transfer.",
    "amount": "Minor units.",
    "deposit_id": "The deposit.",
    "service": "Kind of the registered service.",
    "number": "Rising number of the registration or change; a lower number is ignored.",
    "transfers": "Payments in the sequence of the order's lines.",
    "refund": "Refund in minor units.",
    "account": "Name of the account.",
    "balance": "Posted balance in minor units.",
    "reserved": "Amount reserved for open orders, in minor units.",
    "credit_limit": "Largest allowed debt in minor units.",
    "bank_time": "The bank's clock.",
    "lines": "The requested payments by time.",
    "invitation_id": "The invitation.",
    "job_id": "The job, by its buyer's name.",
    "query_id": "Id of the query, repeated in the answer.",
    "snapshot": "State of the machine, a JSON object from its plug-in.",
    "names": "Providers of the service.",
    "more": "Whether more names follow; query again after the last name.",
    "horizon": "Length of the projected load.",
    "after": "Last name of the previous page; empty for the first page.",
}
"""Meanings of fields without a docstring of their own."""


def kinds() -> list[type]:
    """Every content that is sent, in the order of the table of performatives."""
    found: dict[type, None] = {}
    for each in CONTENT_OF.values():
        found |= dict.fromkeys(each)
    return [kind for kind in found if kind is not contents.Unverified]


def page() -> str:
    """The page as Markdown."""
    lines = [
        "# Messages",
        "",
        *_INTRODUCTION,
        "| message | performative | accepted from |",
        "|---|---|---|",
    ]
    lines += [f"| [{_title(kind)}](#{_anchor(kind)}) | {_spoken(kind)} | {_believed(kind)} |" for kind in kinds()]
    for kind in kinds():
        lines += ["", f"({_anchor(kind)})=", f"## {_title(kind)}", "", *_section(kind)]
    return "\n".join(lines) + "\n"


def _title(kind: type) -> str:
    return "Agreement, ContractChange" if kind is Signed else kind.__name__


def _anchor(kind: type) -> str:
    return f"message-{_file_name(kind)}"


def _file_name(kind: type) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower()


def _spoken(kind: type) -> str:
    return ", ".join(f"`{performative}`" for performative, each in CONTENT_OF.items() if kind in each)


def _believed(kind: type) -> str:
    if kind is Signed:
        return "its XML signatures"
    if kind not in SEALED | OFFERS:
        return "any sender"
    roles = " or ".join(sorted(ROLES_OF[kind], reverse=True))
    return (
        f"a {roles}, sealed"
        + (" where offers are signed" if kind in OFFERS else "")
        + (" or the auction rule requires it" if kind is contents.Proposal else "")
    )


def _section(kind: type) -> list[str]:
    lines = [first_paragraph(kind), ""]
    protocol = DECLARED[kind].interaction
    part = f"; part of {protocol}" if protocol else ""
    lines += [f"Performative {_spoken(kind)}; accepted from {_believed(kind)}{part}.", ""]
    if kind is not Signed:
        lines += _attributes(kind)
    for name in ("agreement", "cancellation") if kind is Signed else (_file_name(kind),):
        file = shipped_directory("schemas") / "examples" / "valid" / f"{name}.xml"
        lines += [f"Example (`{file.name}`):", "", "```xml", *_shortened(file), "```", ""]
    return lines


def _attributes(kind: type) -> list[str]:
    said = attribute_sentences(kind)
    rows = ["| attribute or child | value | default | meaning |", "|---|---|---|---|"]
    for field in dataclasses.fields(kind):
        meaning = said.get(field.name) or SENTENCES.get(field.name)
        if not meaning:
            raise ValueError(f"{kind.__name__}.{field.name}: neither a docstring nor this page says what it means")
        name, value = attribute_name(field.name), _value(str(field.type))
        rows.append(f"| `{name}` | {value} | {_default(field)} | {cell(meaning)} |")
    return [*rows, ""] if len(rows) > 2 else []


def _value(annotation: str) -> str:
    inside = re.fullmatch(r"tuple\[(\w+), \.\.\.\]", annotation)
    return cell(f"elements {inside[1]}" if inside else _KINDS.get(annotation, annotation))


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is dataclasses.MISSING:
        return "required"
    return "" if field.default in (None, "", ()) else f"`{str(field.default).lower()}`"


def _shortened(file: Path) -> list[str]:
    """The example as people can read it: an element a line, and not all of the long texts of signatures."""
    text = _BASE64.sub("...", file.read_text("utf-8"))
    if len(text.splitlines()) < FEW_LINES:
        text = text.replace("><", ">\n<")
    return [part for line in text.splitlines() for part in _wrapped(line)]


def _wrapped(line: str) -> list[str]:
    """A long start tag with each attribute on a line of its own."""
    if len(line) <= WIDTH or not line.startswith("<"):
        return [line]
    return re.sub(r'(?<=") (?=[\w:]+=")', "\n    ", line).splitlines()
