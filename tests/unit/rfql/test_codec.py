"""Metadata and bodies of messages, and what the codec refuses (FIPA SC00061 names the slots)."""

from dataclasses import replace
from typing import Any

import pytest

from ramp.errors import DocumentError, SealInvalid
from ramp.model import contents
from ramp.model.acl import CONTENT_OF, OFFERS, ROLES_OF, SEALED, EncodedMessage, Message, Performative
from ramp.model.agreement import Signed
from ramp.model.instant import DAY, MILLISECOND, Instant, from_iso, iso
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.ports import Verifier
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.rfql import codec, documents
from ramp.rfql.signing.certificates import Trust
from ramp.rfql.signing.notary import PublicNotary, XmlNotary, sign_text
from ramp.rfql.xml import schema
from ramp.rfql.xml.parser import DOCUMENT_BYTES_MAX
from ramp.runtime.keys.store import KeyStore
from tests.unit.rfql.conftest import AGREEMENT, CANCELLATION, NOW, RESOURCE, UNIT, USER

REJECTION = Message(
    Performative.REJECT_PROPOSAL,
    USER,
    RESOURCE,
    "request-4",
    contents.Rejection("request-4", "offer-17", "dearer"),
    "a-1",
    "p-1",
)


STRANGERS = PublicNotary(Trust(()))
"""For documents in which nothing is signed or sealed."""


def decode(encoded: EncodedMessage, notary: Verifier = STRANGERS, **metadata: str) -> Message:
    arrived = replace(encoded, peer=USER, metadata={**encoded.metadata, **metadata})
    return codec.decode(arrived, RESOURCE, notary, NOW)


def read(body: str, source: str | None = None) -> contents.Content:
    return documents.read_content(body, STRANGERS, NOW, source)


def call_for(request_id: str, *units: RequestUnit) -> str:
    return documents.write_content(contents.CallForProposals(request_id, 1, RequestForQuotation(units or (UNIT,))))


@pytest.mark.parametrize("version", ["2", "1.0", "1.6", "0", "one", "-1", "\u0661", "9" * 500])
def test_a_message_of_another_version_is_refused_and_says_so(version: str) -> None:
    with pytest.raises(DocumentError, match=r"version of the wire format: got '.*, expected 1; both sides must run"):
        decode(codec.encode(REJECTION), version=version)


def test_a_message_without_a_version_is_refused() -> None:
    encoded = codec.encode(REJECTION)
    del encoded.metadata["version"]
    with pytest.raises(DocumentError, match="wrong version of the wire format: got none, expected 1"):
        decode(encoded)


def test_a_document_of_another_version_is_refused_and_says_so() -> None:
    encoded = codec.encode(REJECTION)
    another = replace(encoded, body=encoded.body.replace("urn:ramp:market:1", "urn:ramp:market:2"))
    with pytest.raises(DocumentError, match="its namespace: got urn:ramp:market:2, expected urn:ramp:market:1; both"):
        decode(another)


def test_slots_have_fipa_s_names() -> None:
    encoded = codec.encode(replace(REJECTION, reply_by=1500 * MILLISECOND))
    assert encoded.metadata == {
        "performative": "reject-proposal",
        "conversation-id": "request-4",
        "reply-with": "a-1",
        "in-reply-to": "p-1",
        "reply-by": "1500",
        "ontology": "ComputeMarket",
        "language": "rfql-xml",
        "x-document": "Rejection",
        "version": "1",
        "protocol": "fipa-iterated-contract-net",
    }
    assert encoded.thread == "request-4"
    assert encoded.body == (
        '<Rejection xmlns="urn:ramp:market:1" requestId="request-4" offerId="offer-17" reason="dearer"/>'
    )


@pytest.mark.parametrize(("reply_by", "text"), [(0, "0"), (250, "0.250"), (1_000_001, "1000.001")])
def test_reply_by_is_exact(reply_by: int, text: str) -> None:
    encoded = codec.encode(replace(REJECTION, reply_by=reply_by))
    assert encoded.metadata["reply-by"] == text
    assert decode(encoded).reply_by == reply_by


def test_empty_slots_are_left_out() -> None:
    encoded = codec.encode(replace(REJECTION, reply_with="", in_reply_to=""))
    assert not {"reply-with", "in-reply-to", "reply-by"} & encoded.metadata.keys()


