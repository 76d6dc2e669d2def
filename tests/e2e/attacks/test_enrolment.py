"""Joining under attack over XMPP: invitations used twice, edited, revoked, expired, asked for other names, and floods.

The office is asked by accounts of the market's server that nobody has certified. What an invitation is good for comes
from docs/joining.md: one name, one role, one key, until its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import replace

import pytest
from certified import Party, fresh
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from rogue import LIMIT_S, door
from standing import restarts, standing
from swarm_market import SHORT_TIMING, in_hours, unit, until

from ramp.cli.main import main
from ramp.model.acl import Performative
from ramp.model.contents import EnrolmentGranted, RequestRefused
from ramp.runtime.joining.invitations import read_invitation
from ramp.runtime.joining.requests import make_request

pytestmark = [pytest.mark.e2e, pytest.mark.full]

PER_SENDER = 30
"""Requests of one sender that the office looks at in a minute; each test here sends fewer, but for the flood."""

FLOOD = 600


@pytest.fixture(scope="module")
def market(module_market, kind):
    market = module_market(
        kind=kind,
        users={"alice": 1_000_000},
        per_process=4,
        accounts=["mallory", "flooder"],
        timing={**SHORT_TIMING, "lease_s": 30},  # who is listed must not depend on how busy the computer is
    )
    office = f"[enrolment]\nattempts_per_minute = 120\nattempts_per_sender_per_minute = {PER_SENDER}\n"
    market.config.write_text(market.config.read_text("utf-8") + office, "utf-8")
    market.up()
    market.wait_ready()
    return market


@pytest.fixture
def ramp(market, capsys):
    """Runs a verb of the market's keeper; what it prints."""

    def run(*arguments):
        capsys.readouterr()
        assert main([*arguments, "--state-dir", str(market.state.path)]) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture
def invited(ramp):
    """`invited("ann")`: the keeper's invitation of a user whose account at the market's own server he has made."""

    def invite(name):
        options = ("--deposit", "100", "--no-account-token", "--token")
        return read_invitation(ramp("invite", "--role", "user", f"{name}@localhost", *options))

    return invite


@pytest.fixture
async def enter(market, rogues):
    """`await enter("mallory")`, or with an invitation's password: a party without a certificate, logged in."""
    inside = []

    async def let_in(account, password=None):
        end = time.monotonic() + LIMIT_S
        while True:  # the server is given the accounts of the invited within a second
            try:
                rogue = await rogues(door(market), account, password)
                break
            except PermissionError:
                assert time.monotonic() < end, f"{account} is never let in"
        inside.append(Party(market, rogue, account, None))
        return inside[-1]

    yield let_in
    for party in inside:
        party.leave()


@contextlib.asynccontextmanager
async def unharmed(market):
    """For attacks that must leave no trace: books, listings, restarts and the register of invitations stay."""
    before, register = await asyncio.to_thread(standing, market), market.state.invitations.read_bytes()
    yield
    assert not before.changes(await asyncio.to_thread(standing, market))
    assert market.state.invitations.read_bytes() == register


def key():
    return ec.generate_private_key(ec.SECP256R1())


async def answered(party, asked):
    """What the office says to a request: the certificate, or the code with which it refuses."""
    conversation_id = fresh("enrolment")
    await party.tell(Performative.REQUEST, "enrolment", asked, conversation_id)
    answer = await party.answer(conversation_id)
    assert answer.seal is not None
    assert answer.seal.signer == "enrolment@localhost"
    content = answer.content
    assert isinstance(content, EnrolmentGranted | RequestRefused), content
    return content.certificate if isinstance(content, EnrolmentGranted) else content.code


def account_of(market, name):
    return standing(market).balances.get(f"{name}@localhost")


async def account_opened(market, name):
    """The bank opens the account of who has enrolled, with the 100 credits of the invitation, soon and by itself."""
    await asyncio.to_thread(until, lambda: account_of(market, name) == (100_00, 0), f"the account of {name} is open")


async def test_an_invitation_is_good_for_one_key(market, invited, enter, ramp):
    """The same request gets the same certificate, whoever brings it; another key is refused; one account is opened."""
    invitation = invited("ann")
    ann = await enter("ann", invitation.account_password)
    asked, stolen = make_request(invitation, key(), None), make_request(invitation, key(), None)
    issued = await answered(ann, asked)
    (identity,) = (
        x509.load_pem_x509_certificate(issued.encode())
        .extensions.get_extension_for_class(x509.SubjectAlternativeName)
        .value.get_values_for_type(x509.UniformResourceIdentifier)
    )
    assert identity == "xmpp:ann@localhost"
    mallory = await enter("mallory")
    for party in (ann, mallory):
        assert await answered(party, asked) == issued
        assert await answered(party, stolen) == "other_key"
    await account_opened(market, "ann")
    assert await answered(ann, asked) == issued
    ramp("invite", "revoke", "ann@localhost", "--reason", "left")
    for asks in (asked, stolen):
        assert await answered(mallory, asks) == "revoked"
    assert account_of(market, "ann") == (100_00, 0)


async def test_a_flood_is_not_looked_at_and_others_are_served(market, invited, enter):
    """One account asks 600 times for invitations that there are not: few answers, one line of log, nothing grows."""
    invitation = invited("guy")
    flooder = await enter("flooder")
    junk = make_request(invitation, key(), None)
    begun = time.monotonic()
    async with unharmed(market):
        for number in range(FLOOD):
            asked = replace(junk, invitation_id=f"invitation-{number:016x}")
            await flooder.tell(Performative.REQUEST, "enrolment", asked, f"flood-{number}")
        await flooder.is_read_by("enrolment")
        minutes = 1 + int((time.monotonic() - begun) // 60)
        refused = [each for each in flooder.heard if isinstance(each.content, RequestRefused)]
        assert 0 < len(refused) <= PER_SENDER * (minutes + 1)
    lines = [line for path in market.state.logs.glob("*.log") for line in path.read_text().splitlines()]
    assert len([line for line in lines if "refused a request of flooder@localhost" in line]) <= minutes + 1
    guy = await enter("guy", invitation.account_password)
    assert (await answered(guy, make_request(invitation, key(), None))).startswith("-----BEGIN CERTIFICATE")
    outcome = await asyncio.to_thread(market.buy, "alice", fresh("request"), [unit(1, 8, in_hours(1))])
    assert outcome["status"] == "committed", outcome
    assert set(restarts(market).values()) == {0}
