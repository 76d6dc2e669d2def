"""The XMPP part of `ramp join`: registers the account, and requests the certificate from the enrolment office."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, NoReturn

from ramp.agents.party_agent import PartyAgent
from ramp.errors import EnrolmentRefused, SealInvalid, TransportError
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Signed
from ramp.model.contents import EnrolmentGranted, EnrolmentRequest, NotUnderstood, RequestRefused
from ramp.model.instant import MINUTE, SECOND, Duration, Instant
from ramp.protocol.enrolment.applicant import Applicant
from ramp.protocol.progress import Progress, QueryAnswered
from ramp.protocol.timing import Timing
from ramp.rfql.signing.certificates import Trust
from ramp.rfql.signing.notary import PublicNotary
from ramp.runtime.clock import SystemClock
from ramp.runtime.host import Ports
from ramp.runtime.joining.invitations import Invitation
from ramp.runtime.joining.membership import AccountPlace, market_account
from ramp.xmpp.behaviour import Courier, behaviour
from ramp.xmpp.link import TransportSettings
from ramp.xmpp.registering import register_account

ANSWER_LIMIT: Final[Duration] = 2 * MINUTE
"""Time limit for the office's answer."""

CONNECT_LIMIT_S: Final = 60.0
"""Timeout of the log-in to the market's server in seconds."""


class NamelessNotary(PublicNotary):
    """The notary of a party without a certificate: verifies signatures, but cannot sign."""

    def sign(self, signed: Signed, now: Instant) -> NoReturn:
        raise SealInvalid("cannot sign without a certificate")

    def seal(self, message: Message, now: Instant) -> NoReturn:
        raise SealInvalid("cannot seal without a certificate")


class ApplicantAgent(PartyAgent):
    """Requests one certificate from a market's enrolment office, with an account from the market's keeper.

    Attributes:
        answer: the office's answer, or a timeout.
    """

    behaviours_served: ClassVar[tuple[type[Courier], ...]] = (
        behaviour("EnrolmentAnswers", Performative.INFORM, Performative.REFUSE),
    )

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self.answer: asyncio.Future[QueryAnswered] = asyncio.get_running_loop().create_future()
        super().__init__(*args, **keywords)

    def watch(self, progress: Progress) -> None:
        if isinstance(progress, QueryAnswered) and not self.answer.done():
            self.answer.set_result(progress)


def register(place: AccountPlace, password: str, token: str) -> None:
    """Register an account with a token of its server's owner, or check that it exists with this password.

    Raises:
        TransportError: the server cannot be reached, is not trusted, or refuses the account.
    """
    with _authority(place.server_ca) as ca_file:
        address = f"{place.name}@{place.domain}"
        logging.getLogger("slixmpp").setLevel(logging.CRITICAL)  # the error is enough
        asyncio.run(register_account(address, password, token, place.servers, ca_file))


def apply(invitation: Invitation, request: EnrolmentRequest, password: str) -> EnrolmentGranted:
    """Request a certificate with the account of an invitation, and wait for the answer.

    Raises:
        EnrolmentRefused: the office refuses.
        TransportError: the log-in to the market's server fails, or the office does not answer in time.
    """
    with _authority(invitation.server_ca) as ca_file:
        return asyncio.run(_apply(invitation, request, password, ca_file))


@contextlib.contextmanager
def _authority(pem: str) -> Iterator[Path | None]:
    with tempfile.TemporaryDirectory(prefix="ramp-join-") as folder:
        ca_file = None
        if pem:
            ca_file = Path(folder) / "server-ca.pem"
            ca_file.write_text(pem)
        yield ca_file


async def _apply(
    invitation: Invitation, request: EnrolmentRequest, password: str, ca_file: Path | None
) -> EnrolmentGranted:
    servers = market_account(invitation).servers
    name = f"{invitation.account}@{invitation.market}"
    office = f"{invitation.enrolment}@{invitation.market}"
    agent = ApplicantAgent(
        name,
        password,
        TransportSettings(servers=servers, ca_file=ca_file),
        party=Applicant(name, office=office, request=request, timing=Timing(query_limit=ANSWER_LIMIT)),
        ports=partial(Ports, notary=NamelessNotary(Trust((invitation.ca_certificate,)))),
        clock=SystemClock(),
    )
    where = ", ".join(invitation.servers)
    try:
        try:
            await asyncio.wait_for(agent.start(), CONNECT_LIMIT_S)
        except TimeoutError:
            raise TransportError(f"cannot reach the market's XMPP server at {where}") from None
        answered = (await asyncio.wait_for(agent.answer, 2 * ANSWER_LIMIT / SECOND)).answer
    finally:
        await agent.stop()
    if isinstance(answered, EnrolmentGranted):
        return answered
    if isinstance(answered, RequestRefused):
        raise EnrolmentRefused(answered.code, answered.detail)
    if isinstance(answered, NotUnderstood):
        raise TransportError(f"{office} cannot read the request: {answered.reason}")
    raise TransportError(f"{office} does not answer; use `--request FILE` to send a request by other means")
