"""What happened in a simulated market: a line for each message, record, call to machine or ledger, and crash."""

from collections.abc import Callable, Sequence
from typing import Any, get_args

from ramp.model import contents as c
from ramp.model.acl import Message
from ramp.model.agreement import Agreement, Signed
from ramp.model.instant import SECOND, Duration, Instant
from ramp.model.money import credits_text
from ramp.model.offer import Offer, Refusal
from ramp.model.slot import Reservation
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol import progress as pr
from ramp.protocol import records as rc
from simulation.market.observing import Observer


class Transcript(Observer):
    """An observer that keeps lines; times count from `start`, and the directory's heartbeats are written if wanted."""

    def __init__(self, start: Instant, *, registrations: bool = False) -> None:
        self.lines: list[str] = []
        self._start = start
        self._registrations = registrations

    def carried_out(self, name: str, effect: fx.Effect, now: Instant) -> None:
        """Write what a party does, messages apart: the network tells of those."""
        text = _text(_DONE, effect, self._start)
        if text:
            self._write(f"{name} {text}", now)

    def sent(self, message: Message, delays: Sequence[Duration], now: Instant) -> None:
        """Write a message and what becomes of it on its way."""
        heartbeat = isinstance(message.content, c.Registration | c.Registered)
        if heartbeat and not self._registrations:
            return
        fate = {0: " (lost)", 1: ""}.get(len(delays), " (twice)")
        if any(delay >= SECOND for delay in delays):
            fate += f" (takes {', '.join(f'{delay / SECOND:g} s' for delay in delays)})"
        name = message.performative.value.upper()
        said = _said(message.content, self._start)
        self._write(f"{message.sender} -> {message.receiver}: {name} {said}{fate}", now)

    def answered(self, name: str, answer: ev.Answer, now: Instant) -> None:
        """Write an answer that comes late."""
        self._write(f"{name} hears of its {_text(_HEARD, answer) or 'machine'}", now)

    def crashed(self, name: str, now: Instant) -> None:
        """Write a crash."""
        self._write(f"{name} CRASHES", now)

    def restarted(self, name: str, now: Instant) -> None:
        """Write a restart."""
        self._write(f"{name} RESTARTS", now)

    def remark(self, text: str, now: Instant) -> None:
        """Write something else."""
        self._write(text, now)

    def _write(self, text: str, now: Instant) -> None:
        self.lines.append(f"{(now - self._start) / SECOND:9.3f}  {text}")


Texts = dict[type, Callable[[Any, Instant], str]]
"""The words of each class, given an object of it and the instant that times are counted from."""


def _text(texts: Texts, it: object, start: Instant = 0) -> str:
    write = texts.get(type(it))
    return "" if write is None else write(it, start)


def _said(content: c.Content, start: Instant = 0) -> str:
    return _text(_SAID, content, start) or type(content).__name__


def _moved(amount: int) -> str:
    """What a change costs or gives back."""
    return f"{credits_text(amount)} paid" if amount > 0 else f"{credits_text(-amount)} back"


def _lines(lines: Sequence[c.OrderLine]) -> str:
    return ", ".join(f"{credits_text(line.cost)} to {line.resource} for {line.agreement_id}" for line in lines)


def _coded(code: str, detail: str) -> str:
    return f"{code} ({detail})" if detail else str(code)


def _seconds(instant: Instant, start: Instant) -> str:
    return f"{(instant - start) / SECOND:g}"


def _call(call: c.CallForProposals, _: Instant) -> str:
    units = ", ".join(f"unit {unit.number} at {unit.cpu_hour_cost}" for unit in call.request.units)
    bids = ", ".join(f"{bid.resource} {bid.cpu_hour_cost} for unit {bid.unit}" for bid in call.bids)
    kind = "best offers" if call.best_offer else "call"
    return f"round {call.round_number} {kind}: {units}" + (f"; bids so far: {bids}" if bids else "")


def _proposal(proposal: c.Proposal, start: Instant) -> str:
    parts = [_offer(offer, start) for offer in proposal.offers]
    for refusal in proposal.refusals:
        nearest = f", nearest {refusal.nearest}" if refusal.nearest else ""
        parts.append(f"not unit {refusal.unit}: {_coded(refusal.code, refusal.detail)}{nearest}")
    return f"round {proposal.round_number}: {'; '.join(parts)}"


def _offer(offer: Offer, start: Instant) -> str:
    window = f"{_seconds(offer.start, start)} to {_seconds(offer.end, start)} s"
    return f"unit {offer.unit} at {offer.cpu_hour_cost}, {offer.cores} cores from {window} ({offer.offer_id})"


