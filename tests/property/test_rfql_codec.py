"""Every message round-trips: decode(encode(m)) == m, for generated contents of every kind."""

import base64
import dataclasses
from dataclasses import replace
from functools import cache
from typing import Any, get_args, get_type_hints

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from ramp.errors import DocumentError, SealInvalid
from ramp.model import contents
from ramp.model.acl import CONTENT_OF, ROLES_OF, EncodedMessage, Message, Performative
from ramp.model.agreement import ORDER_VALIDITY_MAX, TERMINAL, Agreement, ContractChange, Signable, Signed
from ramp.model.instant import SECOND, from_iso
from ramp.model.offer import Offer
from ramp.model.request import (
    MoldableTerms,
    NodeDiskSpace,
    Nodes,
    RequestForQuotation,
    RequestUnit,
    TorusTerms,
    TotalCores,
    TotalDiskSpace,
)
from ramp.model.seal import Role
from ramp.model.sizes.amended import AMENDMENT_NUMBER_MAX
from ramp.rfql import codec, documents, request_for_quotation
from ramp.rfql.record import record_of
from ramp.rfql.signing.certificates import Trust
from ramp.rfql.signing.notary import PublicNotary, XmlNotary
from ramp.rfql.xml.namespaces import MARKET, schemas_dir
from ramp.text import IDENTIFIER
from tests.unit.rfql.conftest import NOW, RESOURCE, USER, market_of

# Whatever XML 1.0 can carry: no control characters but tab and line ends, no surrogates, no noncharacters at the top.
# Excluded rather than filtered out, character by character, which takes three times as long.
NOT_IN_XML = "".join(chr(code) for code in range(0x20) if chr(code) not in "\t\n\r") + "\ufffe\uffff"
raw_texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters=NOT_IN_XML), max_size=40)

PRINTABLE = st.characters(exclude_categories=("Cc", "Cf", "Cn", "Cs", "Zl", "Zp"))
texts = st.text(PRINTABLE, max_size=40)
words = st.text(PRINTABLE, min_size=1, max_size=40)
identifiers = st.from_regex(IDENTIFIER, fullmatch=True)
instants = st.integers(0, from_iso("8999-12-31T23:59:59Z"))
durations = st.integers(-(10**15), 10**15)
prices = st.integers(0, 10**9)
counts = st.integers(1, 10**9)

torus_terms = st.builds(
    TorusTerms,
    geometry=st.lists(st.integers(1, 999_999), max_size=6).map(tuple),
    rotate=st.booleans(),
    connection=st.sampled_from(["torus", "mesh", "any"]),
    node_use=st.sampled_from(["", "coprocessor", "virtual"]),
)


site_lists = st.lists(
    st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?", fullmatch=True), min_size=1, max_size=64, unique=True
).map(tuple)


