"""The stanza text against XML's own rules, SPADE's own reader and writer, and hostile bodies."""

import base64
import xml.etree.ElementTree as ElementTree
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramp.errors import DocumentError, TransportError
from ramp.model.acl import EncodedMessage
from ramp.xmpp import wire

# XML 1.0, production [2]: the ranges of Char
XML_TEXT = st.text(
    st.one_of(
        st.sampled_from("\t\n\r<>&\"'"),
        st.characters(min_codepoint=0x20, max_codepoint=0xD7FF),
        st.characters(min_codepoint=0xE000, max_codepoint=0xFFFD),
        st.characters(min_codepoint=0x10000, max_codepoint=0x10FFFF),
    ),
    min_size=1,
    max_size=300,
)
LINE = XML_TEXT.filter(lambda text: "\r" not in text)


def encode(body="<cfp/>", metadata=None, thread="c-1"):
    fields = {"performative": "cfp"} if metadata is None else metadata
    content = wire.content_of(EncodedMessage("ral@localhost", body, fields, thread))
    return wire.addressed(content, to="ral@localhost", sender="alice@localhost", stanza_id="s1")


def decode(stanza):
    return wire.decode_element(ElementTree.fromstring(stanza))


@given(
    body=XML_TEXT,
    metadata=st.dictionaries(st.sampled_from(["performative", "reply-by", "x&y"]), LINE, min_size=1),
    thread=LINE,
)
def test_everything_xml_allows_arrives_unchanged(body, metadata, thread):
    incoming = decode(encode(body, metadata, thread))
    assert (incoming.body, incoming.metadata, incoming.thread) == (body, metadata, thread)
    assert incoming.peer == "alice@localhost"


@pytest.mark.parametrize(
    "body",
    [
        *("a\r\nb", "<x>" + "ab" * 5000 + "</x>", "]]>", "<?xml version='1.0'?><a/>", "\U0001f600"),
        "".join(chr(0x4E00 + (i * 7919) % 20000) for i in range(3000)),
    ],
    ids=["line ends", "long", "end of CDATA", "declaration", "beyond 16 bits", "noise"],
)
def test_awkward_bodies_arrive_unchanged(body):
    assert decode(encode(body)).body == body


def test_long_bodies_shrink_and_short_ones_stay_readable():
    long_body = "<offer>the same again</offer>" * 1000
    assert len(encode(long_body)) < len(long_body) / 10
    assert "&lt;cfp/&gt;" in encode("<cfp/>")


@pytest.mark.parametrize("character", ["\x00", "\x01", "\x0b", "\x1f", "\ud800", "\ufffe", "\uffff"])
def test_characters_that_end_a_stream_are_refused_with_their_number(character):
    with pytest.raises(DocumentError, match=f"U\\+{ord(character):04X} at position 2"):
        encode(f"ab{character}c")
    with pytest.raises(DocumentError, match="reply-by"):
        encode(metadata={"reply-by": character})
    with pytest.raises(DocumentError, match="thread"):
        encode(thread=character)


def test_what_servers_swallow_is_refused():
    with pytest.raises(TransportError, match="body is empty"):
        encode("")
    with pytest.raises(TransportError, match="no metadata"):
        encode(metadata={})
    with pytest.raises(TransportError, match="reply-by is empty"):
        encode(metadata={"performative": "cfp", "reply-by": ""})
    with pytest.raises(DocumentError, match="carriage return"):
        encode(metadata={"performative": "c\rfp"})
    with pytest.raises(TransportError, match="reserved"):
        encode(metadata={"_thread_node": "x"})
    with pytest.raises(TransportError, match="reserved"):
        encode(metadata={wire.ENCODING_KEY: "zlib+base64"})


def test_limit_counts_the_escaped_bytes(monkeypatch):
    frame = len(encode("x").encode()) - 1
    body = "<" * 100  # four bytes each once escaped
    monkeypatch.setattr(wire, "STANZA_MAX_BYTES", frame + 400)
    encode(body)
    monkeypatch.setattr(wire, "STANZA_MAX_BYTES", frame + 399)
    with pytest.raises(DocumentError, match=f"{frame + 400} bytes.*maximum {frame + 399}"):
        encode(body)


def test_90_kb_pass_and_not_more(monkeypatch):
    monkeypatch.setattr(wire, "COMPRESS_FROM_BYTES", 10**9)
    noise = base64.b64encode(bytes((i * i * 7919 >> 5) & 255 for i in range(60_000))).decode()
    encode(noise)
    with pytest.raises(DocumentError):
        encode(noise + noise[:12_000])


