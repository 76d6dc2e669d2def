"""Several messages in one stanza: what is packed comes out again, and what is no bundle is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramp.errors import DocumentError
from ramp.model.acl import EncodedMessage
from ramp.xmpp.bundles import BUNDLE_KEY, BUNDLE_VERSION, PARTS_MAX, UNPACKED_MAX, pack, unpack

MACHINE = "curie@localhost"
CALL = EncodedMessage(MACHINE, "<cfp/>", {"performative": "cfp", "reply-with": "1"}, "c")
texts = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff"), min_size=1, max_size=20
)
parts = st.builds(
    EncodedMessage,
    st.sampled_from(["a@localhost", "b@localhost", "c.d-e@site.example"]),
    st.sampled_from(["<cfp/>", "<other a='1'>&amp;</other>"]) | texts,
    st.dictionaries(texts, texts, max_size=4).map(lambda found: {"performative": "cfp", **found}),
    st.just("") | texts,
)


@given(st.lists(parts, min_size=1, max_size=8))
def test_what_is_packed_comes_out_again_in_its_order(some: list[EncodedMessage]) -> None:
    bundle = pack(MACHINE, some)
    assert unpack(bundle) == tuple(some)
    assert (bundle.peer, bundle.metadata["performative"]) == (MACHINE, "cfp")


def test_what_all_are_told_alike_is_written_once() -> None:
    some = [
        EncodedMessage(f"m{number}@localhost", "<cfp>" + "x" * 1000, dict(CALL.metadata), "c") for number in range(20)
    ]
    body = pack(MACHINE, some).body
    assert body.count("xxx<") == 0
    assert len(body) < 2_000


def changed(**fields: Any) -> str:
    return json.dumps(
        {"bodies": ["<a/>"], "slots": [{"performative": "cfp"}], "parts": [[MACHINE, "", 0, 0]], **fields}
    )


def bundle(body: str, version: str = BUNDLE_VERSION) -> EncodedMessage:
    return EncodedMessage(MACHINE, body, {BUNDLE_KEY: version}, "")


def test_the_form_that_is_changed_below_is_right() -> None:
    assert unpack(bundle(changed())) == (EncodedMessage(MACHINE, "<a/>", {"performative": "cfp"}, ""),)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "expected a JSON object"),
        (json.dumps({"bodies": []}), "expected a JSON object"),
        (changed(more=1), "expected a JSON object"),
        (changed(bodies={}), "must be lists"),
        (changed(parts=[]), "got 0"),
        (changed(parts=[[MACHINE, "", 0, 0]] * (PARTS_MAX + 1)), f"got {PARTS_MAX + 1}"),
        (changed(parts=["x"]), "invalid part of a bundle"),
        (changed(parts=[[MACHINE, "", 0]]), "invalid part of a bundle"),
        (changed(parts=[[MACHINE, "", True, 0]]), "invalid part of a bundle"),
        (changed(parts=[[MACHINE, None, 0, 0]]), "invalid part of a bundle"),
        (changed(parts=[["CURIE@localhost", "", 0, 0]]), "invalid address"),
        (changed(parts=[["localhost", "", 0, 0]]), "invalid address"),
        (changed(parts=[[MACHINE + "/x", "", 0, 0]]), "invalid address"),
        (changed(parts=[[MACHINE, "", 1, 0]]), "slots 1 or body 0 do not exist"),
        (changed(parts=[[MACHINE, "", 0, -1]]), "body -1"),
        (changed(bodies=[""]), "invalid body"),
        (changed(bodies=[7]), "invalid body"),
        (changed(slots=[[]]), "invalid slots"),
        (changed(slots=[{"performative": ""}]), "invalid slots"),
        (changed(slots=[{"performative": 1}]), "invalid slots"),
        (changed(bodies=["\x00"]), "U+0000"),
        (changed(slots=[{"a": "\ud800"}]), "U+D800"),
        (changed(bodies=["x" * (UNPACKED_MAX // 2)], parts=[[MACHINE, "", 0, 0]] * 3), "too long"),
    ],
)
def test_what_is_no_bundle_is_refused(body: str, words: str) -> None:
    with pytest.raises(DocumentError) as raised:
        unpack(bundle(body))
    assert words in str(raised.value)


def test_another_version_is_refused() -> None:
    with pytest.raises(DocumentError, match="wrong version of the bundle: got '2', expected 1"):
        unpack(bundle(pack(MACHINE, [CALL]).body, "2"))
