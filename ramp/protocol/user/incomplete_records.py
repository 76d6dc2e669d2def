"""Requests whose first records are missing from the journal: what can be known of them all the same.

The records of a request are written in their order, so this is a journal that was written to while its medium failed,
or that somebody has changed. A decision is a promise to resources and bank, so it is kept wherever the agreements can
still be found: in `FundsAsked`, or, each on its own, in the proofs of payment.
"""

from __future__ import annotations

from collections.abc import Sequence

from ramp.model.agreement import Agreement
from ramp.model.request import RequestForQuotation
from ramp.protocol.effects import Effect, Report
from ramp.protocol.events import AuctionOptions
from ramp.protocol.progress import RecordsMissing
from ramp.protocol.records import CommitDecided, FundsAsked, RequestRecord, RequestStarted, UnitSettled


def completed(request_id: str, records: Sequence[RequestRecord]) -> tuple[list[Effect], Sequence[RequestRecord]]:
    """Put in place of missing first records what the later ones tell.

    Args:
        request_id: of the request.
        records: all that there is of it, in their order.

    Returns:
        What is to be said of it, and the records with those added that could be drawn up; without a `RequestStarted` if
        nothing says what was to be bought.
    """
    started = any(isinstance(each, RequestStarted) for each in records)
    asked = any(isinstance(each, FundsAsked) for each in records)
    decided = [each for each in records if isinstance(each, CommitDecided)]
    proofs = [each.signed.body for each in records if isinstance(each, UnitSettled)]
    agreements: tuple[Agreement, ...] = tuple(each for each in proofs if isinstance(each, Agreement))
    for record in records:
        if isinstance(record, FundsAsked):
            agreements = record.agreements
    added: list[RequestRecord] = []
    said: list[Effect] = []
    at = records[0].at
    if not started:
        drawn_up = "it is taken up from its agreements" if agreements else "nothing says what was to be bought"
        said.append(Report(RecordsMissing(request_id, f"its RequestStarted is not in the journal; {drawn_up}")))
        if agreements:
            units = {each.request.number: each.request for each in agreements}
            request = RequestForQuotation(tuple(unit for _, unit in sorted(units.items())))
            added.append(RequestStarted(request_id, request, AuctionOptions(), at))
    if not asked and (decided or agreements):
        order_id = decided[-1].order_id if decided else agreements[0].order_id
        of_order = tuple(each for each in agreements if each.order_id == order_id)
        wanted = len(decided[-1].vote.lines) if decided else of_order[0].units_total
        found = f"{len(of_order)} of its {wanted} agreements are found in proofs of payment"
        what = f"the FundsAsked of order {order_id} is not in the journal; {found}; the bank knows what became of it"
        said.append(Report(RecordsMissing(request_id, what)))
        if of_order:
            added.append(FundsAsked(request_id, order_id, of_order, (), at))
    return said, [*added, *records]