@st.composite
def request_units(draw: st.DrawFn, number: int = 1) -> RequestUnit:
    """One unit that makes sense: its window holds its wall time."""
    deadline = draw(st.integers(10**12, from_iso("8999-12-31T23:59:59Z")))
    not_before = draw(st.none() | st.integers(deadline - 10**12, deadline - 1))
    longest = 10**6 if not_before is None else (deadline - not_before) // SECOND
    unit = RequestUnit(
        number=number,
        cpu_hour_cost=draw(prices),
        deadline=deadline,
        cores=draw(st.builds(TotalCores, counts) | st.builds(Nodes, counts, counts)),
        not_before=not_before,
        wall_time=draw(st.none() | st.integers(1, longest).map(lambda s: s * SECOND)) if longest else None,
        operating_system=draw(st.none() | st.sampled_from(["LINUX", "AIX", "other"])),
        os_version=draw(st.none() | texts),
        architecture=draw(st.none() | st.sampled_from(["x86_64", "powerpc", "gpu"])),
        cpu_speed_mhz=draw(st.none() | counts),
        inter_node_bandwidth_mbps=draw(st.none() | counts),
        ram_per_core_mb=draw(st.none() | counts),
        disk=draw(st.none() | st.builds(TotalDiskSpace, counts) | st.builds(NodeDiskSpace, counts)),
        torus=draw(st.none() | torus_terms),
        sites=draw(st.none() | site_lists),
    )
    if isinstance(unit.cores, Nodes) and draw(st.booleans()):
        model = draw(st.none() | st.sampled_from(["a100", "gfx90a.X-1"]))
        return replace(unit, gpus_per_node=draw(counts), gpu_model=model, gpu_memory_mb=draw(st.none() | counts))
    shaped = unit.torus is not None and unit.torus.geometry
    if unit.wall_time is None or not isinstance(unit.cores, TotalCores) or shaped:
        return unit
    laws = st.sampled_from(["amdahl:0", "amdahl:0.05", "downey:64:1.5", "table:1=100,16=20.5"])
    reference = unit.cores.total
    ranges = st.builds(MoldableTerms, st.integers(1, reference), st.integers(reference, 10**9), laws)
    return replace(unit, moldable=draw(st.none() | ranges))


@st.composite
def requests(draw: st.DrawFn) -> RequestForQuotation:
    size = draw(st.integers(1, 3))
    return RequestForQuotation(tuple(draw(request_units(number)) for number in range(1, size + 1)))


@st.composite
def agreements(draw: st.DrawFn) -> Agreement:
    """An agreement whose parts say the same."""
    number = draw(st.integers(1, 5))
    # of a reserved slot
    offer = replace(draw(drawn(Offer)), unit=number, resource=RESOURCE, start_probability=None, if_late="")
    issued_at = draw(st.integers(0, 10**15))
    return Agreement(
        agreement_id=draw(identifiers),
        request_id=offer.request_id,
        units_total=draw(st.integers(number, 9)),
        user=USER,
        resource=RESOURCE,
        bank=draw(identifiers),
        request=draw(request_units(number)),
        offer=offer,
        reservation_id=draw(identifiers),
        cost=offer.cost,
        issued_at=issued_at,
        order_id=draw(identifiers),
        valid_until=issued_at + draw(st.integers(1, ORDER_VALIDITY_MAX)),
        best_offer=draw(st.booleans()),
    )


cancellations = st.builds(
    ContractChange,
    agreement_id=identifiers,
    number=st.just(TERMINAL),
    offer_id=identifiers,
    user=st.just(USER),
    resource=st.just(RESOURCE),
    bank=identifiers,
    issued_at=instants,
    reason=texts,
)


digests = st.from_regex(r"[A-Za-z0-9_-]{43}", fullmatch=True)
# What a change moves: a charge, or a refund, which is below zero.
sums = st.integers(1, 10**12)
moved = sums | sums.map(lambda amount: -amount)


@st.composite
def amendments(draw: st.DrawFn) -> ContractChange:
    """One that gives up or adds, whose instants follow each other, the last of them one that a document holds."""
    issued_at = draw(st.integers(0, from_iso("8999-01-01T00:00:00Z")))
    pauses = [draw(st.integers(1, 10**12)) for _ in range(2)]
    valid_until = issued_at + sum(pauses)
    amount = draw(moved)
    return ContractChange(
        agreement_id=draw(identifiers),
        number=draw(st.integers(1, AMENDMENT_NUMBER_MAX)),
        previous=draw(digests),
        offer_id=draw(identifiers),
        user=USER,
        resource=RESOURCE,
        bank=draw(identifiers),
        cores=draw(st.integers(1, 10**9)),
        until=valid_until + draw(st.integers(0, 10**12)),
        effective_at=issued_at + pauses[0],
        issued_at=issued_at,
        valid_until=valid_until,
        amount=amount,
        cpu_hour_cost=draw(prices) if amount > 0 else 0,
        order_id=draw(identifiers) if amount > 0 else "",
    )


