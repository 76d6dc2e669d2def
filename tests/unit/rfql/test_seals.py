"""Sealed messages: what is sealed arrives and can be kept; whatever else is made of a seal is refused."""

import base64
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding

from ramp.errors import CertificateExpired, DocumentError, SealInvalid
from ramp.model import contents
from ramp.model.acl import OFFERS, SEALED, EncodedMessage, Message, Performative
from ramp.model.agreement import Signed
from ramp.model.instant import DAY, HOUR, MINUTE, SECOND, Instant
from ramp.model.seal import Role
from ramp.rfql import codec
from ramp.rfql.signing import certificates, seals
from ramp.rfql.signing.certificates import PrivateKey, Trust
from ramp.rfql.signing.notary import XmlNotary
from ramp.rfql.xml.parser import DOCUMENT_BYTES_MAX
from ramp.runtime.keys.store import KeyStore
from tests.unit.rfql.conftest import BANK, DIRECTORY, MALLORY, NOW, RESOURCE, USER, market_of
from tests.unit.rfql.forgery import certificate_for, resealed, text_of


def granted() -> Message:
    content = contents.HoldGranted("request-4", "offer-17", "thunder1-000123", 120 * SECOND)
    slots = ("request-4", content, "g-1", "accept-1")
    return Message(Performative.AGREE, RESOURCE, USER, *slots, reply_by=1500 * SECOND)


@pytest.fixture
def sealed(resource_notary: XmlNotary) -> Message:
    return resource_notary.seal(granted(), NOW)


Deliver = Callable[..., Message]


@pytest.fixture
def deliver(user_notary: XmlNotary) -> Deliver:
    """What Alice reads of an encoded message, however it has been changed on the way."""

    def run(
        encoded: EncodedMessage,
        *,
        sender: str = RESOURCE,
        receiver: str = USER,
        body: str | None = None,
        at: Instant = NOW,
        **metadata: str,
    ) -> Message:
        changed = {**encoded.metadata, **{name.replace("_", "-"): value for name, value in metadata.items()}}
        kept = {name: value for name, value in changed.items() if value != "-"}
        arrived = EncodedMessage(sender, encoded.body if body is None else body, kept, encoded.thread)
        return codec.decode(arrived, receiver, user_notary, at)

    return run


# What must pass, so that the refusals below mean something


def test_sealed_bytes_are_these(sealed: Message, store: KeyStore) -> None:
    """Written by hand from the description, and verified with the bare curve."""
    expected = (
        "RAMP sealed message 1\nperformative: agree\ndocument: HoldGranted\nfrom: thunder1@localhost\n"
        "to: alice@localhost\nconversation-id: request-4\nreply-with: g-1\nin-reply-to: accept-1\nreply-by: 1500000\n"
        "signed-at: 2026-11-21T08:00:00.000000Z\n\n"
        '<HoldGranted xmlns="urn:ramp:market:1" requestId="request-4" offerId="offer-17" '
        'reservationId="thunder1-000123" holdFor="PT120S"/>'
    )
    part, signature, certificate = text_of(sealed).removesuffix("\n").rsplit("\n", 2)
    assert part == expected
    key = x509.load_der_x509_certificate(base64.b64decode(certificate.removeprefix("certificate: "))).public_key()
    assert key == store.identity(RESOURCE)[0].public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    raw = base64.b64decode(signature.removeprefix("signature: "))
    key.verify(raw, expected.encode(), ec.ECDSA(hashes.SHA256()))


def test_kept_text_is_read_again_by_anybody(sealed: Message, store: KeyStore) -> None:
    """Passed on to a third party, hours later: it still says to whom it was said."""
    for reader in (USER, MALLORY, BANK):
        assert store.notary(reader).open(text_of(sealed), NOW + HOUR) == sealed


def test_a_seal_of_another_market_is_refused(user_notary: XmlNotary, tmp_path: Path) -> None:
    market = market_of(tmp_path, {USER: Role.USER, DIRECTORY: Role.DIRECTORY})
    directory = market.notary(DIRECTORY)
    message = Message(
        Performative.INFORM, DIRECTORY, USER, "q-1", contents.DirectoryListing("q-1", "resource-trader", ("a@b",))
    )
    text = text_of(directory.seal(message, NOW))
    opened = market.notary(USER).open(text, NOW)
    assert opened.content == message.content
    with pytest.raises(SealInvalid, match="does not fit the message"):
        market.notary(USER).open(text.replace('name="a@b"', 'name="a@c"'), NOW)
    with pytest.raises(SealInvalid, match="not issued by a CA of this market"):
        user_notary.open(text, NOW)


