"""What happened in a simulated market: a line for each message, record, call to machine or ledger, and crash."""

from collections.abc import Sequence

from ramp.model import contents as c
from ramp.model.acl import Message
from ramp.model.agreement import Agreement, ContractChange, Signed
from ramp.model.instant import SECOND, Duration, Instant
from ramp.model.money import credits_text
from ramp.model.offer import Offer, Refusal
from ramp.model.slot import Reservation
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol import progress as pr
from ramp.protocol import records as rc
from ramp.protocol.outcome import RequestOutcome
from simulation.market.observing import Observer


class Transcript(Observer):
    """An observer that keeps lines.

    Args:
        start: the instant that is written as 0.
        registrations: whether the directory's heartbeats are written as well.
    """

    def __init__(self, start: Instant, *, registrations: bool = False) -> None:
        self.lines: list[str] = []
        self._start = start
        self._registrations = registrations

    def carried_out(self, name: str, effect: fx.Effect, now: Instant) -> None:
        """Write what a party does, messages apart: the network tells of those."""
        text = _effect(effect, self._start)
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
        said = describe(message.content, self._start)
        self._write(f"{message.sender} -> {message.receiver}: {name} {said}{fate}", now)

    def answered(self, name: str, answer: ev.Answer, now: Instant) -> None:
        """Write an answer that comes late."""
        self._write(f"{name} hears of its {_answer(answer)}", now)

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


def describe(content: c.Content, start: Instant) -> str:  # noqa: C901 one line for each of the contents
    """A message's content in a few words.

    Args:
        content: the content.
        start: the instant that times are counted from.
    """
    match content:
        case c.CallForProposals():
            return _call(content)
        case c.Proposal():
            return _proposal(content, start)
        case c.Rejection(offer_id=offer_id, reason=reason):
            return f"{offer_id}: {reason}"
        case c.HoldGranted():
            return f"{content.offer_id} as {content.reservation_id}, held for {content.hold_for / SECOND:g} s"
        case c.HoldRefused():
            return f"{content.offer_id}: {_coded(content.code, content.detail)}"
        case c.Acceptance() | c.HoldCancelled():
            return content.offer_id
        case Signed():
            return f"{_body(content)}, signed by {' and '.join(content.signers) or 'nobody'}"
        case c.Confirmed() | c.PaymentQuery():
            return content.agreement_id
        case c.Settled():
            return f"{content.agreement_id} is paid, signed by {' and '.join(content.agreement.signers)}"
        case c.PaymentOrder():
            return f"{content.order_id}: set aside {_lines(content.lines)}"
        case c.FundsReserved():
            return f"{content.order_id}: {_lines(content.lines)} set aside for {content.valid_for / SECOND:g} s"
        case c.OrderRefused() | c.OrderVoided():
            return f"{content.order_id}: {_coded(content.code, content.detail)}"
        case c.OrderWithdrawal():
            return f"{content.order_id}: void it, {content.reason}"
        case c.OrderPosted():
            return f"{content.order_id} is posted"
        case c.Commitment():
            signers = " and ".join(content.agreement.signers) or "nobody"
            return f"{_body(content.agreement)}, signed by {signers}, with the vote for {content.vote.order_id}"
        case c.JobOrder():
            return f"{content.job_id} on {content.agreement_id}: {' '.join(content.arguments)}"
        case c.JobQuery() | c.JobCancellation() | c.JobOutputQuery() | c.JobOutput():
            return content.job_id
        case c.JobStatus():
            return f"{content.job_id} {content.state}, delivery {content.delivery}"
        case c.JobRefused():
            return f"{content.job_id}: {content.code} ({content.detail})"
        case c.SlotMoved():
            return f"{content.agreement_id} as {content.reservation_id} was moved to {content.placement}"
        case c.SlotMoveHeard():
            return f"{content.agreement_id} moved at {_seconds(content.moved_at, start)}"
        case c.Registration() | c.Deregistration():
            return content.service
        case c.DirectoryQuery():
            return f"who offers {content.service}?"
        case c.DirectoryListing():
            unfit = f"; could not serve: {', '.join(each.name for each in content.unfit)}" if content.unfit else ""
            return f"{', '.join(content.names) or 'nobody'}" + (", and more" if content.more else "") + unfit
        case c.Registered():
            return "registered"
        case c.Unverified():
            return f"{content.kind} {content.reference}, unverified: {_coded(content.code, content.detail)}"
        case c.NotUnderstood():
            return content.reason
        case _:
            return _money(content)


