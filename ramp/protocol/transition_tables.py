"""States and transitions of every protocol machine, as data.

The machines refuse to move along an edge that is not here, and the diagrams in the documentation are drawn from here.
A stimulus is the name of a message content, an answer of plug-in or ledger, a command, or `deadline`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ramp.model.contents.jobs import JobState


class AuctionState(StrEnum):
    """User: the reverse auction (paper section 5.1.1, steps 1 to 5)."""

    NEW = "new"
    DISCOVERING = "discovering"
    BIDDING = "bidding"
    BEST_OFFERS = "best_offers"
    APPROVING = "approving"
    CLOSED = "closed"


class VotingState(StrEnum):
    """User: the coordinator's first phase (steps 5 to 7 and 9)."""

    NEW = "new"
    VOTING = "voting"
    AGREED = "agreed"
    ABORTING = "aborting"
    ENDED = "ended"


class ConfirmationState(StrEnum):
    """User: the bank's vote, then the coordinator's second phase (step 8); voiding where it cannot go on."""

    NEW = "new"
    RESERVING = "reserving"
    CONFIRMING = "confirming"
    VOIDING = "voiding"
    ENDED = "ended"


class ParticipantState(StrEnum):
    """Resource: participant of the two-phase commit (steps 6 to 10), then the notification of section 5.1.2."""

    NEW = "new"
    HOLDING = "holding"
    HELD = "held"
    CONFIRMING = "confirming"
    QUEUED = "queued"
    SETTLING = "settling"
    SOLD = "sold"
    REFUNDING = "refunding"
    FAILING = "failing"
    RELEASED = "released"


class CancellationState(StrEnum):
    """User: giving one bought unit back, or claiming the money of one that its seller has failed."""

    NEW = "new"
    ASKING = "asking"
    ASKING_BANK = "asking_bank"
    ENDED = "ended"


class AmendmentState(StrEnum):
    """User: making one bought slot smaller; in the end the bank says whether it is."""

    NEW = "new"
    ASKING = "asking"
    AGREED = "agreed"
    WITHDRAWING = "withdrawing"
    ENDED = "ended"


class AdditionState(StrEnum):
    """User: adding to bought slots by one order, all or none; in the end the bank says whether it is paid."""

    NEW = "new"
    ASKING = "asking"
    RESERVING = "reserving"
    FUNDED = "funded"
    WITHDRAWING = "withdrawing"
    ENDED = "ended"


class SizeChangeState(StrEnum):
    """Resource: taking a part of one sold slot back at the instant agreed on, or setting more aside; and the bank."""

    NEW = "new"
    CHECKING = "checking"
    HOLDING = "holding"
    AGREED = "agreed"
    TAKING = "taking"
    POSTING = "posting"
    RESTORING = "restoring"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Transition:
    """One legal move of a machine."""

    state: StrEnum
    stimulus: str
    next_state: StrEnum


def _moves(*rows: tuple[StrEnum, str, StrEnum]) -> frozenset[Transition]:
    return frozenset(Transition(*row) for row in rows)


_A, _V, _C = AuctionState, VotingState, ConfirmationState
_P, _X, _J = ParticipantState, CancellationState, JobState
_M, _Z, _G = AmendmentState, SizeChangeState, AdditionState

AUCTION: Final = _moves(
    (_A.NEW, "start", _A.DISCOVERING),
    (_A.DISCOVERING, "DirectoryListing", _A.BIDDING),
    (_A.DISCOVERING, "deadline", _A.CLOSED),
    (_A.DISCOVERING, "RequestWithdrawn", _A.CLOSED),
    (_A.BIDDING, "Proposal", _A.BIDDING),
    (_A.BIDDING, "Proposal", _A.BEST_OFFERS),
    (_A.BIDDING, "Proposal", _A.APPROVING),
    (_A.BIDDING, "Proposal", _A.CLOSED),
    (_A.BIDDING, "deadline", _A.BIDDING),
    (_A.BIDDING, "deadline", _A.BEST_OFFERS),
    (_A.BIDDING, "deadline", _A.APPROVING),
    (_A.BIDDING, "deadline", _A.CLOSED),
    (_A.BIDDING, "RequestWithdrawn", _A.CLOSED),
    (_A.BEST_OFFERS, "Proposal", _A.APPROVING),
    (_A.BEST_OFFERS, "Proposal", _A.CLOSED),
    (_A.BEST_OFFERS, "deadline", _A.APPROVING),
    (_A.BEST_OFFERS, "deadline", _A.CLOSED),
    (_A.BEST_OFFERS, "RequestWithdrawn", _A.CLOSED),
    (_A.APPROVING, "OffersApproved", _A.CLOSED),
    (_A.APPROVING, "deadline", _A.CLOSED),
    (_A.APPROVING, "RequestWithdrawn", _A.CLOSED),
)

