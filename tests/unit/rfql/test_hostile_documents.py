"""Documents of a hostile party: no identifier and no sentence of theirs holds what a shell or a terminal obeys."""

import re
from pathlib import Path

import pytest
from lxml import etree

from ramp.errors import DocumentError
from ramp.model import contents
from ramp.model.offer import RefusalCode
from ramp.rfql import documents
from ramp.rfql.request_for_quotation import parse_request
from ramp.rfql.xml import schema
from ramp.rfql.xml.namespaces import SIGNATURE
from ramp.text import IDENTIFIER, is_printable
from tests.unit.rfql.test_codec import read

EXAMPLES = Path(__file__).resolve().parents[3] / "schemas" / "examples" / "valid"
MESSAGES = sorted(path for path in EXAMPLES.glob("*.xml") if not path.name.startswith("rfq-"))
HIDDEN = (
    "\n",
    "\r",
    "\t",
    "\x7f",
    "\x9b31m",
    "\xad",
    "\u061c",
    "\u200b",
    "\u2028",
    "\u202e",
    "\u2066",
    "\ufeff",
    "\U000e0041",
)
SHELL = ("r1; touch OWNED #", "$(id)", "`id`", "a b", "a'b", 'a"b', "-rf", "../x", "a/b", "a|b", "<b>", "{0}", "")
RAW = {"JobArgument", "JobVariable", "MachineStatus", "SealedMessage", "SignedDocument"}
"""Elements whose text is a word of the buyer's own command, JSON, or a document that is checked by itself."""

FILE_NAMES = {("JobOutput", "name"), ("JobOutputQuery", "name")}
"""A job names its files as it likes."""

_TYPED = re.compile(r"^([-0-9.:TZPS]+|true|false)$|^-----BEGIN")
OFFER = (
    '<Proposal xmlns="urn:ramp:market:1" requestId="request-4" roundNumber="1"><Offer offerId="offer-1" '
    'requestId="request-4" unit="1" resource="thunder1@localhost" cpuHourCost="5" start="2026-12-01T10:00:00Z" '
    'end="2026-12-01T11:00:00Z" cores="8" load="0.5" validFor="PT60S" source="live" '
    'placement="{placement}"/></Proposal>'
)


@pytest.mark.parametrize("path", MESSAGES, ids=lambda path: path.stem)
def test_no_field_of_a_message_holds_a_hidden_character(path: Path) -> None:
    """Every attribute and every text of every document, one after the other."""
    root = etree.fromstring(path.read_bytes())
    market = schema.schema()
    assert market.validate(root)
    for element in root.iter():
        name = etree.QName(element).localname
        if etree.QName(element).namespace == SIGNATURE:
            continue  # its reader takes one form only, and shows nothing of it
        for attribute, value in element.attrib.items():
            if (name, attribute) in FILE_NAMES:
                continue
            # XML Schema allows white space around what becomes a number, a time or a boolean; PEM has lines
            for hidden in HIDDEN[3:] if _TYPED.search(value) else HIDDEN:
                element.set(attribute, f"{value}{hidden}")
                assert not market.validate(root), (name, attribute, hidden)
            element.set(attribute, value)
        if not element.text or not element.text.strip() or name in RAW or "pem" in name.lower():
            continue
        for hidden in HIDDEN[3:]:
            before, element.text = element.text, f"{element.text}{hidden}"
            assert not market.validate(root), (name, hidden)
            element.text = before


@pytest.mark.parametrize("word", [*SHELL, *(f"r1{hidden}" for hidden in HIDDEN)])
def test_a_reservation_has_an_identifier_or_none(word: str) -> None:
    """Its id becomes a word of the buyer's scripts."""
    granted = contents.HoldGranted("request-4", "offer-1", word, 60_000_000)
    assert not IDENTIFIER.fullmatch(word)
    with pytest.raises(DocumentError, match=r"reservationId: got .*, expected 1 to 64 letters"):
        read(documents.write_content(granted))


@pytest.mark.parametrize(
    "name", ["r1", "63", "thunder1-7", "ramp_a.7", "alice@localhost", "x" * 64, "a+b@site.example"]
)
def test_names_and_ids_in_use_are_identifiers(name: str) -> None:
    granted = contents.HoldGranted("request-4", "offer-1", name, 60_000_000)
    assert read(documents.write_content(granted)) == granted


def test_a_placement_with_a_line_break_is_refused() -> None:
    assert read(OFFER.format(placement="n[1-4] (torus) \u00e9 \u4e2d"))
    for hidden in ("&#10;touch OWNED", "&#13;", "&#9;", "\x9b", "\u202e"):
        with pytest.raises(DocumentError, match=r"placement: got .*, expected one line of printable characters"):
            read(OFFER.format(placement=f"n1{hidden}"))


def test_an_own_sentence_is_made_one_printable_line() -> None:
    """A batch system's output in a refusal must not cost the message."""
    said = contents.HoldRefused("request-4", "offer-17", RefusalCode.PLUGIN_FAILED, "down\r\n\x1b[31mnow\u202e")
    refused = read(documents.write_content(said))
    assert isinstance(refused, contents.HoldRefused)
    assert refused.detail == "down ?[31mnow?"


def test_schema_and_program_mean_the_same_characters() -> None:
    schemas = [path.read_text("utf-8") for path in EXAMPLES.parents[1].glob("*.xsd")]
    assert len(set(re.findall(r'value="(\[\^&#x9;[^"]*)"', "".join(schemas)))) == 1
    root = etree.fromstring((EXAMPLES / "rejection.xml").read_bytes())
    market = schema.schema()
    astral = (*range(0x1D170, 0x1D180), *range(0xE0000, 0xE0090))
    for code in (*range(0x20, 0x2100), 0xFEFF, *range(0xFFF0, 0xFFFE), *astral):
        root.set("reason", chr(code))
        assert market.validate(root) is is_printable(chr(code)), hex(code)


def test_words_of_a_request_are_printable() -> None:
    text = (EXAMPLES / "rfq-all-terms.xml").read_text("utf-8")
    before = re.search(r"<OSVersion>(.*?)</OSVersion>", text)
    assert before is not None
    for hidden in ("\x9b31m", "\u202e", "&#10;x"):
        with pytest.raises(DocumentError, match=r"OSVersion: got .*, expected one line of printable characters"):
            parse_request(text.replace(before[0], f"<OSVersion>5.4{hidden}</OSVersion>"))