def _money(content: c.Content) -> str:
    """What is said of payments and accounts, in a few words; of anything else what it is called."""
    match content:
        case c.DepositOrder():
            return f"{content.deposit_id}: {credits_text(content.amount)} to {content.account}"
        case c.RefundOrder():
            return f"refund {content.agreement_id}: {content.reason}"
        case c.DepositMade():
            return f"{content.deposit_id}: {credits_text(content.amount)}"
        case c.RequestRefused():
            return f"{content.reference}: {_coded(content.code, content.detail)}"
        case c.OverviewQuery():
            return f"all trading ({content.query_id})"
        case c.MarketOverview():
            return f"{content.query_id}: {len(content.accounts)} accounts, {len(content.trades)} trades"
        case c.PaymentRefused():
            return f"{content.agreement_id}: {_coded(content.code, content.detail)}"
        case c.PaymentMade():
            return f"{content.agreement_id}: paid {credits_text(content.amount)}"
        case c.AccountQuery():
            return f"balance of {content.account} ({content.nonce})"
        case c.AccountStatement():
            return f"{content.nonce}: balance {credits_text(content.balance)}, {len(content.lines)} lines"
        case _:
            return _about_change(content)


def _moved(amount: int) -> str:
    """What a change costs or gives back."""
    return f"{credits_text(amount)} paid" if amount > 0 else f"{credits_text(-amount)} back"


def _about_change(content: c.Content) -> str:
    """What is said of changes of size, in a few words; of anything else what it is called."""
    match content:
        case c.ChangeAgreed() | c.ChangeWithdrawal():
            return f"change {content.number} of {content.agreement_id}"
        case c.ChangeRefused():
            which = f"change {content.number} of {content.agreement_id}" if content.number else content.agreement_id
            return f"{which}: {_coded(content.code, content.detail)}"
        case c.ChangeCall():
            wanted = f"{content.cores} cores for {content.agreement_id} at {content.cpu_hour_cost}"
            return f"{wanted} (change {content.number})"
        case c.ChangePriced():
            return f"change {content.number} of {content.agreement_id} at {content.cpu_hour_cost}"
        case c.ChangePosted():
            if content.is_terminal:
                return f"{content.agreement_id}: refunded {credits_text(content.refund)}"
            return f"change {content.number} of {content.agreement_id}: {_moved(content.amount)}"
        case c.ChangeDone():
            return f"{_body(content.change)}, signed by {' and '.join(content.change.signers)}, is posted"
        case _:
            return type(content).__name__


def _lines(lines: Sequence[c.OrderLine]) -> str:
    return ", ".join(f"{credits_text(line.cost)} to {line.resource} for {line.agreement_id}" for line in lines)


def _coded(code: str, detail: str) -> str:
    return f"{code} ({detail})" if detail else str(code)


def _seconds(instant: Instant, start: Instant) -> str:
    return f"{(instant - start) / SECOND:g}"


def _call(call: c.CallForProposals) -> str:
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
    if isinstance(body, ContractChange) and not body.is_terminal:
        moved = _moved(body.amount)
        return f"change {body.number} of {body.agreement_id}, {body.cores} cores, {moved}"
    if isinstance(body, Agreement):
        return f"{body.agreement_id} for {body.offer.offer_id} as {body.reservation_id}, cost {credits_text(body.cost)}"
    if body.code is not None:
        return f"failure of {body.agreement_id}: {_coded(body.code, body.reason)}"
    return f"cancellation of {body.agreement_id}"


