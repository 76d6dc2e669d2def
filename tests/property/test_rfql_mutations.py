"""Damaged documents: whatever is done to a valid one, the reader accepts it or raises a DocumentError, nothing else."""

import random
import re
from pathlib import Path

import pytest

from ramp.errors import DocumentError
from ramp.model.instant import from_iso
from ramp.rfql import documents
from ramp.rfql.request_for_quotation import parse_request
from ramp.rfql.signing.notary import PublicNotary
from ramp.rfql.signing.trust import Trust
from ramp.runtime.keys.store import load_ca_certificates

EXAMPLES = Path(__file__).resolve().parents[2] / "schemas" / "examples"
SIGNED_AT = from_iso("2026-11-21T08:00:00Z")
VALUE = re.compile(r'(?<==")[^"]*(?=")|(?<=>)[^<>]+(?=<)')
ELEMENT = re.compile(r"<[A-Za-z][^<>]*/>|<([A-Za-z]+)[^<>]*>[^<>]*</\1>")
ODD = (
    "",
    "0",
    "-1",
    "-0",
    "+5",
    "9" * 30,
    "NaN",
    "INF",
    "1e400",
    "٣",
    "  ",
    "<",
    ">",
    '"',
    "&",
    "&#0;",
    "&#xD800;",
    "<a/>",
    'xmlns=""',
    "Z",
    "24:00:00",
    "0000-01-01T00:00:00Z",
    "9999-99-99T99:99:99Z",
    "2026-11-21T24:00:00Z",
    "PT999999999999.999999S",
    "\u2028",
)


def mutate(document: str, draw: random.Random) -> str:
    """Put an odd value in place of a value, cut text out anywhere, or double or drop an element."""
    kind = draw.choice(("value", "value", "text", "element"))
    if kind == "text":
        start = draw.randrange(len(document))
        return document[:start] + draw.choice(ODD) + document[start + draw.randint(0, 30) :]
    spans = [match.span() for match in (VALUE if kind == "value" else ELEMENT).finditer(document)]
    if not spans:
        return document
    start, end = draw.choice(spans)
    middle = draw.choice(ODD) if kind == "value" else document[start:end] * draw.choice((0, 2))
    return document[:start] + middle + document[end:]


@pytest.mark.parametrize("seed", range(4))
def test_damaged_documents_are_read_or_refused(seed: int) -> None:
    notary = PublicNotary(Trust(load_ca_certificates(EXAMPLES / "market-ca.pem")))
    paths = sorted(EXAMPLES.glob("valid/*.xml"))
    draw = random.Random(seed)
    refused = 0
    for _ in range(400):
        path = draw.choice(paths)
        text = path.read_text("utf-8")
        for _ in range(draw.randint(1, 3)):
            text = mutate(text, draw) or text
        try:
            if path.name.startswith("rfq-"):
                parse_request(text)
            else:
                documents.read_content(text, notary, SIGNED_AT)
        except DocumentError:
            refused += 1
    assert refused > 100, "the mutations are too tame to test anything"
