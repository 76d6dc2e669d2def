"""States and transitions of every protocol machine, as data.

The machines refuse any other transition, and the documentation's diagrams are drawn from here. A stimulus is the name
of a message content, an answer of plug-in or ledger, a command, `RoundClosed`, or `deadline`; `posted` and `void` are
the bank's final answers about a change, whatever message proves them. After a restart a machine resumes in the state
that its records show (`StateMachine._resume`), which is no transition; a change enters it by `recover`.
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
    """User: the bank's vote, then the coordinator's second phase (step 8); voiding if it cannot continue."""

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
    ENDING = "ending"
    RELEASED = "released"


class BuyerChangeState(StrEnum):
    """User: one change of a contract, or one order that pays for several; the bank's answer decides."""

    NEW = "new"
    ASKING = "asking"
    RESERVING = "reserving"
    AGREED = "agreed"
    DECIDING = "deciding"
    ENDED = "ended"


class SellerChangeState(StrEnum):
    """Resource: shrinking a sold slot at the agreed instant, or reserving an addition; then the bank."""

    NEW = "new"
    PREPARING = "preparing"
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


def _moves(*edges: tuple[StrEnum, StrEnum, *tuple[str, ...]]) -> frozenset[Transition]:
    """Return the transitions of edges, each given as state, next state and all stimuli that lead there."""
    return frozenset(
        Transition(state, stimulus, next_state) for state, next_state, *stimuli in edges for stimulus in stimuli
    )


_A, _V, _C = AuctionState, VotingState, ConfirmationState
_P, _J = ParticipantState, JobState
_B, _Z = BuyerChangeState, SellerChangeState

AUCTION: Final = _moves(
    (_A.NEW, _A.DISCOVERING, "start"),
    (_A.DISCOVERING, _A.BIDDING, "DirectoryListing"),
    (_A.DISCOVERING, _A.CLOSED, "deadline", "RequestWithdrawn"),
    (_A.BIDDING, _A.BIDDING, "RoundClosed"),
    (_A.BIDDING, _A.BEST_OFFERS, "RoundClosed"),
    (_A.BIDDING, _A.APPROVING, "RoundClosed"),
    (_A.BIDDING, _A.CLOSED, "RoundClosed", "RequestWithdrawn"),
    (_A.BEST_OFFERS, _A.APPROVING, "RoundClosed"),
    (_A.BEST_OFFERS, _A.CLOSED, "RoundClosed", "RequestWithdrawn"),
    (_A.APPROVING, _A.CLOSED, "OffersApproved", "deadline", "RequestWithdrawn"),
)

VOTING: Final = _moves(
    (_V.NEW, _V.VOTING, "start"),
    (_V.VOTING, _V.AGREED, "HoldGranted"),
    (_V.VOTING, _V.ABORTING, "HoldGranted", "HoldRefused", "deadline", "RequestWithdrawn"),
    (_V.ABORTING, _V.ENDED, "HoldCancelled", "deadline", "nothing to cancel"),
)

CONFIRMATION: Final = _moves(
    (_C.NEW, _C.RESERVING, "start"),
    (_C.RESERVING, _C.CONFIRMING, "FundsReserved"),
    (_C.RESERVING, _C.VOIDING, "FundsReserved", "RequestWithdrawn", "deadline"),
    (_C.RESERVING, _C.ENDED, "OrderRefused", "OrderVoided"),
    (_C.CONFIRMING, _C.VOIDING, "ContractChange", "HoldRefused", "deadline", "RequestWithdrawn"),
    (_C.CONFIRMING, _C.ENDED, "Settled", "OrderVoided"),
    (_C.VOIDING, _C.ENDED, "Settled", "OrderPosted", "OrderVoided", "OrderRefused"),
)