def _effect(effect: fx.Effect, start: Instant) -> str:
    match effect:
        case fx.Persist(record):
            return f"writes {_record(record)}"
        case fx.HoldSlot() | fx.ConfirmSlot() | fx.ReleaseSlot() | fx.LookUpSlot():
            return _question(effect, start)
        case fx.ReserveFunds():
            return f"asks its ledger to set aside {effect.order_id}"
        case fx.CountersignLine(_, agreement_id):
            return f"asks its ledger to note both signatures of {agreement_id}"
        case fx.VoidOrder(_, order_id):
            return f"asks its ledger to void {order_id}"
        case fx.LookUpAgreement(_, agreement_id):
            return f"asks its ledger about {agreement_id}"
        case fx.PostDeposit():
            return f"asks its ledger to credit {effect.account}"
        case fx.SubmitJob(job):
            return f"submits {job.job_id} as {job.account}"
        case fx.LookUpJob(job) | fx.CancelJob(job):
            return f"{'looks at' if isinstance(effect, fx.LookUpJob) else 'ends'} {job.job_id}"
        case fx.SaveAgreement(agreement_id):
            return f"keeps {agreement_id}"
        case fx.Report(progress):
            return _progress(progress)
        case _:
            return _change(effect)


def _change(effect: fx.Effect) -> str:
    """What is done of changes of size; nothing is written of anything else."""
    match effect:
        case fx.PostChange(change=body):
            number = 0 if body is None else body.number
            what = f"post change {number} of" if number else "refund"
            return f"asks its ledger to {what} {effect.agreement_id}"
        case fx.VoidChange():
            return f"asks its ledger to void change {effect.number} of {effect.agreement_id}"
        case fx.ResizeSlot():
            return f"asks its machine for {effect.cores} cores for {effect.key} (step {effect.step})"
    return ""


def _question(question: fx.HoldSlot | fx.ConfirmSlot | fx.ReleaseSlot | fx.LookUpSlot, start: Instant) -> str:
    match question:
        case fx.HoldSlot():
            return f"asks its machine to hold {question.key} until {_seconds(question.until, start)}"
        case fx.ConfirmSlot(key):
            return f"asks its machine to confirm {key}"
        case fx.ReleaseSlot(key):
            return f"tells its machine to release {key}"
        case fx.LookUpSlot(key):
            return f"asks its machine what it has for {key}"


def _answer(answer: ev.Answer) -> str:
    match answer:
        case ev.SlotHeld(key, found) | ev.SlotConfirmed(key, found) | ev.SlotLookedUp(key, found):
            return f"machine: {key} {_found(found)}"
        case ev.SlotFreed(key, found):
            return f"machine: {key} {'released' if found is None else _found(found)}"
        case ev.SlotResized(key, step, found, doubt):
            return f"machine: {key}, step {step}, {f'in doubt ({doubt})' if found is None else _found(found)}"
        case ev.SlotsPriced():
            return "price strategy"
    return "machine"


def _found(found: Reservation | Refusal | ev.MachineInDoubt | None) -> str:
    match found:
        case Reservation():
            return f"{'firm' if found.firm else 'held'} as {found.reservation_id}"
        case Refusal(code=code):
            return f"refused: {code.value}"
        case ev.MachineInDoubt(reason):
            return f"in doubt ({reason})"
    return "unknown"