def test_thread_stands_in_for_the_conversation(sealed: Message, deliver: Deliver) -> None:
    assert deliver(codec.encode(sealed), conversation_id="-") == sealed


# Seals of other messages, and other messages under a seal


@pytest.mark.parametrize(
    "change",
    [
        {"sender": BANK},
        {"receiver": MALLORY},
        {"conversation_id": "request-5"},
        {"reply_with": "g-2"},
        {"reply_with": "-"},
        {"in_reply_to": "accept-2"},
        {"in_reply_to": "-"},
        {"reply_by": "1500001"},
        {"reply_by": "1500000.0"},
        {"signed_at": "2026-11-21T08:00:01.000000Z"},
        {"performative": "refuse"},
        {"body": '<HoldGranted xmlns="urn:ramp:market:1" requestId="request-4" offerId="offer-17" '
         'reservationId="thunder1-000123" holdFor="PT120S"></HoldGranted>'},
        {"body": '<HoldCancelled xmlns="urn:ramp:market:1" requestId="request-4" offerId="offer-17"/>'},
    ],
    ids=str,
)  # fmt: skip
def test_seal_fits_no_other_message(sealed: Message, deliver: Deliver, change: dict[str, str]) -> None:
    """Replayed to another, in another conversation, as an answer to something else, with another document."""
    with pytest.raises(SealInvalid, match=r"does not fit the message|expected the sender"):
        deliver(codec.encode(sealed), **change)


@pytest.mark.parametrize("left_out", ["signature", "certificate", "signed_at"])
def test_stripped_seal_is_refused(sealed: Message, deliver: Deliver, left_out: str) -> None:
    with pytest.raises(SealInvalid, match=r"is missing|signed-at: got ''"):
        deliver(codec.encode(sealed), **{left_out: "-"})
    with pytest.raises(SealInvalid, match="HoldGranted without a seal"):
        deliver(codec.encode(sealed), signature="-", certificate="-", signed_at="-")


def test_swapped_seals_are_refused(resource_notary: XmlNotary, sealed: Message, deliver: Deliver) -> None:
    """Both genuine, both from the same party to the same party at the same moment."""
    content = contents.HoldGranted("request-4", "offer-18", "thunder1-000124", 120 * SECOND)
    other = resource_notary.seal(replace(granted(), content=content), NOW)
    deliver(codec.encode(other))
    with pytest.raises(SealInvalid, match="does not fit"):
        deliver(codec.encode(sealed), signature=codec.encode(other).metadata["signature"])
    with pytest.raises(SealInvalid, match="does not fit"):
        deliver(codec.encode(sealed), body=codec.encode(other).body)


def test_own_seal_under_another_s_name_is_refused(store: KeyStore, deliver: Deliver) -> None:
    """Mallory is certified by the market; she seals a message that says it is the bank's."""
    key, certificate = store.identity(MALLORY)
    payment = contents.PaymentMade("agreement-9", "transfer-5", 704_000)
    with pytest.raises(SealInvalid, match="may not seal for bank"):
        store.notary(MALLORY).seal(Message(Performative.AGREE, BANK, USER, "request-4", payment), NOW)
    genuine = store.notary(BANK).seal(Message(Performative.AGREE, BANK, USER, "request-4", payment), NOW)
    forged = resealed(text_of(genuine), key, certificate)
    with pytest.raises(SealInvalid, match=r"got 'mallory@localhost', expected the sender 'bank@localhost'"):
        store.notary(USER).open(forged.text(), NOW)
    encoded = codec.encode(genuine)
    with pytest.raises(SealInvalid, match="does not fit"):
        deliver(encoded, sender=BANK, signature=forged.signature)
    with pytest.raises(SealInvalid, match="got 'mallory@localhost'"):
        deliver(encoded, sender=BANK, signature=forged.signature, certificate=forged.certificate)