# Everything else is drawn as the schemas declare it, so that whatever they let pass is tried.
in_base64 = st.binary(max_size=60).map(lambda data: base64.b64encode(data).decode("ascii"))
DRAWN: dict[str, st.SearchStrategy[Any]] = {
    "Base64": in_base64,
    "Duration": durations,
    "FilePath": st.lists(st.text("aZ9 ü.-_'&<", min_size=1, max_size=9), min_size=1, max_size=4).map("/".join),
    "Identifier": identifiers,
    "Instant": instants,
    "NumberedId": identifiers,
    "Pem": in_base64.map(lambda data: f"-----BEGIN X509 CRL-----\n{data}=\n-----END X509 CRL-----\n"),
    "Reference": st.just("") | identifiers,
    "Sentence": texts,
    "Share": st.floats(0, 10, allow_nan=False),
    "Words": words,
    "xs:boolean": st.booleans(),
    "xs:int": st.integers(-(2**31), 2**31 - 1),
    "xs:string": raw_texts,
}
WORDS = {"names": identifiers, "arguments": raw_texts}
XS = "{http://www.w3.org/2001/XMLSchema}"
SCHEMAS = [etree.parse(path).getroot() for path in schemas_dir().glob("*.xsd")]


def declared(sort: str) -> dict[str, Any]:
    """What the schemas of the market's namespace declare of a sort, by name."""
    ours = [root for root in SCHEMAS if root.get("targetNamespace") == MARKET]
    return {str(each.get("name")): each for root in ours for each in root.iterchildren(XS + sort)}


TYPES, ELEMENTS, GROUPS = map(declared, ("simpleType", "element", "attributeGroup"))


def of_type(name: str | None, inline: Any = None) -> st.SearchStrategy[Any]:
    if name in DRAWN:
        return DRAWN[name]
    restriction = (TYPES[str(name)] if inline is None else inline).find(f"{XS}restriction")
    facets = [(str(each.tag).removeprefix(XS), each.get("value")) for each in restriction]
    if values := [value for facet, value in facets if facet == "enumeration"]:
        return st.sampled_from(values)
    if patterns := [value for facet, value in facets if facet == "pattern"]:
        return st.from_regex(patterns[0], fullmatch=True)
    bounds = {facet: int(value) for facet, value in facets}
    if "minLength" in bounds:
        return DRAWN[restriction.get("base")].filter(lambda text: len(text) >= bounds["minLength"])
    return st.integers(bounds.get("minInclusive", -(2**62)), bounds.get("maxInclusive", 2**62))


def attributes_of(element: Any) -> dict[str, Any]:
    groups = [GROUPS[each.get("ref")] for each in element.iter(f"{XS}attributeGroup")]
    return {each.get("name"): each for part in (element, *groups) for each in part.iter(f"{XS}attribute")}


def sensible_offer(offer: Offer) -> Offer:
    """One whose slot ends after it starts, within the calendar, and whose cost has 64 bits."""
    start = offer.start // 2
    size = {"cores": 1 + offer.cores % 10**9, "cpu_hour_cost": offer.cpu_hour_cost % 10**5}
    return replace(offer, start=start, end=start + 1 + offer.end % 10**12, **size)


def sensible_proposal(proposal: contents.Proposal) -> contents.Proposal:
    offers = tuple(replace(offer, request_id=proposal.request_id) for offer in proposal.offers)
    return replace(proposal, offers=offers)


def sensible_posting(posted: contents.ChangePosted) -> contents.ChangePosted:
    return replace(posted, amount=-abs(posted.amount) if posted.is_terminal else posted.amount or 1)


SENSIBLE: dict[type, Any] = {
    Offer: sensible_offer,
    contents.Proposal: sensible_proposal,
    contents.ChangePosted: sensible_posting,
    contents.JobOrder: lambda order: (
        order if order.application else replace(order, arguments=order.arguments or ("x",))
    ),
}