def _body(signed: Signed) -> str:
    body = signed.body
    if isinstance(body, Agreement):
        return f"{body.agreement_id} for {body.offer.offer_id} as {body.reservation_id}, cost {credits_text(body.cost)}"
    if not body.is_terminal:
        return f"change {body.number} of {body.agreement_id}, {body.cores} cores, {_moved(body.amount)}"
    if body.code is not None:
        return f"failure of {body.agreement_id}: {_coded(body.code, body.reason)}"
    return f"cancellation of {body.agreement_id}"


def _signed(signed: Signed) -> str:
    return f"{_body(signed)}, signed by {' and '.join(signed.signers) or 'nobody'}"


def _listing(it: c.DirectoryListing, _: Instant) -> str:
    unfit = f"; could not serve: {', '.join(each.name for each in it.unfit)}" if it.unfit else ""
    return f"{', '.join(it.names) or 'nobody'}" + (", and more" if it.more else "") + unfit


def _change_of(it: Any, _: Instant = 0) -> str:
    return f"change {it.number} of {it.agreement_id}"


def _change_refused(it: c.ChangeRefused, _: Instant) -> str:
    return f"{_change_of(it) if it.number else it.agreement_id}: {_coded(it.code, it.detail)}"


def _change_posted(it: c.ChangePosted, _: Instant) -> str:
    if it.is_terminal:
        return f"{it.agreement_id}: refunded {credits_text(it.refund)}"
    return f"{_change_of(it)}: {_moved(it.amount)}"


_SAID: Texts = {
    c.CallForProposals: _call,
    c.Proposal: _proposal,
    c.Rejection: lambda it, _: f"{it.offer_id}: {it.reason}",
    c.Acceptance: lambda it, _: it.offer_id,
    c.HoldCancelled: lambda it, _: it.offer_id,
    c.HoldGranted: lambda it, _: f"{it.offer_id} as {it.reservation_id}, held for {it.hold_for / SECOND:g} s",
    c.HoldRefused: lambda it, _: f"{it.offer_id}: {_coded(it.code, it.detail)}",
    Signed: lambda it, _: _signed(it),
    c.Commitment: lambda it, _: f"{_signed(it.agreement)}, with the vote for {it.vote.order_id}",
    c.Confirmed: lambda it, _: it.agreement_id,
    c.Settled: lambda it, _: f"{it.agreement_id} is paid, signed by {' and '.join(it.agreement.signers)}",
    c.Unverified: lambda it, _: f"{it.kind} {it.reference}, unverified: {_coded(it.code, it.detail)}",
    c.NotUnderstood: lambda it, _: it.reason,
    # orders, payments and accounts
    c.PaymentOrder: lambda it, _: f"{it.order_id}: set aside {_lines(it.lines)}",
    c.FundsReserved: lambda it, _: f"{it.order_id}: {_lines(it.lines)} set aside for {it.valid_for / SECOND:g} s",
    c.OrderRefused: lambda it, _: f"{it.order_id}: {_coded(it.code, it.detail)}",
    c.OrderVoided: lambda it, _: f"{it.order_id}: {_coded(it.code, it.detail)}",
    c.OrderWithdrawal: lambda it, _: f"{it.order_id}: void it, {it.reason}",
    c.OrderPosted: lambda it, _: f"{it.order_id} is posted",
    c.PaymentQuery: lambda it, _: it.agreement_id,
    c.PaymentMade: lambda it, _: f"{it.agreement_id}: paid {credits_text(it.amount)}",
    c.PaymentRefused: lambda it, _: f"{it.agreement_id}: {_coded(it.code, it.detail)}",
    c.DepositOrder: lambda it, _: f"{it.deposit_id}: {credits_text(it.amount)} to {it.account}",
    c.DepositMade: lambda it, _: f"{it.deposit_id}: {credits_text(it.amount)}",
    c.RefundOrder: lambda it, _: f"refund {it.agreement_id}: {it.reason}",
    c.RequestRefused: lambda it, _: f"{it.reference}: {_coded(it.code, it.detail)}",
    c.AccountQuery: lambda it, _: f"balance of {it.account} ({it.nonce})",
    c.AccountStatement: lambda it, _: f"{it.nonce}: balance {credits_text(it.balance)}, {len(it.lines)} lines",
    c.OverviewQuery: lambda it, _: f"all trading ({it.query_id})",
    c.MarketOverview: lambda it, _: f"{it.query_id}: {len(it.accounts)} accounts, {len(it.trades)} trades",
    # changes of size, moves and jobs
    c.ChangeCall: lambda it, _: f"{it.cores} cores for {it.agreement_id} at {it.cpu_hour_cost} (change {it.number})",
    c.ChangePriced: lambda it, _: f"{_change_of(it)} at {it.cpu_hour_cost}",
    c.ChangeAgreed: _change_of,
    c.ChangeWithdrawal: _change_of,
    c.ChangeRefused: _change_refused,
    c.ChangePosted: _change_posted,
    c.ChangeDone: lambda it, _: f"{_signed(it.change)}, is posted",
    c.SlotMoved: lambda it, _: f"{it.agreement_id} as {it.reservation_id} was moved to {it.placement}",
    c.SlotMoveHeard: lambda it, start: f"{it.agreement_id} moved at {_seconds(it.moved_at, start)}",
    c.JobOrder: lambda it, _: f"{it.job_id} on {it.agreement_id}: {' '.join(it.arguments)}",
    **dict.fromkeys((c.JobQuery, c.JobCancellation, c.JobOutputQuery, c.JobOutput), lambda it, _: it.job_id),
    c.JobStatus: lambda it, _: f"{it.job_id} {it.state}, delivery {it.delivery}",
    c.JobRefused: lambda it, _: f"{it.job_id}: {it.code} ({it.detail})",
    # the directory
    c.Registration: lambda it, _: it.service,
    c.Deregistration: lambda it, _: it.service,
    c.Registered: lambda it, _: "registered",
    c.DirectoryQuery: lambda it, _: f"who offers {it.service}?",
    c.DirectoryListing: _listing,
}
"""What is said in a message; any other content is called by its name."""