def test_thread_stands_in_for_a_missing_conversation_id() -> None:
    encoded = codec.encode(REJECTION)
    del encoded.metadata["conversation-id"]
    assert decode(encoded) == REJECTION
    with pytest.raises(DocumentError, match="conversation-id is missing"):
        decode(replace(encoded, thread=""))


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"performative": "accept"}, "performative: got 'accept', expected"),
        ({"performative": ""}, "performative: got ''"),
        ({"ontology": "Zoo"}, "ontology: got 'Zoo', expected 'ComputeMarket'"),
        ({"language": "fipa-sl"}, "language: got 'fipa-sl', expected 'rfql-xml'"),
        ({"reply-by": "soon"}, "reply-by: got 'soon'"),
        ({"reply-by": "-5"}, "reply-by: got '-5'"),
        ({"reply-by": "9" * 5000}, "reply-by: got"),
        ({"performative": "inform"}, "Rejection does not go with this performative"),
    ],
)
def test_wrong_metadata_is_refused(metadata: dict[str, str], reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        decode(codec.encode(REJECTION), **metadata)


def test_content_of_another_performative_is_not_sent() -> None:
    with pytest.raises(DocumentError, match="Rejection cannot be sent as inform"):
        codec.encode(replace(REJECTION, performative=Performative.INFORM))


def test_unverified_is_never_sent() -> None:
    content = contents.Unverified("agreement", "agreement-9", "bad_signature", "")
    assert contents.Unverified in CONTENT_OF[Performative.CONFIRM]
    with pytest.raises(DocumentError, match="Unverified cannot be sent"):
        codec.encode(Message(Performative.CONFIRM, USER, RESOURCE, "request-4", content))


def test_unsigned_agreement_is_not_sent() -> None:
    with pytest.raises(DocumentError, match="not signed"):
        codec.encode(Message(Performative.REQUEST, RESOURCE, "bank@localhost", "request-4", Signed(AGREEMENT)))


@pytest.mark.parametrize(
    ("detail", "count", "size"),
    [("x" * 3000, 40, r"12\d{4}"), ("я" * 4000, 12, r"9\d{4}")],
    ids=["long", "bytes, not characters"],
)
def test_document_over_the_limit_is_refused_before_it_is_sent(detail: str, count: int, size: str) -> None:
    refusals = (Refusal(1, RefusalCode.PRICE, "", detail),) * count
    message = Message(Performative.REFUSE, RESOURCE, USER, "request-4", contents.Proposal("request-4", 1, (), refusals))
    told = rf"request-4: document too large: got {size} bytes, .* at most {DOCUMENT_BYTES_MAX}"
    with pytest.raises(DocumentError, match=told):
        codec.encode(message)


def test_line_ends_and_tabs_survive_the_parser_s_normalisation() -> None:
    """XML turns a bare carriage return into a line feed, and in attributes every white space into a space."""
    text = "a\rb\r\nc\td\ne"
    order = contents.JobOrder("job-1", "agreement-9", 1, 1, 0, (text,))
    for content in (order, contents.MachineStatus("query-1", text)):
        assert read(documents.write_content(content)) == content


def test_sentences_for_people_never_stop_a_message() -> None:
    """A batch system's coloured output, far too long: replaced and cut, but the refusal itself arrives."""
    detail = "\x1b[31mdown\x1b[0m " + "x" * 9000
    content = contents.HoldRefused("request-4", "offer-17", RefusalCode.PLUGIN_FAILED, detail)
    decoded = read(documents.write_content(content))
    assert isinstance(decoded, contents.HoldRefused)
    assert decoded.detail.startswith("?[31mdown?[0m xxx")
    assert decoded.detail.endswith("x…")
    assert len(decoded.detail) == 4000


def test_text_that_xml_cannot_carry_is_refused() -> None:
    with pytest.raises(DocumentError, match=r"U\+0007"):
        codec.encode(replace(REJECTION, content=contents.Rejection("request-4", "offer\x07", "")))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("", "not well-formed"),
        ("<Acceptance", "not well-formed"),
        ("<!-- --><a/>", "forbidden markup"),
        ("<Acceptance/>", "unknown root element"),
        ('<Acceptance xmlns="urn:ramp:market:1" requestId="r"/>', "offerId"),
        ('<Offer xmlns="urn:ramp:market:1"/>', "unknown root element"),
        ("\ud800", "not text"),
        ('<m:Rejection xmlns:m="urn:ramp:market:1"/>', "no prefix"),
        ('\ufeff<Rejection xmlns="urn:ramp:market:1"/>', "must come first"),
    ],
)
def test_wrong_bodies_are_refused(body: str, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        read(body)


def test_request_that_makes_no_sense_is_refused_in_a_call() -> None:
    unit = RequestUnit(1, 70, NOW, TotalCores(4), not_before=NOW + DAY)
    call = contents.CallForProposals("request-4", 1, RequestForQuotation((unit,)))
    encoded = codec.encode(Message(Performative.CFP, USER, RESOURCE, "request-4", call))
    with pytest.raises(DocumentError, match="must be after the start"):
        decode(encoded)


def test_units_are_numbered_by_position() -> None:
    unit = RequestUnit(2, 70, NOW, TotalCores(4))
    call = contents.CallForProposals("request-4", 1, RequestForQuotation((unit,)))
    with pytest.raises(DocumentError, match=r"numbers: got \[2\]"):
        codec.encode(Message(Performative.CFP, USER, RESOURCE, "request-4", call))


# Signed contents


def sent(signed: Signed) -> EncodedMessage:
    return codec.encode(Message(Performative.REQUEST, USER, RESOURCE, "request-4", signed))


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('cost="704000"', 'cost="1"', "bad_signature"),
        ("LINUX", "L<!-- -->INUX", "malformed"),
    ],
)
def test_broken_document_becomes_unverified_or_is_refused(
    signed: Signed, resource_notary: XmlNotary, old: str, new: str, code: str
) -> None:
    """What cannot even be parsed names nobody to answer about, so it is refused as a whole."""
    encoded = replace(sent(signed), body=signed.document.replace(old, new))
    if code == "malformed":
        with pytest.raises(DocumentError):
            decode(encoded, resource_notary)
        return
    content = decode(encoded, resource_notary).content
    assert isinstance(content, contents.Unverified)
    assert (content.kind, content.reference, content.code) == ("agreement", "agreement-9", code)
    assert "does not verify" in content.detail