def test_body_that_no_receiver_would_unfold_is_not_sent():
    with pytest.raises(DocumentError, match="body too large"):
        encode("a" * (wire.INFLATED_MAX_BYTES + 1))
    assert len(decode(encode("a" * wire.INFLATED_MAX_BYTES)).body) == wire.INFLATED_MAX_BYTES


def test_thread_survives_without_other_metadata_from_plain_spade():
    stanza = (
        '<message xmlns="jabber:client" from="a@h/r" type="chat"><body>b</body><x xmlns="jabber:x:data" type="form">'
        '<title>spade:x:metadata</title><field var="_thread_node"><value>t</value></field></x></message>'
    )
    assert decode(stanza) == EncodedMessage("a@h", "b", {}, "t")


def packed(raw: bytes) -> str:
    return base64.b64encode(zlib.compress(raw)).decode()


def test_bomb_is_refused_without_unfolding_it():
    most = wire.INFLATED_MAX_BYTES
    with pytest.raises(DocumentError, match=f"larger than {most} bytes"):
        wire.decode_body(packed(b"0" * 50_000_000), wire.ENCODING_ZLIB, source="m")
    assert len(wire.decode_body(packed(b"0" * most), wire.ENCODING_ZLIB, source="m")) == most


@pytest.mark.parametrize(
    ("text", "encoding", "reason"),
    [
        ("###", wire.ENCODING_ZLIB, "is not zlib"),
        (base64.b64encode(b"not zlib").decode(), wire.ENCODING_ZLIB, "is not zlib"),
        (base64.b64encode(zlib.compress(b"abcdef" * 100)[:-5]).decode(), wire.ENCODING_ZLIB, "incomplete"),
        (packed(b"\xff\xfe"), wire.ENCODING_ZLIB, "not UTF-8"),
        ("abc", "gzip", "unknown"),
    ],
)
def test_bodies_that_are_not_what_they_claim(text, encoding, reason):
    with pytest.raises(DocumentError, match=reason):
        wire.decode_body(text, encoding, source="message from x")


def test_bounce_names_condition_and_conversation():
    stanza = ElementTree.fromstring(encode("<cfp/>" * 2000))  # compressed, and cut by the server
    stanza.set("type", "error")
    stanza.set("from", "ghost@localhost/x")
    stanza.find("{jabber:client}body").text = "cut"
    error = ElementTree.SubElement(stanza, "{jabber:client}error", {"type": "cancel"})
    ElementTree.SubElement(error, "{urn:ietf:params:xml:ns:xmpp-stanzas}service-unavailable")
    ElementTree.SubElement(error, "{urn:ietf:params:xml:ns:xmpp-stanzas}text").text = "no such user"
    assert wire.condition_of(stanza) == "service-unavailable"
    assert wire.decode_element(stanza) == EncodedMessage("ghost@localhost", "cut", {"performative": "cfp"}, "c-1")


def test_plain_spade_reads_our_stanza_and_we_read_its():
    from slixmpp import ClientXMPP
    from slixmpp.stanza import Message as MessageStanza
    from spade.message import Message

    from ramp.xmpp import behaviour  # noqa: F401 SPADE is imported by it

    client = ClientXMPP("bob@localhost", "secret")
    theirs = Message.from_node(MessageStanza(client, ElementTree.fromstring(encode("<a b='c'/>"))))
    assert (theirs.body, theirs.thread, theirs.get_metadata("performative")) == ("<a b='c'/>", "c-1", "cfp")
    assert theirs.sender.bare == "alice@localhost"

    message = Message(
        to="x@localhost", sender="bob@localhost", body="<&>", thread="t", metadata={"performative": "inform"}
    )
    ours = decode(str(message.prepare(client)).replace("<message ", '<message xmlns="jabber:client" ', 1))
    assert (ours.peer, ours.body, ours.thread, ours.metadata) == (
        "bob@localhost",
        "<&>",
        "t",
        {"performative": "inform"},
    )


def test_the_limit_counts_the_addresses(monkeypatch):
    content = wire.content_of(EncodedMessage("a@localhost", "<a/>", {"performative": "cfp"}, ""))
    size = len(wire.addressed(content, to="a@localhost", sender="me@localhost", stanza_id="1"))
    monkeypatch.setattr(wire, "STANZA_MAX_BYTES", size)
    wire.addressed(content, to="a@localhost", sender="me@localhost", stanza_id="1")
    with pytest.raises(DocumentError, match=f"got {size + 1} bytes"):
        wire.addressed(content, to="aa@localhost", sender="me@localhost", stanza_id="1")
