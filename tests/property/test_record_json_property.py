"""Every record of the journal comes back from its text as it was."""

import typing

from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ramp.model.request import RequestForQuotation
from ramp.protocol.records import Record
from ramp.runtime.journal import record_from_json, record_to_json

# XML has no NUL (XML 1.0, section 2.2), so no identifier has one either; SQLite ends a text at it
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
st.register_type_strategy(str, lambda _: TEXT)  # one that is looked at now reads all modules, in each process
# before what has floats in it: a strategy is resolved once
st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))
st.register_type_strategy(
    RequestForQuotation,
    st.builds(
        RequestForQuotation,
        st.lists(st.from_type(typing.get_type_hints(RequestForQuotation)["units"].__args__[0]), max_size=3).map(tuple),
    ),
)
KINDS = typing.get_args(Record)


@settings(max_examples=examples(300))
@given(st.data())
def test_every_kind_comes_back(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    record = data.draw(st.from_type(kind))
    text = record_to_json(record)
    assert record_from_json(text) == record
    assert record_to_json(record_from_json(text)) == text