def _post_change(it: fx.PostChange, _: Instant) -> str:
    assert isinstance(it.message.content, Signed)
    change = it.message.content.change
    what = f"post change {change.number} of" if change.number else "refund"
    return f"asks its ledger to {what} {change.agreement_id}"


_CARRIED_OUT: Texts = {
    c.PaymentOrder: lambda it, _: f"asks its ledger to set aside {it.order_id}",
    c.OrderWithdrawal: lambda it, _: f"asks its ledger to void {it.order_id}",
    c.ChangeWithdrawal: lambda it, _: f"asks its ledger to void {_change_of(it)}",
    c.DepositOrder: lambda it, _: f"asks its ledger to credit {it.account}",
    c.RefundOrder: lambda it, _: f"asks its ledger to refund {it.agreement_id}",
}
"""What the ledger shall carry out; of anything else nothing is written."""


_DONE: Texts = {
    fx.Persist: lambda it, _: f"writes {_record(it.record)}",
    fx.Report: lambda it, _: _text(_TOLD, it.progress),
    fx.SaveAgreement: lambda it, _: f"keeps {it.agreement_id}",
    fx.HoldSlot: lambda it, start: f"asks its machine to hold {it.key} until {_seconds(it.until, start)}",
    fx.ConfirmSlot: lambda it, _: f"asks its machine to confirm {it.key}",
    fx.ReleaseSlot: lambda it, _: f"tells its machine to release {it.key}",
    fx.LookUpSlot: lambda it, _: f"asks its machine what it has for {it.key}",
    fx.ResizeSlot: lambda it, _: f"asks its machine for {it.cores} cores for {it.key} (step {it.step})",
    fx.CarryOut: lambda it, _: _text(_CARRIED_OUT, it.message.content),
    fx.CountersignLine: lambda it, _: f"asks its ledger to note both signatures of {it.agreement_id}",
    fx.VoidOrder: lambda it, _: f"asks its ledger to void {it.order.order_id}",
    fx.LookUpAgreement: lambda it, _: f"asks its ledger about {it.agreement_id}",
    fx.PostChange: _post_change,
    fx.SubmitJob: lambda it, _: f"submits {it.job.job_id} as {it.job.account}",
    fx.LookUpJob: lambda it, _: f"looks at {it.job.job_id}",
    fx.CancelJob: lambda it, _: f"ends {it.job.job_id}",
}
"""What a party does; of anything else nothing is written."""


def _found(it: Reservation | Refusal | ev.MachineInDoubt | None) -> str:
    match it:
        case Reservation():
            return f"{'firm' if it.firm else 'held'} as {it.reservation_id}"
        case Refusal():
            return f"refused: {it.code.value}"
        case ev.MachineInDoubt():
            return f"in doubt ({it.reason})"
    return "unknown"


def _slot(it: ev.SlotHeld | ev.SlotConfirmed | ev.SlotLookedUp, _: Instant) -> str:
    return f"machine: {it.key} {_found(it.answer)}"


def _resized(it: ev.SlotResized, _: Instant) -> str:
    return f"machine: {it.key}, step {it.step}, {_found(it.answer)}"