VOTING: Final = _moves(
    (_V.NEW, "start", _V.VOTING),
    (_V.NEW, "recover", _V.ABORTING),
    (_V.VOTING, "HoldGranted", _V.AGREED),
    (_V.VOTING, "HoldGranted", _V.ABORTING),
    (_V.VOTING, "HoldRefused", _V.ABORTING),
    (_V.VOTING, "deadline", _V.ABORTING),
    (_V.VOTING, "RequestWithdrawn", _V.ABORTING),
    (_V.ABORTING, "HoldCancelled", _V.ENDED),
    (_V.ABORTING, "deadline", _V.ENDED),
    (_V.ABORTING, "nothing to cancel", _V.ENDED),
)

CONFIRMATION: Final = _moves(
    (_C.NEW, "start", _C.RESERVING),
    (_C.NEW, "recover", _C.CONFIRMING),
    (_C.NEW, "recover", _C.VOIDING),
    (_C.NEW, "recover", _C.ENDED),
    (_C.RESERVING, "FundsReserved", _C.CONFIRMING),
    (_C.RESERVING, "FundsReserved", _C.VOIDING),
    (_C.RESERVING, "OrderRefused", _C.ENDED),
    (_C.RESERVING, "OrderVoided", _C.ENDED),
    (_C.RESERVING, "RequestWithdrawn", _C.VOIDING),
    (_C.RESERVING, "deadline", _C.VOIDING),
    (_C.CONFIRMING, "Settled", _C.ENDED),
    (_C.CONFIRMING, "OrderVoided", _C.ENDED),
    (_C.CONFIRMING, "Failed", _C.VOIDING),
    (_C.CONFIRMING, "HoldRefused", _C.VOIDING),
    (_C.CONFIRMING, "deadline", _C.VOIDING),
    (_C.CONFIRMING, "RequestWithdrawn", _C.VOIDING),
    (_C.VOIDING, "Settled", _C.ENDED),
    (_C.VOIDING, "OrderPosted", _C.ENDED),
    (_C.VOIDING, "OrderVoided", _C.ENDED),
    (_C.VOIDING, "OrderRefused", _C.ENDED),
)

PARTICIPANT: Final = _moves(
    (_P.NEW, "Acceptance", _P.HOLDING),
    (_P.HOLDING, "SlotHeld", _P.HELD),
    (_P.HOLDING, "SlotHeld", _P.RELEASED),
    (_P.HOLDING, "SlotLookedUp", _P.HELD),
    (_P.HOLDING, "SlotLookedUp", _P.RELEASED),
    (_P.HOLDING, "HoldCancelled", _P.RELEASED),
    (_P.HOLDING, "deadline", _P.RELEASED),
    (_P.HELD, "deadline", _P.RELEASED),
    (_P.HELD, "HoldCancelled", _P.RELEASED),
    (_P.HELD, "Commitment", _P.CONFIRMING),
    (_P.CONFIRMING, "SlotConfirmed", _P.SETTLING),
    (_P.CONFIRMING, "SlotConfirmed", _P.RELEASED),
    (_P.CONFIRMING, "SlotLookedUp", _P.SETTLING),
    (_P.CONFIRMING, "SlotLookedUp", _P.RELEASED),
    (_P.CONFIRMING, "PaymentRefused", _P.RELEASED),
    (_P.CONFIRMING, "SlotConfirmed", _P.QUEUED),
    (_P.CONFIRMING, "SlotLookedUp", _P.QUEUED),
    (_P.QUEUED, "SlotLookedUp", _P.SETTLING),
    (_P.QUEUED, "SlotLookedUp", _P.RELEASED),
    (_P.QUEUED, "PaymentRefused", _P.RELEASED),
    (_P.SETTLING, "PaymentMade", _P.SOLD),
    (_P.SETTLING, "PaymentMade", _P.REFUNDING),
    (_P.SETTLING, "PaymentRefused", _P.RELEASED),
    (_P.SETTLING, "RefundMade", _P.RELEASED),
    (_P.SOLD, "Cancellation", _P.REFUNDING),
    (_P.SOLD, "RefundMade", _P.RELEASED),
    (_P.REFUNDING, "RefundMade", _P.RELEASED),
    (_P.REFUNDING, "RefundRefused", _P.SOLD),
    (_P.SOLD, "SlotLost", _P.FAILING),
    (_P.FAILING, "RefundMade", _P.RELEASED),
    (_P.NEW, "recover", _P.HOLDING),
    (_P.NEW, "recover", _P.HELD),
    (_P.NEW, "recover", _P.CONFIRMING),
    (_P.NEW, "recover", _P.SOLD),
    (_P.NEW, "recover", _P.REFUNDING),
    (_P.NEW, "recover", _P.FAILING),
    (_P.NEW, "recover", _P.RELEASED),
)

