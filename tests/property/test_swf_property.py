"""Any log survives writing and reading, and bytes at random are read or refused, never worse."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ramp.errors import WorkloadError
from simulation.workload.swf import FIELD_COUNT, SwfLog, format_swf, parse_swf

VALUES = st.integers(min_value=-(10**17) + 1, max_value=10**17 - 1)
JOBS = st.lists(st.lists(VALUES, min_size=FIELD_COUNT, max_size=FIELD_COUNT), max_size=8)
COMMENTS = st.lists(
    st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=20), max_size=4
)


@given(jobs=JOBS, comments=COMMENTS)
def test_a_written_log_reads_back(jobs: list[list[int]], comments: list[str]) -> None:
    columns = np.array(jobs, dtype=np.int64).reshape(-1, FIELD_COUNT).T
    log = SwfLog(columns, tuple(comments))
    again = parse_swf(format_swf(log))
    assert np.array_equal(again.columns, log.columns)
    assert again.comments == log.comments


TOKENS = st.sampled_from(["1", "-1", "0", "12.5", "3.0", "x", "-", "1-2", ";", "+4", "1e3", "."])
LINES = st.lists(st.lists(TOKENS, max_size=20), max_size=5)


@given(lines=LINES)
def test_fast_and_slow_reading_agree(lines: list[list[str]]) -> None:
    text = "\n".join(" ".join(words) for words in lines)
    expected: list[list[int]] | None = []
    for words in lines:
        if not words or words[0].startswith(";"):
            continue
        row = [_value(word, field) for field, word in enumerate(words)]
        if len(words) != FIELD_COUNT or None in row:
            expected = None
            break
        expected.append([value for value in row if value is not None])
    try:
        found: list[list[int]] | None = parse_swf(text.encode()).columns.T.tolist()
    except WorkloadError:
        found = None
    assert found == expected


def _value(word: str, field: int) -> int | None:
    known = {"1": 1, "-1": -1, "0": 0, "3.0": 3, "+4": 4}
    if word == "12.5":
        return 12 if field == 5 else None
    return known.get(word)