_HEARD: Texts = {
    ev.SlotHeld: _slot,
    ev.SlotConfirmed: _slot,
    ev.SlotLookedUp: _slot,
    ev.SlotFreed: lambda it, _: f"machine: {it.key} {'released' if it.answer is None else _found(it.answer)}",
    ev.SlotResized: _resized,
    ev.SlotsPriced: lambda it, _: "price strategy",
}
"""An answer that comes late; of any other only whose it is."""


def _record(record: rc.Record) -> str:
    return f"{type(record).__name__} {_text(_RECORDED, record) or rc.reference_of(record)}"


def _released(it: rc.SlotReleased, _: Instant) -> str:
    return f"{it.offer_id}: {_coded(it.code, it.detail)}"


_RECORDED: Texts = {
    rc.FundsAsked: lambda it, _: f"{it.order_id}: {', '.join(each.agreement_id for each in it.agreements)}",
    rc.CommitDecided: lambda it, _: it.order_id,
    rc.VoidAsked: lambda it, _: f"{it.order_id} because {it.reason}",
    rc.OrderClosed: lambda it, _: f"{it.order_id}: {'posted' if it.transfers else 'void'}",
    rc.FailureTold: lambda it, _: it.failure.body.agreement_id,
    rc.AcceptanceAsked: lambda it, _: it.offer.offer_id,
    rc.UnitSettled: lambda it, _: it.agreement_id,
    rc.SlotReleased: _released,
    **dict.fromkeys(get_args(rc.SoldChangeRecord), lambda it, _: f"{it.offer_id} {it.number}"),
    rc.ChangeProposed: lambda it, _: f"{it.signed.change.agreement_id} {it.signed.change.number}",
    rc.ChangeConcluded: lambda it, _: f"{it.outcome.agreement_id} {it.outcome.number}",
    rc.JobTaken: lambda it, _: it.order.job_id,
    rc.JobOrdered: lambda it, _: it.order.job_id,
    rc.JobEnded: lambda it, _: _said(it.status),
    rc.JobHeard: lambda it, _: _said(it.word),
    rc.MoveHeard: lambda it, _: _said(it.word),
}
"""What is written, after its name; of any other record its reference."""


def _round(it: pr.RoundClosed, _: Instant) -> str:
    prices = ", ".join(f"unit {number} {bid.cpu_hour_cost} of {bid.resource}" for number, bid in it.best)
    return f"closes round {it.record.round_number} after {it.record.duration / SECOND:g} s: best {prices or 'none'}"


def _approval(it: pr.ApprovalAsked, _: Instant) -> str:
    shown = ", ".join(
        f"unit {offer.unit} at {offer.cpu_hour_cost} of {offer.resource}{'' if met else ' (best offer)'}"
        for offer, met in zip(it.offers, it.meets, strict=True)
    )
    return f"asks its owner to approve {shown}"


def _changed(it: pr.ChangeEnded, _: Instant) -> str:
    ended = it.outcome
    if not ended.done:
        what = "cancelled" if ended.ends else "changed"
        return f"reports {ended.agreement_id} not {what}: {_coded(ended.code, ended.detail)}"
    if ended.ends:
        how = f" ({ended.code})" if ended.code else ""
        return f"reports {ended.agreement_id} cancelled{how}, refund {credits_text(ended.refund)}"
    return f"reports {ended.agreement_id} at {ended.cores} cores, {_moved(ended.charge or -ended.refund)}"


def _outcome(it: pr.RequestEnded, _: Instant) -> str:
    units = "; ".join(
        f"unit {unit.unit} of {unit.offer.resource} at {unit.offer.cpu_hour_cost}"
        + (f" as {unit.reservation_id}" if unit.reservation_id else "")
        for unit in it.outcome.units
    )
    reason = f" ({it.outcome.reason})" if it.outcome.reason else ""
    return f"reports {it.outcome.request_id} {it.outcome.status.value}{reason}" + (f": {units}" if units else "")


def _answered(it: pr.QueryAnswered, _: Instant) -> str:
    return f"reports {f'no answer to {it.query_id}' if it.answer is None else _said(it.answer)}"


_TOLD: Texts = {
    pr.RoundClosed: _round,
    pr.ApprovalAsked: _approval,
    pr.RequestEnded: _outcome,
    pr.ChangeAdvanced: lambda it, _: (
        f"hears that amendment {it.amendment.number} of {it.amendment.agreement_id} is agreed"
    ),
    pr.ChangeEnded: _changed,
    pr.UnitMoved: lambda it, _: f"reports {it.agreement_id} of {it.resource} moved to {it.placement}",
    pr.KeeperOrdered: lambda it, _: f"obeys {it.keeper}: {it.kind} of {it.what}",
    pr.QueryAnswered: _answered,
}
"""What an owner is told; of any other progress nothing is written."""