JOB: Final = _moves(
    (_J.TAKEN, "JobSeen", _J.QUEUED),
    (_J.TAKEN, "JobSeen", _J.RUNNING),
    (_J.TAKEN, "JobSeen", _J.DONE),
    (_J.TAKEN, "JobSeen", _J.FAILED),
    (_J.TAKEN, "JobSeen", _J.CANCELLED),
    (_J.TAKEN, "deadline", _J.FAILED),
    (_J.QUEUED, "JobSeen", _J.RUNNING),
    (_J.QUEUED, "JobSeen", _J.DONE),
    (_J.QUEUED, "JobSeen", _J.FAILED),
    (_J.QUEUED, "JobSeen", _J.CANCELLED),
    (_J.QUEUED, "deadline", _J.FAILED),
    (_J.RUNNING, "JobSeen", _J.DONE),
    (_J.RUNNING, "JobSeen", _J.FAILED),
    (_J.RUNNING, "JobSeen", _J.CANCELLED),
    (_J.RUNNING, "deadline", _J.FAILED),
)

CANCELLATION: Final = _moves(
    (_X.NEW, "start", _X.ASKING),
    (_X.NEW, "claim", _X.ASKING_BANK),
    (_X.ASKING, "CancellationDone", _X.ASKING_BANK),
    (_X.ASKING, "CancellationRefused", _X.ASKING_BANK),
    (_X.ASKING, "deadline", _X.ASKING_BANK),
    (_X.ASKING, "RefundMade", _X.ENDED),
    (_X.ASKING_BANK, "RefundMade", _X.ENDED),
    (_X.ASKING_BANK, "RefundRefused", _X.ENDED),
)

AMENDMENT: Final = _moves(
    (_M.NEW, "start", _M.ASKING),
    (_M.ASKING, "AmendmentAgreed", _M.AGREED),
    (_M.ASKING, "AmendmentRefused", _M.WITHDRAWING),
    (_M.ASKING, "NotUnderstood", _M.WITHDRAWING),
    (_M.ASKING, "deadline", _M.WITHDRAWING),
    (_M.ASKING, "Amended", _M.ENDED),
    (_M.AGREED, "AmendmentRefused", _M.WITHDRAWING),
    (_M.AGREED, "deadline", _M.WITHDRAWING),
    (_M.AGREED, "Amended", _M.ENDED),
    (_M.WITHDRAWING, "AmendmentPosted", _M.ENDED),
    (_M.WITHDRAWING, "AmendmentRefused", _M.ENDED),
    (_M.WITHDRAWING, "Amended", _M.ENDED),
)

