"""Records as text: readable, and refused where they are not of this version."""

from __future__ import annotations

import json

import pytest

from ramp.errors import ConfigurationError
from ramp.model.instant import HOUR
from ramp.model.offer import Offer, RefusalCode
from ramp.model.request import NodeDiskSpace, RequestUnit, TotalCores
from ramp.model.seal import Role, Seal
from ramp.model.slot import Slot
from ramp.protocol.records import HoldIntended, SlotReleased
from ramp.runtime.record_json import record_from_json, record_to_json

SEAL = Seal("bank", Role.BANK, "res", "r1", 6, "sealed")
RECORD = SlotReleased("o1", "a1", RefusalCode.CANCELLED, "gave it back", 500, SEAL, 7)


def test_the_text_names_the_record_and_its_fields() -> None:
    assert json.loads(record_to_json(RECORD)) == {
        "type": "SlotReleased",
        "offer_id": "o1",
        "agreement_id": "a1",
        "code": "cancelled",
        "detail": "gave it back",
        "refund": 500,
        "seal": {
            "signer": "bank",
            "role": "bank",
            "receiver": "res",
            "conversation_id": "r1",
            "signed_at": 6,
            "text": "sealed",
        },
        "at": 7,
    }
    assert "\n" not in record_to_json(RECORD)


def test_unions_name_their_class() -> None:
    unit = RequestUnit(1, 70, HOUR, TotalCores(16), disk=NodeDiskSpace(3))
    offer = Offer("o", "r", 1, "res", 60, 0, HOUR, 16, 0.25, HOUR)
    record = HoldIntended(offer, unit, Slot(0, HOUR, 16, 0.25), "alice", 5, SEAL, 1, "")
    told = json.loads(record_to_json(record))["unit"]
    assert told["cores"] == {"type": "TotalCores", "count": 16}
    assert told["disk"] == {"type": "NodeDiskSpace", "gigabytes": 3}
    assert record_from_json(record_to_json(record)) == record


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"type":"Unheard"}',
        '{"offer_id":"o1"}',
        record_to_json(RECORD).replace('"refund":500,', ""),
        record_to_json(RECORD).replace('"refund":500', '"refund":500,"added":1'),
        record_to_json(RECORD).replace('"cancelled"', '"no_such_code"'),
        record_to_json(RECORD).replace('"role":"bank"', '"role":"queen"'),
    ],
)
def test_what_is_no_record_is_shown(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"not JSON|cannot be read as a record"):
        record_from_json(text)