PARTICIPANT: Final = _moves(
    (_P.NEW, _P.HOLDING, "Acceptance"),
    (_P.HOLDING, _P.HELD, "SlotSeen"),
    (_P.HOLDING, _P.RELEASED, "SlotSeen", "HoldCancelled", "deadline"),
    (_P.HELD, _P.CONFIRMING, "Commitment"),
    (_P.HELD, _P.RELEASED, "deadline", "HoldCancelled"),
    (_P.CONFIRMING, _P.QUEUED, "SlotSeen"),
    (_P.CONFIRMING, _P.SETTLING, "SlotSeen"),
    (_P.CONFIRMING, _P.RELEASED, "SlotSeen", "PaymentRefused"),
    (_P.QUEUED, _P.SETTLING, "SlotSeen"),
    (_P.QUEUED, _P.RELEASED, "SlotSeen", "PaymentRefused"),
    (_P.SETTLING, _P.SOLD, "PaymentMade"),
    (_P.SETTLING, _P.ENDING, "PaymentMade"),
    (_P.SETTLING, _P.RELEASED, "PaymentRefused", "ChangePosted"),
    (_P.SOLD, _P.ENDING, "ContractChange", "SlotLost"),
    (_P.SOLD, _P.RELEASED, "ChangePosted"),
    (_P.ENDING, _P.SOLD, "ChangeRefused"),
    (_P.ENDING, _P.RELEASED, "ChangePosted"),
)

JOB: Final = _moves(
    (_J.TAKEN, _J.QUEUED, "JobSeen"),
    (_J.TAKEN, _J.RUNNING, "JobSeen"),
    (_J.TAKEN, _J.DONE, "JobSeen"),
    (_J.TAKEN, _J.FAILED, "JobSeen", "deadline"),
    (_J.TAKEN, _J.CANCELLED, "JobSeen"),
    (_J.QUEUED, _J.RUNNING, "JobSeen"),
    (_J.QUEUED, _J.DONE, "JobSeen"),
    (_J.QUEUED, _J.FAILED, "JobSeen", "deadline"),
    (_J.QUEUED, _J.CANCELLED, "JobSeen"),
    (_J.RUNNING, _J.DONE, "JobSeen"),
    (_J.RUNNING, _J.FAILED, "JobSeen", "deadline"),
    (_J.RUNNING, _J.CANCELLED, "JobSeen"),
)

BUYER_CHANGE: Final = _moves(
    (_B.NEW, _B.ASKING, "start"),
    (_B.NEW, _B.DECIDING, "recover"),
    (_B.ASKING, _B.RESERVING, "ChangeAgreed"),
    (_B.ASKING, _B.AGREED, "ChangeAgreed"),
    (_B.ASKING, _B.DECIDING, "ChangeRefused", "NotUnderstood", "deadline"),
    (_B.ASKING, _B.ENDED, "posted", "void"),
    (_B.RESERVING, _B.AGREED, "FundsReserved"),
    (_B.RESERVING, _B.DECIDING, "ChangeRefused", "NotUnderstood", "deadline"),
    (_B.RESERVING, _B.ENDED, "posted", "void"),
    (_B.AGREED, _B.DECIDING, "ChangeRefused", "deadline"),
    (_B.AGREED, _B.ENDED, "posted", "void"),
    (_B.DECIDING, _B.ENDED, "posted", "void"),
)

SELLER_CHANGE: Final = _moves(
    (_Z.NEW, _Z.PREPARING, "ContractChange", "recover"),
    (_Z.NEW, _Z.AGREED, "recover"),
    (_Z.NEW, _Z.POSTING, "recover"),
    (_Z.PREPARING, _Z.AGREED, "SlotResized"),
    (_Z.PREPARING, _Z.RESTORING, "SlotResized", "ChangeWithdrawal", "deadline"),
    (_Z.PREPARING, _Z.ENDED, "SlotResized"),
    (_Z.AGREED, _Z.TAKING, "deadline"),
    (_Z.AGREED, _Z.POSTING, "ChangeAgreed"),
    (_Z.AGREED, _Z.RESTORING, "ChangeWithdrawal", "deadline"),
    (_Z.TAKING, _Z.POSTING, "SlotResized"),
    (_Z.TAKING, _Z.RESTORING, "SlotResized", "deadline"),
    (_Z.TAKING, _Z.ENDED, "SlotResized"),
    (_Z.POSTING, _Z.RESTORING, "void"),
    (_Z.POSTING, _Z.ENDED, "posted"),
    (_Z.RESTORING, _Z.ENDED, "SlotResized"),
)

TABLES: Final = {
    "auction": AUCTION,
    "voting": VOTING,
    "confirmation": CONFIRMATION,
    "participant": PARTICIPANT,
    "job": JOB,
    "buyer_change": BUYER_CHANGE,
    "seller_change": SELLER_CHANGE,
}