def test_codes_of_unverified_documents(
    signed: Signed, countersigned: Signed, resource_notary: XmlNotary, store: KeyStore
) -> None:
    def content(body: str, at: Instant) -> contents.Unverified:
        found = documents.read_content(body, resource_notary, at)
        assert isinstance(found, contents.Unverified)
        return found

    assert content(signed.document, NOW + 366 * DAY).code == "certificate_expired"
    mallory = store.identity("mallory@localhost")
    assert content(sign_text(documents.write_body(AGREEMENT), *mallory), NOW).code == "unknown_signer"
    contradictory = sign_text(documents.write_body(replace(AGREEMENT, cost=1)), *store.identity(USER))
    assert content(contradictory, NOW).code == "malformed"
    assert content(countersigned.document.replace('cost="704000"', 'cost="1"'), NOW).reference == "agreement-9"


def test_reference_and_kind_of_unverified_cancellations(user_notary: XmlNotary, resource_notary: XmlNotary) -> None:
    once = user_notary.sign(Signed(CANCELLATION), NOW)
    twice = resource_notary.sign(once, NOW)
    for signed in (once, twice):
        content = documents.read_content(signed.document, resource_notary, NOW + 366 * DAY)
        assert isinstance(content, contents.Unverified)
        assert (content.kind, content.reference, content.code) == ("cancellation", "agreement-9", "certificate_expired")


# What must be sealed


def test_what_must_be_sealed_is_neither_sent_nor_read_without_a_seal() -> None:
    acceptance = Message(
        Performative.ACCEPT_PROPOSAL, USER, RESOURCE, "request-4", contents.Acceptance("request-4", "offer-17")
    )
    with pytest.raises(DocumentError, match="Acceptance needs a seal"):
        codec.encode(acceptance)
    metadata = {**codec.encode(REJECTION).metadata, "performative": "accept-proposal"}
    plain = EncodedMessage(USER, documents.write_content(acceptance.content), metadata, "")
    with pytest.raises(SealInvalid, match="accept-proposal of alice@localhost: Acceptance without a seal"):
        codec.decode(plain, RESOURCE, STRANGERS, NOW)
    read = codec.decode(plain, RESOURCE, STRANGERS, NOW, sealed=frozenset())
    assert read.content == acceptance.content
    with pytest.raises(SealInvalid, match="Rejection without a seal"):
        codec.decode(replace(codec.encode(REJECTION), peer=USER), RESOURCE, STRANGERS, NOW, sealed=SEALED | OFFERS)


def test_every_content_that_must_be_sealed_has_its_roles() -> None:
    assert ROLES_OF.keys() == SEALED | OFFERS
    assert all(ROLES_OF.values())
    sendable = {kind for kinds in CONTENT_OF.values() for kind in kinds}
    assert sendable >= SEALED | OFFERS


# Moments and durations at the ends of what can be represented (a machine adds them, and writes the sum)


