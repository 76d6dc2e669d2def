"""The wire format stands still: what was written yesterday is read today and written again byte for byte.

The golden documents are `schemas/examples`: the valid ones are read, each invalid one is refused for its own reason.
The ones below are written by hand from the schemas, so that the examples are not only our own output. A signature is
checked by an independent reference: the standard library's canonicalisation, hashlib, and the bare curve.
"""

import base64
import hashlib
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from lxml import etree

from ramp.errors import DocumentError
from ramp.model import contents
from ramp.model.acl import CONTENT_OF
from ramp.model.instant import SECOND, from_iso
from ramp.model.offer import Offer, Refusal, RefusalCode
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.rfql import documents, request_for_quotation
from ramp.rfql.signing.certificates import Trust
from ramp.rfql.signing.notary import PublicNotary
from ramp.rfql.xml import schema
from ramp.runtime.keys.store import load_ca_certificates

EXAMPLES = Path(__file__).resolve().parents[2] / "schemas" / "examples"
VALID = sorted((EXAMPLES / "valid").glob("*.xml"))
INVALID = sorted((EXAMPLES / "invalid").glob("*.xml"))
REQUESTS = [path for path in VALID if path.name.startswith("rfq-")]
MESSAGES = [path for path in VALID if path not in REQUESTS]
RULE = re.compile(r"<!-- rule: (?P<rule>[^|]+) \| names: (?P<names>.*) -->")
SIGNED_AT = from_iso("2026-11-21T08:00:00Z")
NOTARY = PublicNotary(Trust(load_ca_certificates(EXAMPLES / "market-ca.pem")))
DS = "{http://www.w3.org/2000/09/xmldsig#}"

BY_HAND = [
    (
        contents.CallForProposals(
            "request-4",
            2,
            RequestForQuotation((RequestUnit(1, 55, from_iso("2026-11-21T12:00:00Z"), TotalCores(128)),)),
            (contents.Bid(1, "thunder1@localhost", 55),),
            best_offer=True,
        ),
        (
            '<CallForProposals xmlns="urn:ramp:market:1" requestId="request-4" roundNumber="2" bestOffer="true">'
            '<RequestForQuotation xmlns="http://www.realitygrid.org/AHE/RFQ"><Request><CPUHourCost>55</CPUHourCost>'
            "<EndDate>2026-11-21</EndDate><EndTime>12:00:00Z</EndTime>"
            "<Cores><TotalCores>128</TotalCores></Cores></Request></RequestForQuotation>"
            '<Bid unit="1" resource="thunder1@localhost" cpuHourCost="55"/></CallForProposals>'
        ),
    ),
    (
        contents.Proposal(
            "request-4",
            2,
            (
                Offer(
                    "offer-17",
                    "request-4",
                    1,
                    "thunder1@localhost",
                    55,
                    from_iso("2026-11-21T09:00:00Z"),
                    from_iso("2026-11-21T12:00:00Z"),
                    128,
                    0.25,
                    30 * SECOND,
                    placement="midplanes <R00, R01> & more",
                ),
            ),
            (Refusal(2, RefusalCode.PRICE, nearest="45 credits/core-hour", detail='the "minimum"'),),
        ),
        (
            '<Proposal xmlns="urn:ramp:market:1" requestId="request-4" roundNumber="2"><Offer offerId="offer-17" '
            'requestId="request-4" unit="1" resource="thunder1@localhost" cpuHourCost="55" '
            'start="2026-11-21T09:00:00Z" end="2026-11-21T12:00:00Z" cores="128" load="0.25" validFor="PT30S" '
            'placement="midplanes &lt;R00, R01&gt; &amp; more"/><Refusal unit="2" code="price_below_minimum" '
            'nearest="45 credits/core-hour" detail="the &quot;minimum&quot;"/></Proposal>'
        ),
    ),
    (
        contents.MachineStatus("query-1", '{"free": 128, "note": "a<b"}'),
        '<MachineStatus xmlns="urn:ramp:market:1" queryId="query-1">{"free": 128, "note": "a&lt;b"}</MachineStatus>',
    ),
]


@pytest.mark.parametrize(("content", "body"), BY_HAND, ids=lambda value: type(value).__name__)
def test_documents_written_by_hand(content: contents.Content, body: str) -> None:
    assert documents.write_content(content) == body
    assert documents.read_content(body, NOTARY, SIGNED_AT) == content


