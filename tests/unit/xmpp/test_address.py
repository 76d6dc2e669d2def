"""Names are canonical or refused."""

import stringprep
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slixmpp import JID

from ramp.xmpp import address
from ramp.xmpp.address import account_problem, is_canonical, sender_of

NOT_CANONICAL = {
    "capitals": "BANK",
    "a capital": "Bank",
    "full width": "\uff42\uff41\uff4e\uff4b",
    "one full-width letter": "\uff42ank",
    "soft hyphen": "bank\u00ad",
    "soft hyphen inside": "ba\u00adnk",
    "zero width joiner": "ba\u200dnk",
    "at and slash": "bank@localhost/evil",
    "at": "bank@localhost",
    "slash": "bank/evil",
    "leading space": " bank",
    "trailing space": "bank ",
    "no-break space": "bank\u00a0",
    "line feed": "bank\n",
    "nul": "bank\0",
    "decomposed": "caf\u0065\u0301",
    "long s": "\u017fmall",
    "Kelvin sign": "ban\u212a",
    "sharp s": "stra\u00dfe",
    "ligature": "\ufb01nder",
    "right-to-left override": "ban\u202ek",
    "left-to-right mark": "bank\u200e",
    "both directions": "bank\u05d0",
    "lone surrogate": "bank\ud800",
    "private use": "bank\ue000",
    "quote": "ban'k",
    "empty": "",
    "too long": "b" * 1024,
    "too long in bytes": "\u00e9" * 512,
}
CANONICAL = ["bank", "small1", "a.b-c_d", "caf\u00e9", "\u05d1\u05e0\u05e7", "\u94f6\u884c", "b" * 1023]


@pytest.mark.parametrize("name", NOT_CANONICAL.values(), ids=NOT_CANONICAL)
def test_what_has_another_spelling_or_none_is_no_name(name):
    assert account_problem(name, "localhost")
    assert sender_of(f"{name}@localhost/r") != f"{name}@localhost" or "/" in name


@pytest.mark.parametrize("name", CANONICAL)
def test_what_has_one_spelling_is_a_name(name):
    assert account_problem(name, "localhost") == ""
    assert sender_of(f"{name}@localhost") == f"{name}@localhost"
    assert sender_of(f"{name}@localhost/R 1") == f"{name}@localhost"


@pytest.mark.parametrize(
    "source",
    [
        None,
        "",
        "localhost",
        "@localhost",
        "bank@",
        "bank@localhost/",
        "bank@LOCALHOST",
        "bank@localhost.",
        "bank@xn--bcher-kva.example",
        "bank@ab--c.example",
        "bank@" + "d" * 64,
        "bank@@localhost",
        "bank@localhost@localhost",
        "bank@localhost/evil@localhost/0815",
        "bank@localhost/a/b",
        "bank@localhost/\u00ad",
        "bank@localhost/\uff41",
        " bank@localhost",
        "bank@localhost\n",
        "bank@local host",
        "bank@localhost/" + "r" * 1024,
    ],
)
def test_no_account_is_named_by(source):
    assert sender_of(source) is None


def test_server_is_a_canonical_address_but_no_account():
    assert is_canonical("localhost")
    assert is_canonical("market.example.org")
    assert sender_of("market.example.org") is None


def nodeprep(name):
    """RFC 6122, appendix A, over Python's own tables of RFC 3454; None where a name may not be."""
    mapped = "".join(stringprep.map_table_b2(c) for c in name if not stringprep.in_table_b1(c))
    prepared = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    tables = [
        getattr(stringprep, f"in_table_{table}") for table in ("c11_c12", "c21_c22", *(f"c{n}" for n in range(3, 10)))
    ]
    if any(table(c) for c in prepared for table in (*tables, stringprep.in_table_a1)):
        return None
    if not prepared or any(c in "\"&'/:<>@" for c in prepared):
        return None
    right_to_left = [stringprep.in_table_d1(c) for c in prepared]
    if any(right_to_left) and (
        any(stringprep.in_table_d2(c) for c in prepared) or not (right_to_left[0] and right_to_left[-1])
    ):
        return None
    return prepared


letters = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
near_bank = st.text(st.sampled_from("bankBANK\uff42\u00ad\u0301\u200d\u202e\u05d0@/ .-"), min_size=1, max_size=8)


@given(letters | near_bank)
def test_a_name_is_taken_only_if_it_is_its_own_prepared_form(name):
    if account_problem(name, "localhost") == "":
        assert nodeprep(name) == name


@given(letters | near_bank)
def test_no_two_names_taken_are_prepared_to_one(name):
    prepared = nodeprep(name)
    if prepared is not None and prepared != name:
        assert account_problem(name, "localhost")


@given(st.from_regex(address._PLAIN, fullmatch=True))
def test_every_plain_name_is_taken_and_slixmpp_agrees(plain):
    assert account_problem(*plain.split("@")) == ""
    assert str(JID(plain)) == plain


@given(st.text(max_size=30) | near_bank.map(lambda name: f"{name}@localhost/r"))
def test_whatever_is_read_as_a_sender_is_byte_for_byte_what_came(source):
    bare = sender_of(source)
    if bare is not None:
        assert source == bare or source.startswith(bare + "/")
        assert bare.count("@") == 1
        assert sender_of(bare) == bare
