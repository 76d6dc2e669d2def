"""Programs of two neighbouring minor versions of the wire format trade with each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ramp.errors import DocumentError, SchemaViolation
from ramp.model.acl import WIRE_MINOR, WIRE_VERSION, Message, Performative
from ramp.model.contents import CallForProposals, Proposal, Registered, Registration
from ramp.model.instant import HOUR, MINUTE, Instant
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.seal import Role
from ramp.rfql import codec
from ramp.runtime.keys.store import KeyStore

NOW: Instant = 1_790_000_000_000_000
NEXT = f"{WIRE_VERSION}.{WIRE_MINOR + 1}"
RESOURCE, DIRECTORY, USER = "curie1@localhost", "directory@localhost", "alice@localhost"
REFUSED = Proposal("request-1", 1, (), (Refusal(1, RefusalCode.CORES_TAKEN, "", "all taken"),))


@pytest.fixture
def keys(tmp_path) -> KeyStore:
    store = KeyStore(tmp_path / "keys")
    store.create_ca(NOW)
    for name, role in ((RESOURCE, Role.RESOURCE), (DIRECTORY, Role.DIRECTORY), (USER, Role.USER)):
        store.issue(name, role, NOW)
    return store


def heard(keys: KeyStore, message: Message, *, version: str = NEXT, changed: tuple[str, str] = ("", "")) -> Message:
    """A message as its receiver reads it, after a text of the document was changed as the next version would say it."""
    encoded = codec.encode(message)
    assert changed[0] in encoded.body
    metadata = {**encoded.metadata, "version": version}
    body = encoded.body.replace(*changed, 1)
    notary = keys.notary(message.receiver)
    return codec.decode(message.sender, message.receiver, metadata, encoded.thread, body, notary, NOW)


def proposal(content: Proposal = REFUSED) -> Message:
    return Message(Performative.REFUSE, RESOURCE, USER, "request-1", content)


def test_what_a_later_minor_version_adds_is_passed_over(keys: KeyStore) -> None:
    for added in ('round="1" mood="good"', 'round="1"'):
        name = 'roundNumber="1"'
        found = heard(keys, proposal(), changed=(name, name + added.removeprefix('round="1"')))
        assert found.content == REFUSED
        assert found.wire_minor == WIRE_MINOR + 1
    found = heard(keys, proposal(), changed=("</Proposal>", '<Weather of="today"><Rain/></Weather></Proposal>'))
    assert found.content == REFUSED


def test_a_refusal_that_only_a_later_version_knows_is_another_reason(keys: KeyStore) -> None:
    found = heard(keys, proposal(), changed=('code="cores_taken"', 'code="moon_in_the_way"'))
    assert found.content == replace(REFUSED, refusals=(Refusal(1, RefusalCode.OTHER, "", "all taken"),))


def test_what_is_wrong_besides_is_refused_all_the_same(keys: KeyStore) -> None:
    with pytest.raises(SchemaViolation, match="roundNumber"):
        heard(keys, proposal(), changed=('roundNumber="1"', 'roundNumber="first"'))


@pytest.mark.parametrize("version", ["1", f"{WIRE_VERSION}.{WIRE_MINOR}"])
def test_of_a_version_that_is_known_nothing_is_passed_over(keys: KeyStore, version: str) -> None:
    with pytest.raises(SchemaViolation, match="mood"):
        heard(keys, proposal(), version=version, changed=('roundNumber="1"', 'roundNumber="1" mood="good"'))


def test_the_terms_of_a_request_are_never_passed_over(keys: KeyStore) -> None:
    """Who sells must be able to meet each of them (paper section 5.2)."""
    start = NOW + HOUR
    unit = RequestUnit(1, 70, start + HOUR, TotalCores(16), start, HOUR)
    call = CallForProposals("request-1", 1, RequestForQuotation((unit,)), ())
    message = Message(Performative.CFP, USER, RESOURCE, "request-1", call)
    body = codec.encode(message).body
    end = body[body.index("<TotalCores") :].partition(">")[0] + ">"
    with pytest.raises(DocumentError):
        heard(keys, message, changed=(end, end.replace("TotalCores", 'TotalCores cooled="yes"')))


def test_a_sealed_word_of_a_later_minor_version_is_read(keys: KeyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The seal is over the text as it came, with what is passed over."""
    from ramp.rfql import documents

    written = documents.write_content
    monkeypatch.setattr(documents, "write_content", lambda content: written(content).replace("/>", ' floor="2"/>'))
    said = Registration("resource-trader", MINUTE, 7)
    message = Message(Performative.SUBSCRIBE, RESOURCE, DIRECTORY, RESOURCE, said)
    sealed = keys.notary(RESOURCE).seal(message, NOW)
    assert 'floor="2"' in codec.encode(sealed).body
    found = heard(keys, sealed)
    assert found.content == said
    assert found.seal is not None
    with pytest.raises(SchemaViolation, match="floor"):
        heard(keys, sealed, version=str(WIRE_VERSION))
    # kept or passed on it is a proof, and read to the letter
    with pytest.raises(SchemaViolation, match=f"^subscribe of {RESOURCE}: .*floor"):
        keys.notary(DIRECTORY).open(found.seal.text, NOW)


def test_a_message_of_the_version_before_is_read_and_known_as_such(keys: KeyStore) -> None:
    answer = keys.notary(DIRECTORY).seal(
        Message(Performative.INFORM, DIRECTORY, RESOURCE, RESOURCE, Registered("resource-trader", 7)), NOW
    )
    assert heard(keys, answer, version="1").wire_minor == 0
