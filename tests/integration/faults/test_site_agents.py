"""A site answers for all its machines in one stanza, and each machine still stands for itself alone."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ramp.agents import roles
from ramp.agents.sites import Routes, Site
from ramp.errors import EffectFailed
from ramp.model.acl import EncodedMessage, Message, Performative
from ramp.model.contents import CallForProposals, Rejection
from ramp.model.offer import RefusalCode
from ramp.protocol import events as ev
from ramp.xmpp.bundles import BUNDLE_KEY, pack, unpack
from tests.integration.faults import one_process
from tests.integration.faults.one_process import OneProcess, Stanza, in_one_process
from tests.tiny_market import tiny_market

MACHINES = ("alpha", "beta", "gamma", "delta")
PRICES = {name: (60 - 5 * index, 20) for index, name in enumerate(MACHINES)}


def config(*, signed: bool = False) -> str:
    market = '[market]\ndomain = "localhost"\n'
    market += f"signed_offers = {str(signed).lower()}\n"
    return market + tiny_market({"alice": 1_000_000}, prices=PRICES)


class SiteMarket(OneProcess):
    """The machines share a process, so they are a site."""

    def __init__(self, folder: Path, text: str) -> None:
        super().__init__(folder, text)
        self.site = Site()

    def building(self) -> Any:
        return replace(super().building(), site=self.site)

    async def bring_up(self, name: str) -> Any:
        agent = await super().bring_up(name)
        if agent is not None and name in MACHINES:
            type(agent).speaks = property(lambda one: one.host.failure is None)  # there is no connection here
        return agent

    async def buy(self, request_id: str, rounds: int = 1) -> Any:
        """Have a request auctioned; returns the outcome."""
        command = ev.RequestSubmitted(request_id, self.request(units=1), ev.AuctionOptions(rounds=rounds))
        await self.agents["alice"].command(command)
        assert await self.run(lambda: self.outcome(request_id) is not None)
        return self.outcome(request_id)

    def stanzas(self, performatives: Sequence[str]) -> list[Stanza]:
        return [each for each in self.sent if each.metadata["performative"] in performatives]

    def answered(self, outcome: Any) -> set[str]:
        """Who has made an offer, or refused in his own words."""
        first = outcome.rounds[0]
        refused = {each.resource for each in first.refusals if each.refusal.code is not RefusalCode.NO_ANSWER}
        return refused | {offer.resource for offer in first.offers}


def in_market(
    folder: Path, monkeypatch: pytest.MonkeyPatch, scenario: Callable[[SiteMarket], Any], text: str = ""
) -> Any:
    monkeypatch.setattr(one_process, "NAMES", ("directory", "bank", "keeper", *MACHINES, "alice"))
    monkeypatch.setattr(one_process, "OneProcess", SiteMarket)
    return in_one_process(folder, scenario, text or config())


CALLS = (Performative.CFP.value,)
ANSWERS = (Performative.PROPOSE.value, Performative.REFUSE.value)


@pytest.mark.parametrize("signed", [False, True])
def test_after_the_first_auction_calls_and_offers_are_one_stanza_each(tmp_path, monkeypatch, signed):
    async def scenario(market: SiteMarket) -> None:
        first = await market.buy("first")
        assert first.status == "committed"
        assert len(market.stanzas(CALLS)) == len(market.stanzas(ANSWERS)) == len(MACHINES)
        market.sent.clear()
        second = await market.buy("second")
        assert second.status == "committed"
        (call,) = market.stanzas(CALLS)
        assert BUNDLE_KEY in call.metadata
        assert {part.peer for part in unpack(EncodedMessage(call.sender, call.body, call.metadata, call.thread))} == {
            f"{name}@localhost" for name in MACHINES
        }
        (answer,) = market.stanzas(ANSWERS)
        assert answer.sender == call.receiver
        assert market.answered(second) == {f"{name}@localhost" for name in MACHINES}
        assert all(
            ("signature" in part.metadata) is signed
            for part in unpack(EncodedMessage(answer.sender, answer.body, answer.metadata, answer.thread))
        )
        assert not any("bundle" in line or "dropped" in line for line in market.complaints)

    in_market(tmp_path, monkeypatch, scenario, config(signed=signed))


def test_a_buyer_can_read_the_first_offers_of_a_large_bundle_while_the_others_are_made(tmp_path, monkeypatch):
    monkeypatch.setattr(roles, "CALLS_TOGETHER", 3)

    async def scenario(market: SiteMarket) -> None:
        await market.buy("first")
        assert all(each.metadata["site"] == market.site.spokesman for each in market.stanzas(ANSWERS)[1:])
        market.sent.clear()
        outcome = await market.buy("second")
        assert len(market.stanzas(CALLS)) == 1
        bundle, alone = (
            unpack(EncodedMessage(each.sender, each.body, each.metadata, each.thread))
            for each in market.stanzas(ANSWERS)
        )
        assert (len(bundle), len(alone)) == (3, 1)
        assert not any("site" in each.metadata for each in (*bundle, *alone)), "read only where it comes from a machine"
        assert market.answered(outcome) == {f"{name}@localhost" for name in MACHINES}

    in_market(tmp_path, monkeypatch, scenario)


def test_one_machines_fault_stays_its_own(tmp_path, monkeypatch):
    """A machine whose agent ends of the call is restarted; the offers of the others are there all the same."""

    async def scenario(market: SiteMarket) -> None:
        await market.buy("first")
        agent: Any = market.agents["gamma"]

        def full(*_: object) -> None:
            raise EffectFailed("gamma", "QuoteSlots", "the disk is full")

        agent.host.deliver = full
        outcome = await market.buy("second")
        assert outcome.status == "committed"
        assert [name for name, _ in market.ended] == ["gamma"]
        others = {f"{name}@localhost" for name in MACHINES if name != "gamma"}
        assert market.answered(outcome) >= others
        assert (await market.buy("third")).status == "committed"

    in_market(tmp_path, monkeypatch, scenario)


def test_where_the_spokesman_is_gone_machines_are_called_themselves(tmp_path, monkeypatch):
    """Nothing says so (no bounce): what gets no answer is sent again to each machine, and the auction goes on."""

    async def scenario(market: SiteMarket) -> None:
        await market.buy("first")
        spokesman = market.site.spokesman
        (call_name, _, _) = spokesman.partition("@")
        agent = market.agents.pop(call_name)
        market.site.leave(spokesman, agent)
        command = ev.RequestSubmitted("second", market.request(units=1), ev.AuctionOptions(rounds=1))
        await market.agents["alice"].command(command)
        assert await market.run(lambda: market.outcome("second") is not None, revive=False)
        outcome = market.outcome("second")
        assert outcome.status == "committed"
        assert market.answered(outcome) == {f"{name}@localhost" for name in MACHINES} - {spokesman}

    in_market(tmp_path, monkeypatch, scenario)


def test_nobody_speaks_for_a_machine_that_has_not_named_him(tmp_path, monkeypatch):
    async def scenario(market: SiteMarket) -> None:
        await market.buy("first")
        alice: Any = market.agents["alice"]
        taken: list[str] = []
        alice.take_in = lambda message, *_: taken.append(message.peer)
        some = [
            EncodedMessage(f"{name}@localhost", "<Proposal/>", {"performative": "propose"}, "c") for name in MACHINES
        ]
        await alice.on_bundle("mallory@localhost", some)
        assert not taken
        assert "not named by it" in market.complaints[-1]
        await alice.on_bundle(market.site.spokesman, [*some, replace(some[0], peer="other@localhost")])
        assert taken == [f"{name}@localhost" for name in MACHINES]

    in_market(tmp_path, monkeypatch, scenario)


def test_what_does_not_belong_into_a_bundle_is_dropped(tmp_path, monkeypatch):
    """Not even a well-formed acceptance is taken from a bundle, and nobody but users and sites reads one."""

    async def scenario(market: SiteMarket) -> None:
        await market.buy("first")
        (accepted,) = market.stanzas(["accept-proposal"])
        market.sent.clear()
        inner = EncodedMessage("alpha@localhost", accepted.body, accepted.metadata, accepted.thread)
        good = pack("alpha@localhost", [inner])
        for receiver in ("alpha", "alice", "bank", "directory"):
            agent: Any = market.agents[receiver]
            before = agent.dropped
            another = replace(good, metadata={**good.metadata, BUNDLE_KEY: "9"})
            for bundle in (good, replace(good, body="{}"), another):
                await agent.on_message(replace(bundle, peer="alice@localhost"))
            assert agent.dropped == before + 3, receiver
        assert not market.sent

    in_market(tmp_path, monkeypatch, scenario)


# -- the routes alone --------------------------------------------------------------------------------------------


def call(machine: str, content: Any) -> Message:
    return Message(Performative.CFP, "alice@a", machine, "r", content)


def test_routes_are_within_a_domain_and_of_canonical_names() -> None:
    routes = Routes()
    for site in ("x@b", "X@a", "a", "", "x@a/y"):
        routes.learn("m@a", site)
    assert not any(routes.speaks_for(site, "m@a") for site in ("x@b", "X@a", "a", "", "x@a/y"))
    routes.learn("m@a", "x@a")
    assert routes.speaks_for("x@a", "m@a")


def grouped(routes: Routes, messages: list[Message]) -> list[tuple[str, list[str]]]:
    waiting = deque(messages)
    found = []
    while waiting:
        found += [(receiver, [each.receiver for each in some]) for receiver, some in routes.next_together(waiting)]
    return found


def test_calls_go_together_once_and_then_straight() -> None:
    routes = Routes()
    for machine in ("m1@a", "m2@a", "s@a"):
        routes.learn(machine, "s@a")
    content = CallForProposals("r", 1, None)  # type: ignore[arg-type]
    calls = [call(machine, content) for machine in ("m1@a", "n@a", "m2@a", "s@a")]
    assert grouped(routes, calls) == [("s@a", ["m1@a", "m2@a", "s@a"]), ("n@a", ["n@a"])]
    assert grouped(routes, calls[:1]) == [("m1@a", ["m1@a"])], "sent again, it goes to the machine itself"
    next_round = CallForProposals("r", 2, None)  # type: ignore[arg-type]
    assert grouped(routes, [call(each.receiver, next_round) for each in calls]) == [
        ("m1@a", ["m1@a"]), ("n@a", ["n@a"]), ("s@a", ["m2@a", "s@a"])
    ]  # fmt: skip


def test_what_somebody_relies_on_goes_by_itself_and_in_its_order() -> None:
    routes = Routes()
    for machine in ("m1@a", "m2@a"):
        routes.learn(machine, "s@a")
    lost = Rejection("r", "o", "lost")
    promised = Message(Performative.ACCEPT_PROPOSAL, "alice@a", "m1@a", "r", None)  # type: ignore[arg-type]
    waiting = [call("m1@a", lost), call("m2@a", lost), promised, call("m1@a", lost)]
    assert grouped(routes, waiting) == [
        ("s@a", ["m1@a", "m2@a"]), ("m1@a", ["m1@a"]), ("m1@a", ["m1@a"])
    ]  # fmt: skip


def test_a_bounce_ends_all_routes_through_an_agent() -> None:
    routes = Routes()
    routes.learn("m1@a", "s@a")
    routes.learn("m2@a", "other@a")
    routes.unreachable("s@a")
    assert not routes.speaks_for("s@a", "m1@a")
    assert routes.speaks_for("other@a", "m2@a")
