"""Requests of an owner to its agent: one frozen dataclass a verb, and `VERBS`, the table of all.

Instants and durations are integers of microseconds, amounts integers of minor units, as everywhere in the model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ramp.control.market_changes import OWNER_VERBS, OwnerRequest
from ramp.model.contents import JobOrder
from ramp.model.instant import DAY, Duration, Instant
from ramp.model.services import RESOURCE_SERVICE
from ramp.protocol.events import AuctionOptions

HORIZON_DEFAULT: Final[Duration] = DAY
"""Default period of a machine's projected load."""


@dataclass(frozen=True, slots=True)
class Hello:
    """The first line of every connection: which version of the table the client speaks."""

    version: int


@dataclass(frozen=True, slots=True)
class Submit:
    """Auction a request, and buy the best offers unless the options say otherwise.

    Attributes:
        document: the request for quotation, RFQL as text.
        request_id: the client's own id, by which it may ask again; empty for a new one.
        options: how it is auctioned.
    """

    document: str
    request_id: str = ""
    options: AuctionOptions = field(default_factory=AuctionOptions)


@dataclass(frozen=True, slots=True)
class Approve:
    """The owner's answer to `ApprovalAsked`, in the middle of `Submit` or `Watch`."""

    approved: bool


@dataclass(frozen=True, slots=True)
class Watch:
    """Follow a request until it ends; without an id all requests, until the connection closes."""

    request_id: str = ""


EVERYTHING: Final = Watch()
"""Events of all requests of this user; only a refusal ends the answer."""


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Withdraw a running request; without effect once it is decided."""

    request_id: str


@dataclass(frozen=True, slots=True)
class ListRequests:
    """List all requests of this user with their states."""


@dataclass(frozen=True, slots=True)
class ShowRequest:
    """Show a request that has ended, with its rounds."""

    request_id: str


@dataclass(frozen=True, slots=True)
class ListAgreements:
    """List all agreements with their states."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel a bought unit."""

    agreement_id: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Resize:
    """Resize a bought slot, or preview the refund or cost.

    Attributes:
        agreement_id: agreement of the slot.
        cores: new number of cores; None for no change.
        until: new end; None for no change.
        quote_only: only preview.
        price: maximum price of an addition, credits per core hour; None for the limit of the request.
        max_cost: maximum total cost of an addition, minor units; None for no limit.
        together: further agreements to enlarge in the same way, all or none, paid by one order.
    """

    agreement_id: str
    cores: int | None = None
    until: Instant | None = None
    quote_only: bool = False
    price: int | None = None
    max_cost: int | None = None
    together: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Launch:
    """Order a job on something bought; the same order again gets the same answer."""

    order: JobOrder


@dataclass(frozen=True, slots=True)
class ListJobs:
    """List all jobs with their last known states."""


@dataclass(frozen=True, slots=True)
class AskJob:
    """Ask the resource for the state of a job."""

    job_id: str


@dataclass(frozen=True, slots=True)
class CancelJob:
    """Ask the resource to cancel a job."""

    job_id: str


@dataclass(frozen=True, slots=True)
class AskJobOutput:
    """Ask the resource for a piece of a job's output: of a stream, a file or the list of files, from an offset on."""

    job_id: str
    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class SendJobInput:
    """Send the resource a piece of the archive of inputs of a job that will be ordered; `data` is in base64."""

    job_id: str
    agreement_id: str
    offset: int
    data: str


@dataclass(frozen=True, slots=True)
class AskAccount:
    """Ask the bank for the balance; with a first or last instant also for the postings between them."""

    since: Instant | None = None
    until: Instant | None = None


@dataclass(frozen=True, slots=True)
class AskMachine:
    """Ask a resource, by its local or full name, for the state of its machine."""

    resource: str
    horizon: Duration = HORIZON_DEFAULT


@dataclass(frozen=True, slots=True)
class AskResources:
    """Ask the directory for the parties of a service, by default the resources that sell."""

    service: str = RESOURCE_SERVICE


@dataclass(frozen=True, slots=True)
class Deposit:
    """The keeper credits an account; the same `deposit_id` is credited once, an empty one is made anew."""

    account: str
    amount: int
    memo: str = ""
    deposit_id: str = ""


@dataclass(frozen=True, slots=True)
class OrderRefund:
    """The keeper refunds what is left of an agreement's payments, once."""

    agreement_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class AskOverview:
    """The keeper asks for every account and all trading."""

    since: Instant | None = None
    until: Instant | None = None


UserRequest = (
    Submit
    | Watch
    | Withdraw
    | ListRequests
    | ShowRequest
    | ListAgreements
    | Cancel
    | Resize
    | Launch
    | ListJobs
    | AskJob
    | CancelJob
    | AskJobOutput
    | SendJobInput
    | AskAccount
    | AskMachine
    | AskResources
)
"""Requests of a user to its User Agent."""

KeeperRequest = Deposit | OrderRefund | AskOverview
"""Requests of the market's keeper to its agent."""

Request = Hello | Approve | UserRequest | KeeperRequest | OwnerRequest

VERBS: Final[dict[str, type[Request]]] = {
    "hello": Hello,
    "submit": Submit,
    "approve": Approve,
    "watch": Watch,
    "withdraw": Withdraw,
    "requests": ListRequests,
    "request": ShowRequest,
    "agreements": ListAgreements,
    "cancel": Cancel,
    "resize": Resize,
    "launch": Launch,
    "jobs": ListJobs,
    "job": AskJob,
    "cancel_job": CancelJob,
    "job_output": AskJobOutput,
    "job_input": SendJobInput,
    "account": AskAccount,
    "machine": AskMachine,
    "resources": AskResources,
    "deposit": Deposit,
    "refund": OrderRefund,
    "overview": AskOverview,
    **OWNER_VERBS,
}
"""Every request by its name on the wire."""