ADDITION: Final = _moves(
    (_G.NEW, "start", _G.ASKING),
    (_G.NEW, "recover", _G.WITHDRAWING),
    (_G.ASKING, "AmendmentAgreed", _G.RESERVING),
    (_G.ASKING, "AmendmentRefused", _G.WITHDRAWING),
    (_G.ASKING, "NotUnderstood", _G.WITHDRAWING),
    (_G.ASKING, "deadline", _G.WITHDRAWING),
    (_G.ASKING, "Amended", _G.ENDED),
    (_G.ASKING, "OrderPosted", _G.ENDED),
    (_G.ASKING, "OrderVoided", _G.ENDED),
    (_G.RESERVING, "FundsReserved", _G.FUNDED),
    (_G.RESERVING, "OrderRefused", _G.ENDED),
    (_G.RESERVING, "OrderVoided", _G.ENDED),
    (_G.RESERVING, "OrderPosted", _G.ENDED),
    (_G.RESERVING, "AmendmentRefused", _G.WITHDRAWING),
    (_G.RESERVING, "NotUnderstood", _G.WITHDRAWING),
    (_G.RESERVING, "deadline", _G.WITHDRAWING),
    (_G.RESERVING, "Amended", _G.ENDED),
    (_G.FUNDED, "Amended", _G.ENDED),
    (_G.FUNDED, "OrderPosted", _G.ENDED),
    (_G.FUNDED, "OrderVoided", _G.ENDED),
    (_G.FUNDED, "AmendmentRefused", _G.WITHDRAWING),
    (_G.FUNDED, "deadline", _G.WITHDRAWING),
    (_G.WITHDRAWING, "OrderPosted", _G.ENDED),
    (_G.WITHDRAWING, "OrderVoided", _G.ENDED),
    (_G.WITHDRAWING, "OrderRefused", _G.ENDED),
    (_G.WITHDRAWING, "Amended", _G.ENDED),
)

SIZE_CHANGE: Final = _moves(
    (_Z.NEW, "Amendment", _Z.CHECKING),
    (_Z.NEW, "Amendment", _Z.HOLDING),
    (_Z.CHECKING, "SlotResized", _Z.AGREED),
    (_Z.CHECKING, "SlotResized", _Z.ENDED),
    (_Z.NEW, "recover", _Z.AGREED),
    (_Z.NEW, "recover", _Z.HOLDING),
    (_Z.NEW, "recover", _Z.POSTING),
    (_Z.HOLDING, "SlotResized", _Z.AGREED),
    (_Z.HOLDING, "SlotResized", _Z.RESTORING),
    (_Z.HOLDING, "SlotResized", _Z.ENDED),
    (_Z.HOLDING, "AmendmentWithdrawal", _Z.RESTORING),
    (_Z.HOLDING, "deadline", _Z.RESTORING),
    (_Z.AGREED, "AmendmentFunded", _Z.POSTING),
    (_Z.AGREED, "AmendmentWithdrawal", _Z.RESTORING),
    (_Z.AGREED, "deadline", _Z.TAKING),
    (_Z.AGREED, "deadline", _Z.RESTORING),
    (_Z.TAKING, "SlotResized", _Z.POSTING),
    (_Z.TAKING, "SlotResized", _Z.RESTORING),
    (_Z.TAKING, "SlotResized", _Z.ENDED),
    (_Z.TAKING, "deadline", _Z.RESTORING),
    (_Z.POSTING, "AmendmentPosted", _Z.ENDED),
    (_Z.POSTING, "AmendmentRefused", _Z.RESTORING),
    (_Z.RESTORING, "SlotResized", _Z.ENDED),
)

TABLES: Final = {
    "auction": AUCTION,
    "voting": VOTING,
    "confirmation": CONFIRMATION,
    "participant": PARTICIPANT,
    "cancellation": CANCELLATION,
    "job": JOB,
    "amendment": AMENDMENT,
    "addition": ADDITION,
    "size_change": SIZE_CHANGE,
}


def mermaid(name: str) -> str:
    """Draw one table as a Mermaid state diagram, parallel edges merged, in a fixed order.

    Args:
        name: a key of `TABLES`.
    """
    edges: dict[tuple[str, str], list[str]] = {}
    order = {state: index for index, state in enumerate(type(next(iter(TABLES[name])).state))}
    moves = sorted(TABLES[name], key=lambda move: (order[move.state], order[move.next_state], move.stimulus))
    for move in moves:
        edges.setdefault((move.state.value, move.next_state.value), []).append(move.stimulus)
    lines = ["stateDiagram-v2"]
    lines += [f"    {source} --> {target}: {' / '.join(labels)}" for (source, target), labels in edges.items()]
    return "\n".join(lines)