# Kept texts


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("RAMP sealed message 1", "RAMP sealed message 2", "does not begin with"),
        ("to: alice@localhost\n", "", "header lines: got 8"),
        ("to: alice@localhost\n", "to: alice@localhost\nto: bank@localhost\n", "header lines: got 10"),
        ("to: alice@localhost\n", "To: alice@localhost\n", "header line: got 'To: alice@localhost'"),
        ("to: alice@localhost\n", "to:alice@localhost\n", "canonical form"),
        ("to: alice@localhost\n", "to:  alice@localhost\n", "does not fit"),
        ("\nsignature: ", "\nSignature: ", "last two lines"),
        ("\ncertificate: ", "\n\ncertificate: ", "last two lines"),
        ("signature: ", "signature: =", "not base64"),
        ("Z\n\n<", "Z\r\n\r\n<", "header lines"),
        ("08:00:00.000000Z", "08:00:00Z", "signed-at: got"),
        ("08:00:00.000000Z", "08:00:00.000000+00:00", "signed-at: got"),
        ("document: HoldGranted", "document: HoldRefused", "does not fit"),
        ("performative: agree", "performative: ", "canonical form"),
    ],
)
def test_text_that_was_changed_is_refused(
    sealed: Message, user_notary: XmlNotary, old: str, new: str, reason: str
) -> None:
    attack = text_of(sealed).replace(old, new, 1)
    assert attack != text_of(sealed)
    with pytest.raises(SealInvalid, match=reason):
        user_notary.open(attack, NOW)


def test_signature_is_written_in_one_way_only(resource_notary: XmlNotary, user_notary: XmlNotary) -> None:
    """The last character of base64 may hold bits that belong to nothing; a text with others would be another text."""
    for _ in range(50):
        sealed = seals.parse(text_of(resource_notary.seal(granted(), NOW)))
        if sealed.signature.endswith("="):
            break
    stem = sealed.signature.rstrip("=")
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    other = alphabet[alphabet.index(stem[-1]) + 1]
    twin = replace(sealed, signature=sealed.signature.replace(stem, stem[:-1] + other))
    assert base64.b64decode(twin.signature) == base64.b64decode(sealed.signature)
    with pytest.raises(SealInvalid, match="not canonical base64"):
        user_notary.open(twin.text(), NOW)


def test_doubled_and_truncated_texts_are_refused(sealed: Message, user_notary: XmlNotary) -> None:
    text = text_of(sealed)
    for attack in (text + text, text + "\n", text.removesuffix("\n"), text.replace("\n", "\r\n"), "", "\n", " " + text):
        with pytest.raises(SealInvalid):
            user_notary.open(attack, NOW)
    for end in range(len(text)):
        with pytest.raises(SealInvalid):
            user_notary.open(text[:end], NOW)


def test_seal_for_one_document_over_another_is_refused(store: KeyStore, user_notary: XmlNotary) -> None:
    """The resource itself seals it, with the wrong name of document: what it is good for would be anybody's guess."""
    honest = text_of(store.notary(RESOURCE).seal(granted(), NOW))
    for document in ("HoldCancelled", "", "Hold", "Unverified", "OrderLine"):
        with pytest.raises(SealInvalid, match="covers another document"):
            user_notary.open(resealed(honest, *store.identity(RESOURCE), document=document).text(), NOW)
    with pytest.raises(DocumentError, match=f"^agree of {RESOURCE}: "):  # the seal holds, the document does not
        user_notary.open(resealed(honest, *store.identity(RESOURCE), body="<HoldGranted/>").text(), NOW)


def test_xml_signature_is_no_seal_and_a_seal_no_xml_signature(
    store: KeyStore, signed: Signed, sealed: Message, user_notary: XmlNotary
) -> None:
    """What an XML signature covers begins with `<`, what a seal covers with `R`; the same key makes both."""
    with pytest.raises(SealInvalid, match="does not begin with"):
        user_notary.open(signed.document, NOW)
    with pytest.raises(DocumentError):
        user_notary.verify(text_of(sealed), NOW)
    signature = signed.document[signed.document.index("<ds:SignatureValue>") + len("<ds:SignatureValue>") :]
    raw = base64.b64decode(signature[: signature.index("<")])
    forged = replace(seals.parse(text_of(sealed)), signature=seals.pack(raw))
    with pytest.raises(SealInvalid, match="does not fit"):
        user_notary.open(forged.text(), NOW)


# Signers