@pytest.mark.parametrize("path", MESSAGES, ids=lambda path: path.stem)
def test_examples_are_written_again_byte_for_byte(path: Path) -> None:
    body = path.read_text("utf-8").rstrip("\n")
    assert documents.write_content(documents.read_content(body, NOTARY, SIGNED_AT)) == body


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: path.stem)
def test_requests_are_read_and_what_is_written_of_them_means_the_same(path: Path) -> None:
    request = request_for_quotation.load_request(path)
    assert request_for_quotation.parse_request(request_for_quotation.write_request(request)) == request


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_invalid_example_is_refused_for_its_own_reason(path: Path) -> None:
    text = path.read_text("utf-8")
    match = RULE.search(text)
    assert match is not None, f"{path.name} does not name its rule"
    try:
        if path.name.startswith("rfq-"):
            content = request_for_quotation.load_request(path)
        else:
            content = documents.read_content(RULE.sub("", text).strip(), NOTARY, SIGNED_AT, path.name)
    except DocumentError as error:
        message = str(error)
    else:
        assert isinstance(content, contents.Unverified), f"{path.name} was read: {match['rule']}"
        message = content.detail
    for name in match["names"].split(" | "):
        assert name in message


def test_every_content_has_an_example() -> None:
    seen = {type(documents.read_content(path.read_text("utf-8").strip(), NOTARY, SIGNED_AT)) for path in MESSAGES}
    sendable = {content for kinds in CONTENT_OF.values() for content in kinds} - {contents.Unverified}
    assert sendable - seen == set()


def test_every_pattern_of_a_schema_is_explained_in_words() -> None:
    assert set(schema._types_by_pattern().values()) <= schema._RIGHT_OF_TYPE.keys()
    site = etree.fromstring('<Sites xmlns="urn:ramp:sites:1">West.Example</Sites>')
    (finding,) = schema.findings(site, "sites")
    assert finding == "line 1: Sites: got 'West.Example', expected a domain in lower case such as grid.example"


def test_the_original_samples_seventeen_of_which_thirteen_end_before_they_start() -> None:
    """The fact sheet: Intel as architecture in all 17, prices 25 to 80, 5 to 20480 cores, 13 with the end first."""
    good = [path for path in REQUESTS if path.name.startswith("rfq-original-")]
    bad = [path for path in INVALID if path.name.startswith("rfq-original-")]
    assert (len(good), len(bad)) == (4, 13)
    for path in good:
        rfq = request_for_quotation.load_request(path)
        assert rfq.units[0].architecture == "x86_64"
        assert any("Intel" in warning for warning in rfq.warnings)
    for path in bad:
        with pytest.raises(DocumentError, match="must be after the start") as caught:
            request_for_quotation.load_request(path)
        assert str(path) in str(caught.value)
        assert "Architecture" not in str(caught.value)


@pytest.mark.parametrize("name", ["agreement", "cancellation", "countersigned-agreement", "countersigned-cancellation"])
def test_signatures_hold_by_an_independent_reference(name: str) -> None:
    """Exclusive canonical form of these documents equals canonical XML 2.0, which the standard library writes."""
    document = (EXAMPLES / "valid" / f"{name}.xml").read_text("utf-8").rstrip("\n")
    start, end = document.rindex("<ds:Signature "), document.rindex("</ds:Signature>") + len("</ds:Signature>")
    signature = ElementTree.fromstring(document[start:end])

    content = ElementTree.canonicalize(document[:start] + document[end:]).encode()
    digest = base64.b64decode(_text(signature, "SignedInfo/Reference/DigestValue"))
    assert hashlib.sha256(content).digest() == digest

    info = re.search(r"<ds:SignedInfo>.*</ds:SignedInfo>", document[start:end])
    declared = info.group().replace("<ds:SignedInfo>", f'<ds:SignedInfo xmlns:ds="{DS[1:-1]}">')
    certificate = x509.load_der_x509_certificate(base64.b64decode(_text(signature, "KeyInfo/X509Data/X509Certificate")))
    key = certificate.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    raw = base64.b64decode(_text(signature, "SignatureValue"))
    pair = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    key.verify(pair, ElementTree.canonicalize(declared).encode(), ec.ECDSA(hashes.SHA256()))


def _text(signature: ElementTree.Element, path: str) -> str:
    found = signature.find("/".join(DS + part for part in path.split("/")))
    return found.text or ""