@cache
def drawn(kind: type) -> st.SearchStrategy[Any]:
    """Any value of a dataclass that its schema lets pass, and that makes sense."""
    if kind is RequestForQuotation:
        return requests()
    record = record_of(kind)
    element = ELEMENTS[record.element]
    attributes, fields = attributes_of(element), {}
    for name, attribute, _, read, default in record._attributes:
        each = attributes.pop(attribute)
        found = of_type(each.get("type"), each.find(f"{XS}simpleType")).map(
            lambda value, read=read: read(value) if isinstance(value, str) else value
        )
        assert (each.get("use") == "required") == (default is dataclasses.MISSING), (kind, name)
        fields[name] = found if default is dataclasses.MISSING else st.just(default) | found
    assert not attributes, (kind, attributes)
    if record._text:
        fields[record._text] = of_type(element.find(f".//{XS}extension").get("base"))
    hints = get_type_hints(kind)
    for name, nested in record._nested.items():
        if not nested.is_many:
            fields[name] = drawn(hints[name])
            continue
        (child,) = element.iterfind(f".//{XS}element[@ref='{nested.tag.rpartition('}')[2]}']")
        least, most = int(child.get("minOccurs", "1")), min(int(child.get("maxOccurs", "1")), 3)
        inner = WORDS[name] if name in WORDS else drawn(get_args(hints[name])[0])
        fields[name] = st.lists(inner, min_size=least, max_size=most).map(tuple)
    return st.builds(kind, **fields).map(SENSIBLE.get(kind, lambda value: value))


PLAIN = [
    (performative, kind)
    for performative, kinds in CONTENT_OF.items()
    for kind in kinds
    if kind not in (Signed, contents.Commitment, contents.Settled, contents.ChangeDone, contents.Unverified)
]


NAMES = {role: f"{role}1@localhost" for role in Role}
# Slots cannot hold what any reader takes for the end of a line: they are lines of what is sealed.
slots = texts
some_slots = words


@pytest.fixture(scope="module")
def notaries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, XmlNotary]:
    parties = {USER: Role.USER, RESOURCE: Role.RESOURCE, **{name: role for role, name in NAMES.items()}}
    store = market_of(tmp_path_factory.mktemp("property"), parties)
    return {name: store.notary(name) for name in parties}


def passed_on(message: Message, notaries: dict[str, XmlNotary]) -> tuple[EncodedMessage, Message]:
    encoded = codec.encode(message)
    arrived = replace(encoded, peer=message.sender)
    return encoded, codec.decode(arrived, message.receiver, notaries[NAMES[Role.USER]], NOW)


@pytest.mark.parametrize(("performative", "kind"), PLAIN, ids=lambda value: getattr(value, "__name__", str(value)))
@settings(max_examples=examples(25))
@given(data=st.data())
def test_every_content_round_trips(
    notaries: dict[str, XmlNotary], performative: Performative, kind: type, data: st.DataObject
) -> None:
    """Sealed by who may say it and by nobody else, or plain where nobody has to seal it."""
    roles = ROLES_OF.get(kind, frozenset())
    sender = NAMES[data.draw(st.sampled_from(sorted(roles)))] if roles else data.draw(identifiers, label="sender")
    message = Message(
        performative=performative,
        sender=sender,
        receiver=data.draw(some_slots, label="receiver"),
        conversation_id=data.draw(some_slots, label="conversation"),
        content=data.draw(drawn(kind), label="content"),
        reply_with=data.draw(slots),
        in_reply_to=data.draw(slots),
        reply_by=data.draw(st.none() | st.integers(0, 10**12)),
    )
    if roles:
        for role in set(Role) - roles:
            with pytest.raises(SealInvalid, match=f"for a {kind.__name__}: got {role}, expected "):
                notaries[NAMES[role]].seal(replace(message, sender=NAMES[role]), NOW)
        message = notaries[sender].seal(message, NOW)
    encoded, decoded = passed_on(message, notaries)
    assert encoded.body
    assert encoded.thread == message.conversation_id
    assert encoded.metadata["performative"] == performative.value
    assert all(isinstance(value, str) for value in encoded.metadata.values())
    assert decoded == message
    if message.seal is not None:
        assert notaries[USER].open(message.seal.text, NOW) == message