def _record(record: rc.Record) -> str:
    name = type(record).__name__
    match record:
        case rc.FundsAsked(agreements=agreements):
            return f"{name} {record.order_id}: {', '.join(agreement.agreement_id for agreement in agreements)}"
        case rc.CommitDecided():
            return f"{name} {record.order_id}"
        case rc.VoidAsked():
            return f"{name} {record.order_id} because {record.reason}"
        case rc.OrderClosed():
            return f"{name} {record.order_id}: {'posted' if record.transfers else 'void'}"
        case rc.FailureTold():
            return f"{name} {record.failure.body.agreement_id}"
        case rc.AcceptanceAsked(offer=offer) | rc.HoldIntended(offer=offer):
            return f"{name} {offer.offer_id}"
        case rc.UnitSettled():
            return f"{name} {record.agreement_id}"
        case rc.RequestStarted() | rc.RequestConcluded():
            return f"{name} {record.request_id}"
        case rc.ChangeReceived() | rc.ChangeDropped() | rc.CapacityTaken() | rc.ChangeSettled():
            return f"{name} {record.offer_id} {record.number}"
        case rc.ChangeProposed() | rc.ChangeConcluded():
            about = record.signed.change if isinstance(record, rc.ChangeProposed) else record.outcome
            return f"{name} {about.agreement_id} {about.number}"
        case rc.SlotReleased():
            return f"{name} {record.offer_id}: {_coded(record.code, record.detail)}"
        case rc.JobTaken(order=order) | rc.JobOrdered(order=order):
            return f"{name} {order.job_id}"
        case rc.JobEnded(status=word) | rc.JobHeard(word=word) | rc.MoveHeard(word=word):
            return f"{name} {describe(word, 0)}"
        case _:
            return f"{name} {rc.reference_of(record)}"


def _progress(progress: pr.Progress) -> str:
    match progress:
        case pr.RoundClosed(record=record, best=best):
            prices = ", ".join(f"unit {number} {bid.cpu_hour_cost} of {bid.resource}" for number, bid in best)
            return f"closes round {record.round_number} after {record.duration / SECOND:g} s: best {prices or 'none'}"
        case pr.ApprovalAsked(offers=offers, meets=meets):
            shown = ", ".join(
                f"unit {offer.unit} at {offer.cpu_hour_cost} of {offer.resource}{'' if met else ' (best offer)'}"
                for offer, met in zip(offers, meets, strict=True)
            )
            return f"asks its owner to approve {shown}"
        case pr.RequestEnded(outcome):
            return _outcome(outcome)
        case pr.ChangeEnded(outcome=ended) if ended.ends:
            if ended.done:
                how = f" ({ended.code})" if ended.code else ""
                return f"reports {ended.agreement_id} cancelled{how}, refund {credits_text(ended.refund)}"
            return f"reports {ended.agreement_id} not cancelled: {_coded(ended.code, ended.detail)}"
        case pr.ChangeAdvanced(amendment):
            return f"hears that amendment {amendment.number} of {amendment.agreement_id} is agreed"
        case pr.ChangeEnded(outcome=changed):
            if changed.done:
                moved = _moved(changed.charge or -changed.refund)
                return f"reports {changed.agreement_id} at {changed.cores} cores, {moved}"
            return f"reports {changed.agreement_id} not changed: {_coded(changed.code, changed.detail)}"
        case pr.UnitMoved():
            return f"reports {progress.agreement_id} of {progress.resource} moved to {progress.placement}"
        case pr.KeeperOrdered(keeper, kind, what):
            return f"obeys {keeper}: {kind} of {what}"
        case pr.QueryAnswered(answer=None, query_id=query_id):
            return f"reports no answer to {query_id}"
        case pr.QueryAnswered(answer=answer) if answer is not None:
            return f"reports {describe(answer, 0)}"
        case _:
            return ""


def _outcome(outcome: RequestOutcome) -> str:
    units = "; ".join(
        f"unit {unit.unit} of {unit.offer.resource} at {unit.offer.cpu_hour_cost}"
        + (f" as {unit.reservation_id}" if unit.reservation_id else "")
        for unit in outcome.units
    )
    reason = f" ({outcome.reason})" if outcome.reason else ""
    return f"reports {outcome.request_id} {outcome.status.value}{reason}" + (f": {units}" if units else "")