def test_revoked_expired_and_repinned_signers_are_refused(tmp_path: Path) -> None:
    market = market_of(tmp_path, {USER: Role.USER, RESOURCE: Role.RESOURCE}, 30 * DAY)
    reader = market.notary(USER)
    text = text_of(market.notary(RESOURCE).seal(granted(), NOW))
    assert reader.open(text, NOW).content == granted().content
    with pytest.raises(SealInvalid, match="expired"):
        reader.open(text, NOW + 31 * DAY)
    with pytest.raises(CertificateExpired):
        market.notary(RESOURCE).seal(granted(), NOW + 31 * DAY)
    market.renew(RESOURCE, NOW, new_key=True)
    with pytest.raises(SealInvalid, match="is on file"):
        reader.open(text, NOW)
    text = text_of(market.notary(RESOURCE).seal(granted(), NOW))
    assert reader.open(text, NOW).content == granted().content
    market.revoke(RESOURCE, NOW)
    with pytest.raises(SealInvalid, match="revoked"):
        reader.open(text, NOW)


def other_notary(store: KeyStore, name: str, key: PrivateKey, certificate: x509.Certificate) -> XmlNotary:
    return XmlNotary(name, key, certificate, Trust(store.ca_certificates()))


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.RESOURCE])
def test_right_key_in_the_wrong_role_is_refused(store: KeyStore, role: Role) -> None:
    """The same name and key; only what the certificate says of it differs. No pin stands in the way."""
    key, _ = store.identity(RESOURCE)
    certificate = certificate_for(store, key, NOW, names=(RESOURCE,), roles=(role,))
    notary = other_notary(store, RESOURCE, key, certificate)
    with pytest.raises(SealInvalid, match=f"for a HoldGranted: got {role}, expected resource"):
        notary.seal(granted(), NOW)
    forged = resealed(text_of(store.notary(RESOURCE).seal(granted(), NOW)), key, certificate).text()
    with pytest.raises(SealInvalid, match=f"for a HoldGranted: got {role}, expected resource"):
        store.notary(USER).open(forged, NOW)


@pytest.mark.parametrize("roles", [(), (Role.BANK, Role.RESOURCE), ("Resource",), ("cashier",)])
def test_certificate_without_one_role_seals_nothing(store: KeyStore, roles: tuple[str, ...]) -> None:
    key, _ = store.identity(RESOURCE)
    certificate = certificate_for(store, key, NOW, names=(RESOURCE,), roles=roles)
    forged = resealed(text_of(store.notary(RESOURCE).seal(granted(), NOW)), key, certificate).text()
    with pytest.raises(SealInvalid, match="expected one of user, resource, bank, directory, keeper"):
        store.notary(USER).open(forged, NOW)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (rsa.generate_private_key(65537, 2048), "unsupported key: got RSAPublicKey, expected P-256"),
        (ec.generate_private_key(ec.SECP384R1()), "unsupported key: got secp384r1, expected P-256"),
    ],
    ids=["rsa", "p384"],
)
def test_other_kinds_of_keys_are_refused(store: KeyStore, key: Any, reason: str) -> None:
    certificate = certificate_for(store, key, NOW, names=("weak@localhost",), roles=(Role.RESOURCE,))
    own_key, _ = store.identity(RESOURCE)
    honest = text_of(store.notary(RESOURCE).seal(granted(), NOW))
    forged = resealed(honest, own_key, certificate, sender="weak@localhost").text()
    with pytest.raises(SealInvalid, match=reason):
        store.notary(USER).open(forged, NOW)


