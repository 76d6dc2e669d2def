"""Promises of a resource, read from its journal without changes, whether its agent runs or not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ramp.batch.inspecting import Promise
from ramp.model.agreement import Agreement, ContractChange
from ramp.model.instant import Instant
from ramp.protocol import records as rc
from ramp.runtime.journal import JOURNAL_VERSION, record_from_json
from ramp.runtime.sqlite_file import reading


def read_records(journal: Path) -> tuple[rc.Record, ...]:
    """Read the records of a journal, without its archive; empty if there is no journal yet."""
    if not journal.exists():
        return ()
    with reading(journal, "journal", JOURNAL_VERSION) as connection:
        query = "SELECT record FROM journal WHERE NOT archived ORDER BY sequence"
        rows = [] if connection is None else connection.execute(query).fetchall()
    return tuple(record_from_json(text) for (text,) in rows)


def promises_of(records: Iterable[rc.Record]) -> tuple[Promise, ...]:
    """Return a resource's promises that are not released."""
    found: dict[str, Promise] = {}
    proposed: dict[str, ContractChange] = {}
    before: dict[str, Instant] = {}
    for record in records:
        match record:
            case rc.HoldIntended(offer=offer, until=until):
                found[offer.offer_id] = Promise(offer.offer_id, "", paid=False, end=offer.end, ends_as_hold=until)
            case rc.AgreementReceived(offer_id=key, agreement=signed) if key in found:
                agreement_id = signed.body.agreement_id if isinstance(signed.body, Agreement) else ""
                found[key] = Promise(key, agreement_id, paid=False, end=found[key].end, ends_as_hold=None)
            case rc.AgreementPaid(offer_id=key) if key in found:
                known = found[key]
                found[key] = Promise(key, known.agreement_id, paid=True, end=known.end, ends_as_hold=None)
            case rc.ChangeReceived(offer_id=key, change=signed) if isinstance(signed.body, ContractChange):
                proposed[key] = signed.body
            case rc.CapacityTaken(offer_id=key, number=number) if key in found and key in proposed:
                if number == proposed[key].number:  # from now on the machine has the slot in its new size
                    before[key] = found[key].end
                    found[key] = replace(found[key], end=proposed[key].until)
            case rc.ChangeDropped(offer_id=key) if key in found and key in before:
                found[key] = replace(found[key], end=before.pop(key))
            case rc.ChangeSettled(offer_id=key):
                before.pop(key, None)
            case rc.SlotReleased(offer_id=key):
                found.pop(key, None)
    return tuple(found.values())
