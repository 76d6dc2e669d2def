"""Damaged documents, certificates and sealed messages: read or refused with a DocumentError, nothing else.

A certificate comes from whoever sends a message, so its bytes are anybody's. Two kinds of damage: to any byte, where
the authority's signature no longer holds, and to a certificate's inside with the authority's signature made anew, which
reaches what is read of issued certificates only.
"""

import base64
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from ramp.errors import DocumentError, SealInvalid
from ramp.model import contents
from ramp.model.acl import Message, Performative
from ramp.model.agreement import ContractChange, Signed
from ramp.model.seal import Role
from ramp.rfql import documents
from ramp.rfql.request_for_quotation import parse_request
from ramp.rfql.signing import certificates, seals
from ramp.rfql.signing.certificates import Trust
from ramp.rfql.signing.notary import PublicNotary
from ramp.runtime.keys.store import KeyStore, load_ca_certificates
from tests.unit.rfql.conftest import BANK, NOW, USER, market_of

# cryptography says so of serial numbers below one, and reads on
pytestmark = pytest.mark.filterwarnings("ignore:Parsed a serial number")

SIGN = ec.ECDSA(hashes.SHA256())
EXAMPLES = Path(__file__).resolve().parents[2] / "schemas" / "examples"
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
    "-PT1S",
    "P99999999999Y",
    "true",
    "x" * 300,
    "mallory@localhost",
    "cancel",
    "agree",
    "\u2028",
)
"""What is put in the place of a value, or anywhere."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> KeyStore:
    return market_of(tmp_path_factory.mktemp("mutations"), {USER: Role.USER, BANK: Role.BANK})


@pytest.fixture(scope="module")
def cancellation(store: KeyStore) -> str:
    body = ContractChange("agreement-9", 0, "offer-17", USER, "thunder1@localhost", BANK, NOW, reason="no need")
    return store.notary(USER).sign(Signed(body), NOW).document


@pytest.fixture(scope="module")
def sealed(store: KeyStore) -> seals.SealedText:
    content = contents.PaymentMade("agreement-9", "transfer-5", 704_000)
    seal = store.notary(BANK).seal(Message(Performative.AGREE, BANK, USER, "request-4", content), NOW).seal
    assert seal is not None
    return seals.parse(seal.text)


def damaged(data: bytes, draw: random.Random) -> bytes:
    mutant = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        at = draw.randrange(len(mutant))
        match draw.randrange(6):
            case 0 | 1:
                mutant[at] = draw.randrange(256)
            case 2:
                mutant[at] ^= 1 << draw.randrange(8)
            case 3:
                mutant[at] = draw.choice((0x00, 0x01, 0x02, 0x03, 0x04, 0x06, 0x0C, 0x13, 0x17, 0x30, 0x7F, 0x80, 0xFF))
            case 4:
                del mutant[at : at + draw.randrange(1, 4)]
            case _:
                mutant[at:at] = draw.randbytes(draw.randrange(1, 4))
    return bytes(mutant)


def length(size: int) -> bytes:
    """A DER length (X.690 section 8.1.3)."""
    if size < 0x80:
        return bytes((size,))
    text = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((0x80 | len(text),)) + text


def issued_anew(inside: bytes, ca_key: ec.EllipticCurvePrivateKey) -> bytes:
    """A certificate with any inside, under the authority's own signature (RFC 5280 section 4.1)."""
    algorithm = bytes.fromhex("300a06082a8648ce3d040302")  # ecdsa-with-SHA256
    signature = b"\x00" + ca_key.sign(inside, SIGN)
    content = inside + algorithm + b"\x03" + length(len(signature)) + signature
    return b"\x30" + length(len(content)) + content


def key_of(store: KeyStore, name: str) -> ec.EllipticCurvePrivateKey:
    path = store.folder / "ca" / "identity.pem" if name == "ca" else store.folder / "agents" / name / "identity.pem"
    key = store._read_identity(path)[0]
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def mutants(store: KeyStore, seed: int, count: int) -> list[bytes]:
    """Half of them damaged anywhere, half inside and issued anew."""
    draw = random.Random(seed)
    ca_key = key_of(store, "ca")
    found = []
    for number in range(count):
        certificate = store.identity(draw.choice((USER, BANK)))[1]
        if number % 2:
            found.append(damaged(certificate.public_bytes(Encoding.DER), draw))
        else:
            found.append(issued_anew(damaged(certificate.tbs_certificate_bytes, draw), ca_key))
    return found