@pytest.mark.parametrize(
    "body",
    [
        '<MachineQuery xmlns="urn:ramp:market:1" queryId="q-1" horizon="PT999999999999S"/>',
        '<MachineQuery xmlns="urn:ramp:market:1" queryId="q-1" horizon="-PT99999999999S"/>',
        '<OverviewQuery xmlns="urn:ramp:market:1" queryId="q-1" since="9000-01-01T00:00:00Z"/>',
        '<OverviewQuery xmlns="urn:ramp:market:1" queryId="q-1" since="1969-12-31T23:59:59.999999Z"/>',
        '<OverviewQuery xmlns="urn:ramp:market:1" queryId="q-1" since="9999-12-31T24:00:00Z"/>',
        '<OverviewQuery xmlns="urn:ramp:market:1" queryId="q-1" since="0000-01-01T00:00:00Z"/>',
    ],
)
def test_moments_and_durations_out_of_range_are_refused(body: str) -> None:
    with pytest.raises(DocumentError):
        read(body)


def test_whatever_moment_and_duration_pass_their_sum_is_a_moment() -> None:
    query = read(
        '<OverviewQuery xmlns="urn:ramp:market:1" queryId="q-1" since="8999-12-31T23:59:59.999999Z" '
        'until="1970-01-01T00:00:00Z"/>'
    )
    horizon = read('<MachineQuery xmlns="urn:ramp:market:1" queryId="q-1" horizon="PT9999999999.999999S"/>')
    assert isinstance(query, contents.OverviewQuery)
    assert isinstance(horizon, contents.MachineQuery)
    assert query.since is not None
    assert query.until is not None
    assert iso(query.since + 3 * horizon.horizon).startswith("9950-")
    assert iso(query.until - 6 * horizon.horizon).startswith("0068-")


@pytest.mark.parametrize(
    "content",
    [
        contents.OverviewQuery("q-1", since=-1),
        contents.OverviewQuery("q-1", until=from_iso("9000-01-01T00:00:00Z")),
        contents.MachineQuery("q-1", 10**16),
        contents.MachineQuery("q-1", -(10**30)),
    ],
)
def test_moments_and_durations_out_of_range_are_not_written(content: contents.Content) -> None:
    with pytest.raises(DocumentError):
        documents.write_content(content)


def test_lists_have_an_end() -> None:
    """Within the size limit, but with more parts than any reader should have to look at."""
    agents = '<Agent name="a"/>' * 1000
    head = '<DirectoryListing xmlns="urn:ramp:market:1" queryId="q-1" service="resource-trader">'
    read(f"{head}{agents}</DirectoryListing>")
    with pytest.raises(DocumentError, match="Agent"):
        read(f'{head}{agents}<Agent name="a"/></DirectoryListing>')
    bids = '<Bid unit="1" resource="r" cpuHourCost="1"/>' * 2001
    with pytest.raises(DocumentError):
        read(call_for("r-1").replace("</CallForProposals>", f"{bids}</CallForProposals>"))
    units = tuple(RequestUnit(number, 70, NOW + DAY, TotalCores(4)) for number in range(1, 258))
    with pytest.raises(DocumentError, match="Request"):
        read(call_for("r-1", *units))
    assert call_for("r-1", *units[:256])


# -- a call for proposals that many resources of one process hear is parsed and checked once ---------------------------


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Root elements that are checked against the schema."""
    found: list[str] = []
    original = schema.check

    def check(root: Any, *arguments: Any) -> None:
        found.append(str(root.tag).rpartition("}")[2])
        original(root, *arguments)

    monkeypatch.setattr(schema, "check", check)
    return found


def test_the_same_words_are_checked_once_and_mean_the_same(checked: list[str]) -> None:
    first, second = read(call_for("once")), read(call_for("once"))
    assert isinstance(first, contents.CallForProposals)
    assert first == second
    assert first.request.units == (UNIT,)
    assert checked == ["CallForProposals"]
    assert read(call_for("other")) != first
    assert len(checked) == 2


def test_what_is_wrong_is_told_each_time_with_who_said_it() -> None:
    for number in range(2):
        body = call_for("wrong").replace('roundNumber="1"', 'roundNumber="none"')
        with pytest.raises(DocumentError, match=f"user{number}"):
            read(body, f"cfp of user{number}")


def test_other_documents_are_checked_each_time(checked: list[str]) -> None:
    for _ in range(2):
        read(documents.write_content(contents.Proposal("r", 1)))
    assert checked == ["Proposal"] * 2