@settings(max_examples=examples(60))
@given(body=agreements() | cancellations | amendments())
def test_signed_documents_round_trip(notaries: dict[str, XmlNotary], body: Signable) -> None:
    once = notaries[USER].sign(Signed(body), NOW)
    for signed in (once, notaries[RESOURCE].sign(once, NOW)):
        message = Message(Performative.REQUEST, USER, RESOURCE, "c-1", signed)
        assert passed_on(message, notaries)[1] == message


@settings(max_examples=examples(30))
@given(body=agreements(), payment=drawn(contents.PaymentMade), vote=drawn(contents.FundsReserved))
def test_proofs_round_trip(
    notaries: dict[str, XmlNotary], body: Agreement, payment: contents.PaymentMade, vote: contents.FundsReserved
) -> None:
    user, resource, bank = notaries[USER], notaries[RESOURCE], notaries[NAMES[Role.BANK]]

    def seal(notary: XmlNotary, performative: Performative, receiver: str, content: contents.Content) -> Message:
        return notary.seal(Message(performative, notary.name, receiver, "c-1", content), NOW)

    once = user.sign(Signed(body), NOW)
    vote_seal = seal(bank, Performative.AGREE, USER, vote).seal
    assert vote_seal is not None
    commitment = seal(user, Performative.CONFIRM, RESOURCE, contents.Commitment(once, vote, vote_seal))
    assert passed_on(commitment, notaries)[1] == commitment
    payment = replace(payment, agreement_id=body.agreement_id)
    payment_seal = seal(bank, Performative.AGREE, RESOURCE, payment).seal
    assert payment_seal is not None
    twice = resource.sign(once, NOW)
    settled = contents.Settled(body.agreement_id, body.offer.offer_id, twice, payment, payment_seal)
    told = seal(resource, Performative.INFORM, USER, settled)
    assert passed_on(told, notaries)[1] == told


@settings(max_examples=examples(30))
@given(body=amendments())
def test_the_proof_of_an_amendment_round_trips(notaries: dict[str, XmlNotary], body: ContractChange) -> None:
    user, resource, bank = notaries[USER], notaries[RESOURCE], notaries[NAMES[Role.BANK]]
    posted = contents.ChangePosted(body.agreement_id, body.number, "rebate", body.amount)
    told = bank.seal(Message(Performative.AGREE, bank.name, RESOURCE, "c-1", posted), NOW)
    assert told.seal is not None
    twice = resource.sign(user.sign(Signed(body), NOW), NOW)
    amended = contents.ChangeDone(twice, posted, told.seal)
    proof = resource.seal(Message(Performative.INFORM, RESOURCE, USER, "c-1", amended), NOW)
    assert passed_on(proof, notaries)[1] == proof


@settings(max_examples=examples(100))
@given(rfq=requests())
def test_request_documents_round_trip(rfq: RequestForQuotation) -> None:
    """A document written for people reads back, but for a price of nothing, which only an auction may reach."""
    text = request_for_quotation.write_request(rfq)
    if any(unit.cpu_hour_cost == 0 for unit in rfq.units):
        with pytest.raises(DocumentError, match="CPUHourCost"):
            request_for_quotation.parse_request(text)
    else:
        assert request_for_quotation.parse_request(text) == rfq


@settings(max_examples=examples(300))
@given(body=st.text(max_size=200) | st.text("<>/?![]&;\"'= ab", max_size=60))
def test_any_text_is_refused_with_a_document_error(body: str) -> None:
    with pytest.raises(DocumentError):
        documents.read_content(body, PublicNotary(Trust(())), NOW)