READERS: tuple[Callable[[x509.Certificate], object], ...] = (
    certificates.identity_of,
    certificates.role_of,
    certificates.key_of,
    lambda certificate: certificates.check_validity(certificate, NOW),
)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_damaged_certificates_are_read_or_refused(store: KeyStore, seed: int) -> None:
    """By every function that reads one, and by the whole check."""
    trust = Trust(store.ca_certificates())
    loaded = refused = 0
    for der in mutants(store, seed, 3000):
        try:
            certificate = certificates.load(der)
        except DocumentError:
            continue
        loaded += 1
        for reader in READERS:
            try:
                reader(certificate)
            except DocumentError:
                refused += 1
        try:
            trust.check(der, NOW)
        except DocumentError:
            refused += 1
    assert loaded > 500, "the damage is too great to reach anything"
    assert refused > 500, "the damage is too small to matter"


@pytest.mark.parametrize("seed", range(2))
def test_damaged_certificates_in_documents_and_seals_are_refused(
    store: KeyStore, cancellation: str, sealed: seals.SealedText, seed: int
) -> None:
    """A new signature by the right key each time, so that only the certificate stands in the way."""
    notary = PublicNotary(Trust(store.ca_certificates()))
    start = cancellation.index("<ds:X509Certificate>") + len("<ds:X509Certificate>")
    end = cancellation.index("</ds:X509Certificate>")
    key = key_of(store, BANK)
    outcomes = set()
    for der in mutants(store, 100 + seed, 600):
        text = base64.b64encode(der).decode()
        try:
            notary.verify(cancellation[:start] + text + cancellation[end:], NOW)
        except DocumentError as error:
            outcomes.add(type(error))
        part = replace(sealed, certificate=text)
        signed = replace(part, signature=seals.sign(part.sealed_part(), key))
        try:
            opened = notary.open(signed.text(), NOW)
        except SealInvalid:
            continue
        # What still passes says the same: the damage met a field that nobody reads.
        assert (opened.sender, opened.seal and opened.seal.role) == (BANK, Role.BANK)
    assert len(outcomes) >= 2


def test_the_two_certificates_that_restarted_agents_are_refused(
    store: KeyStore, cancellation: str, sealed: seals.SealedText
) -> None:
    """A version above 3, and an issuer that is not UTF-8: any member of the public could send them."""
    certificate = store.identity(USER)[1]
    inside = certificate.tbs_certificate_bytes
    version_7 = inside.replace(bytes.fromhex("a003020102"), bytes.fromhex("a003020106"), 1)
    assert version_7 != inside
    issuer = certificate.issuer.public_bytes()
    at = inside.index(issuer)
    bad_issuer = inside[: at + len(issuer) - 1] + b"\xff" + inside[at + len(issuer) :]
    ca_key = key_of(store, "ca")
    notary = PublicNotary(Trust(store.ca_certificates()))
    start = cancellation.index("<ds:X509Certificate>") + len("<ds:X509Certificate>")
    end = cancellation.index("</ds:X509Certificate>")
    for attack, reason in ((version_7, "no certificate"), (bad_issuer, "not issued by a CA of this market")):
        text = base64.b64encode(issued_anew(attack, ca_key)).decode()
        with pytest.raises(DocumentError, match=reason):
            notary.verify(cancellation[:start] + text + cancellation[end:], NOW)
        with pytest.raises(SealInvalid, match=reason):
            notary.open(replace(sealed, certificate=text).text(), NOW)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_sealed_messages_are_refused(store: KeyStore, sealed: seals.SealedText, seed: int) -> None:
    """Whatever is changed in a sealed text, not one mutant is believed."""
    notary = PublicNotary(Trust(store.ca_certificates()))
    genuine = sealed.text()
    assert notary.open(genuine, NOW).sender == BANK
    draw = random.Random(seed)
    tried = 0
    for _ in range(2000):
        text = damaged(genuine.encode(), draw).decode("utf-8", errors=draw.choice(("replace", "surrogateescape")))
        if text == genuine:
            continue
        tried += 1
        with pytest.raises(DocumentError):
            notary.open(text, NOW)
    assert tried > 1900


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
                documents.read_content(text, notary, NOW)
        except DocumentError:
            refused += 1
    assert refused > 100, "the mutations are too tame to test anything"
