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
from ramp.rfql.xml.record import attribute_name
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
    "Instant": "instant, ISO 8601 in UTC",
    "Instant | None": "instant, ISO 8601 in UTC",
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
Every message is one FIPA ACL message over XMPP: its slots are the metadata of the stanza, the thread the conversation,
the body is one XML document that is checked against the schemas of `schemas/`. What creates an obligation, ends one, or
tells of money is sealed: a detached signature over the exact text, addressed and dated; agreements and cancellations
bear XML signatures besides. This page is drawn from the codec's tables and from the examples that its tests read.

Times are ISO 8601 in UTC, durations ISO 8601, amounts whole minor units (hundredths of a credit). An attribute with a
default is left out while it holds it.

An offer to a call that names an auction rule says what it was called for: `asked`, the price of the call, and
`terms`, SHA-256 of the called unit as base64url without padding. What is digested is JSON in UTF-8 with sorted keys, no
blanks and escaped non-ASCII characters: `{"rule": NAME, "unit": {...}}` with all that the unit states, under the names
of {py:class}`ramp.model.request.RequestUnit` but `cpu_hour_cost`; instants and durations are microseconds, and cores,
disk and torus terms are objects that name their class under `is`.

""".splitlines()

SENTENCES: Final = {
    "request_id": "The auction that it is about.",
    "round_number": "The round that it answers, from 1.",
    "offers": "An offer for each unit that can be served.",
    "refusals": "A coded refusal for each unit that cannot.",
    "offer_id": "The offer that it is about.",
    "code": "Why; a word of a closed list, for programs.",
    "detail": "Why, in one sentence for people.",
    "reason": "Why, in one sentence for people.",
    "order_id": "The payment order that it is about.",
    "agreement_id": "The agreement that it is about.",
    "nonce": "That of the query, so that an old answer is none to a new one.",
    "reference": "What the refused order called itself.",
    "reservation_id": "The resource's name for what it has set aside.",
    "hold_for": "How long the hold lasts, from the moment of sending.",
    "transfer_id": "The bank's name for the transfer.",
    "amount": "Minor units.",
    "deposit_id": "The deposit that it is about.",
    "service": "The kind of service that is registered.",
    "number": "Number of the registration or change, so that a late message does not undo a newer one.",
    "transfers": "The payments, in the order of the order's lines.",
    "refund": "What went back, in minor units.",
    "account": "Whose account.",
    "balance": "What is posted, in minor units.",
    "reserved": "What is set aside for orders that are not posted yet, in minor units.",
    "credit_limit": "How far the balance may be below zero, in minor units.",
    "bank_time": "The bank's clock.",
    "lines": "The payments asked for, in the order of time.",
    "invitation_id": "The invitation that it is about.",
    "job_id": "The job that it is about, as its buyer calls it.",
    "query_id": "The query, named in its answer.",
    "snapshot": "The machine as its plug-in shows it, a JSON object.",
    "names": "Who offers the service.",
    "more": "Whether there are further names, which a query after the last of these brings.",
    "horizon": "How far ahead the projected load is wanted.",
    "after": "Names up to this one are left out; empty to begin with the first.",
}
"""What fields of these names mean wherever no docstring says more."""


def kinds() -> list[type]:
    """Every content that is sent, in the order of the table of performatives."""
    found: dict[type, None] = {}
    for each in CONTENT_OF.values():
        found |= dict.fromkeys(each)
    return [kind for kind in found if kind is not contents.Unverified]


def page() -> str:
    """The page as Markdown."""
    lines = [
        "# The wire",
        "",
        *_INTRODUCTION,
        "| message | performative | believed from |",
        "|---|---|---|",
    ]
    lines += [f"| [{_title(kind)}](#{_anchor(kind)}) | {_spoken(kind)} | {_believed(kind)} |" for kind in kinds()]
    for kind in kinds():
        lines += ["", f"({_anchor(kind)})=", f"## {_title(kind)}", "", *_section(kind)]
    return "\n".join(lines) + "\n"


def _title(kind: type) -> str:
    return "Agreement, Cancellation" if kind is Signed else kind.__name__


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
        return "anybody"
    roles = " or ".join(sorted(ROLES_OF[kind], reverse=True))
    return (
        f"a {roles}, sealed"
        + (" where offers are signed" if kind in OFFERS else "")
        + (" or the auction's rule wants it" if kind is contents.Proposal else "")
    )


def _section(kind: type) -> list[str]:
    lines = [first_paragraph(kind), ""]
    protocol = DECLARED[kind].interaction
    part = f"; part of {protocol}" if protocol else ""
    lines += [f"Performative {_spoken(kind)}; believed from {_believed(kind)}{part}.", ""]
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
