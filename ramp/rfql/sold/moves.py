"""Moves of what was sold (schemas/move.xsd)."""

from __future__ import annotations

from typing import Final

from ramp.model import contents
from ramp.rfql.xml.record import INSTANT, SENTENCE, TEXT, Record

SLOT_MOVED: Final = Record(
    contents.SlotMoved, {"agreement_id": TEXT, "reservation_id": TEXT, "placement": SENTENCE, "moved_at": INSTANT}
)
SLOT_MOVE_HEARD: Final = Record(contents.SlotMoveHeard, {"agreement_id": TEXT, "moved_at": INSTANT})