def test_only_certificates_that_have_passed_are_remembered_and_not_without_end(
    store: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Junk neither fills the memory nor drives others out; beyond the bound each is checked anew, and as strictly."""
    monkeypatch.setattr(certificates, "CERTIFICATES_CHECKED_MAX", 2)
    known = certificates.Trust(store.ca_certificates())
    key = ec.generate_private_key(ec.SECP256R1())
    strangers = [certificate_for(store, key, NOW, roles=()) for _ in range(3)]
    for certificate in strangers:
        with pytest.raises(DocumentError, match="got no role"):
            known.check(certificate.public_bytes(Encoding.DER), NOW)
    for name in (USER, RESOURCE, BANK, MALLORY):
        for _ in range(2):
            assert known.check(store.identity(name)[1].public_bytes(Encoding.DER), NOW).name == name
    assert [party.name for party in known._known.values()] == [USER, RESOURCE]
    for name in (USER, MALLORY):
        with pytest.raises(CertificateExpired):
            known.check(store.identity(name)[1].public_bytes(Encoding.DER), NOW + 366 * DAY)


# Time


@pytest.mark.parametrize("by", [-30 * DAY, -HOUR, 30 * DAY, 400 * DAY])
def test_the_banks_clock_is_read_by_whoever_has_a_wrong_one(store: KeyStore, user_notary: XmlNotary, by: int) -> None:
    """Its word on the time is judged by the time that it states, also where no certificate of the market held yet."""
    reading = contents.ClockReading("clock-1", NOW)
    sealed = store.notary(BANK).seal(Message(Performative.INFORM, BANK, USER, "c-1", reading), NOW)
    assert user_notary.open(text_of(sealed), NOW + by).content == reading


def test_old_and_future_seals_are_refused(resource_notary: XmlNotary, deliver: Deliver, user_notary: XmlNotary) -> None:
    later = NOW + HOUR
    sealed = resource_notary.seal(granted(), later)
    encoded = codec.encode(sealed)
    assert deliver(encoded, at=later + 10 * MINUTE) == sealed
    assert deliver(encoded, at=later - 5 * MINUTE) == sealed
    with pytest.raises(SealInvalid, match="too long ago"):
        deliver(encoded, at=later + 10 * MINUTE + 1)
    with pytest.raises(SealInvalid, match="in the future"):
        deliver(encoded, at=later - 5 * MINUTE - 1)
    with pytest.raises(SealInvalid, match="in the future"):
        user_notary.open(text_of(sealed), later - 5 * MINUTE - 1)


# Sizes and slots


@pytest.mark.parametrize("slot", ["conversation_id", "reply_with", "in_reply_to", "receiver"])
@pytest.mark.parametrize("character", "\n\r\x85\u2028\u2029\x0b\x00\x1b\x9b\u202e\u200b")
def test_slots_with_line_breaks_or_hidden_characters_are_refused(
    resource_notary: XmlNotary, deliver: Deliver, sealed: Message, slot: str, character: str
) -> None:
    value = f"a{character}to: bank@localhost"
    with pytest.raises(SealInvalid, match="must be one line of printable characters"):
        resource_notary.seal(replace(granted(), **{slot: value}), NOW)
    with pytest.raises(SealInvalid, match="must be one line of printable characters"):
        deliver(codec.encode(sealed), **{slot: value})


def test_sizes_are_checked_before_anything_is_read(
    resource_notary: XmlNotary, user_notary: XmlNotary, sealed: Message, deliver: Deliver
) -> None:
    encoded = codec.encode(sealed)
    with pytest.raises(SealInvalid, match=r"signature too long: got \d+ characters"):
        deliver(encoded, signature="A" * 4_000)
    with pytest.raises(SealInvalid, match=r"certificate too long: got \d+ characters"):
        deliver(encoded, certificate="A" * 20_000)
    with pytest.raises(SealInvalid, match="reply-with too long: got 1001 characters"):
        deliver(encoded, reply_with="x" * 1001)
    with pytest.raises(DocumentError):
        deliver(encoded, body=encoded.body + " " * DOCUMENT_BYTES_MAX)
    with pytest.raises(DocumentError):
        user_notary.open(text_of(sealed).replace("<HoldGranted", " " * seals.TEXT_BYTES_MAX + "<HoldGranted"), NOW)
    with pytest.raises(DocumentError, match=f"HoldGranted of {granted().conversation_id}: "):
        resource_notary.seal(replace(granted(), content=contents.HoldGranted("x" * 90_001, "o", "r", 0)), NOW)


def test_seal_of_a_message_that_was_changed_is_not_sent(sealed: Message) -> None:
    """A host that seals first and changes the message afterwards would send something that nobody believes."""
    for changed in (
        replace(sealed, receiver=MALLORY),
        replace(sealed, in_reply_to="accept-2"),
        replace(sealed, reply_by=None),
        replace(sealed, conversation_id="request-5"),
    ):
        with pytest.raises(DocumentError, match="belongs to another message"):
            codec.encode(changed)


def test_offers_may_be_sealed_and_are_then_checked(
    resource_notary: XmlNotary, user_notary: XmlNotary, deliver: Deliver
) -> None:
    proposal = contents.Proposal("request-4", 1)
    message = Message(Performative.REFUSE, RESOURCE, USER, "request-4", proposal)
    assert deliver(codec.encode(message)).seal is None
    sealed = resource_notary.seal(message, NOW)
    assert deliver(codec.encode(sealed)) == sealed
    with pytest.raises(SealInvalid, match="does not fit"):
        deliver(codec.encode(sealed), body=codec.encode(sealed).body.replace('"1"', '"2"'))
    plain = replace(codec.encode(message), peer=RESOURCE)
    with pytest.raises(SealInvalid, match="Proposal without a seal"):
        codec.decode(plain, USER, user_notary, NOW, sealed=SEALED | OFFERS)
