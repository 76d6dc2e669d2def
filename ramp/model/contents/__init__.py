"""Contents of the market's messages, as typed values; `ramp.rfql` turns them into XML and back.

Each declares its performatives and roles (`ramp.model.communicative_acts`), from which `ramp.model.acl` derives tables.
"""

from __future__ import annotations

from ramp.model.communicative_acts import Content
from ramp.model.contents.accounts import (
    AccountLine,
    AccountQuery,
    AccountStatement,
    ClockQuery,
    ClockReading,
    DepositMade,
    DepositOrder,
    MarketOverview,
    OverviewQuery,
    RefundOrder,
    StatementLine,
    TradeLine,
    TransferKind,
)
from ramp.model.contents.auction import Bid, CallForProposals, Proposal, Rejection
from ramp.model.contents.changes import (
    ChangeAgreed,
    ChangeCall,
    ChangeDone,
    ChangePosted,
    ChangePriced,
    ChangeRefused,
    ChangeWithdrawal,
    SlotMoved,
    SlotMoveHeard,
)
from ramp.model.contents.commitment import (
    Acceptance,
    Commitment,
    Confirmed,
    HoldCancelled,
    HoldGranted,
    HoldRefused,
    Settled,
)
from ramp.model.contents.directory import (
    Deregistration,
    DirectoryListing,
    DirectoryQuery,
    MachineQuery,
    MachineStatus,
    Registered,
    Registration,
    UnfitAgent,
)
from ramp.model.contents.enrolment import (
    EnrolmentGranted,
    EnrolmentRequest,
    RevocationNotice,
    RevocationQuery,
)
from ramp.model.contents.jobs import (
    JobCancellation,
    JobInputPiece,
    JobOrder,
    JobOutput,
    JobOutputQuery,
    JobPeer,
    JobQuery,
    JobRefused,
    JobStatus,
    JobVariable,
)
from ramp.model.contents.misunderstanding import NotUnderstood, RequestRefused, Unverified
from ramp.model.contents.orders import (
    FundsReserved,
    OrderLine,
    OrderPosted,
    OrderRefused,
    OrderState,
    OrderVoided,
    OrderWithdrawal,
    PaymentMade,
    PaymentOrder,
    PaymentQuery,
    PaymentRefused,
)
