"""Node lists as Slurm writes them; the pairs are what `scontrol show hostnames` and `hostlist` of 22.05 print."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramp.batch.node_lists import compress, expand, parts_of, placement_of, token_of
from tests.example_counts import examples

PAIRS = {
    "alpha[1-3]": ("alpha1", "alpha2", "alpha3"),
    "alpha[1-2,14]": ("alpha1", "alpha2", "alpha14"),
    "n[08-11]": ("n08", "n09", "n10", "n11"),
    "login1,n[1-2]": ("login1", "n1", "n2"),
    "node": ("node",),
}


@pytest.mark.parametrize("text", PAIRS)
def test_lists_of_one_bracket_both_ways(text: str) -> None:
    assert expand(text) == PAIRS[text]
    assert compress(PAIRS[text]) == text


def test_several_brackets_and_suffixes() -> None:
    assert expand("r[1-2]n[0-1]") == ("r1n0", "r1n1", "r2n0", "r2n1")
    assert expand("r[1-2]-ib") == ("r1-ib", "r2-ib")
    assert expand("(null)") == expand("") == ()


@pytest.mark.parametrize(
    "text", ["n[1-2", "n]", "n[2-1]", "n[a-b]", "n[1-9999999]", "n[0-999][0-999][0-999]", "a,,b", "a b"]
)
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        expand(text)


@settings(max_examples=examples(200))
@given(
    st.lists(
        st.builds(
            str.__add__,
            st.sampled_from(["n", "a1b", ""]),
            st.sampled_from(["0", "1", "2", "9", "10", "09", "011", "99", "x"]),
        )
    )
)
def test_what_is_compressed_expands_again(names: list[str]) -> None:
    assert expand(compress(names)) == tuple(names)


def test_tokens_and_placements() -> None:
    parts = (("n1", 8), ("n2", 8), ("n4", 3))
    assert token_of(parts) == "8:n[1-2];3:n4"
    assert parts_of("8:n[1-2];3:n4") == parts
    assert placement_of(parts) == "n[1-2,4]"
    for wrong in ("", "n1", "0:n1", "x:n1", "2:n1;3:n1", "²:n1", "2:"):
        with pytest.raises(ValueError, match=r"."):
            parts_of(wrong)
