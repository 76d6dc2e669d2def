"""What of an order to take cores back is written down, as `ramp changes` shows it: whatever may have been done."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ramp.agents.changing import Changing
from ramp.agents.group_calls import GroupCall
from ramp.control.market_changes import MarketChanged, ReclaimCores
from ramp.control.status import AgentStatus
from ramp.errors import MarketRefused, NotAnswered, RampError, TransportError
from ramp.runtime.changes.audit_log import lines_of
from ramp.runtime.changes.overlay import new_overlay
from ramp.runtime.clock import SystemClock
from ramp.runtime.config import SwarmConfig
from ramp.runtime.state_folder import StateFolder

MARKET = """
[[users]]
name = "alice"
[machines.small]
cores = 64
plugin = "steady"
[[resources]]
name = "north"
machine = "small"
start_price = 30
minimum_price = 10
"""


class Selling:
    """Agents of which the resource answers as it is told."""

    def __init__(self, answer: tuple[list[str], list[str]] | RampError) -> None:
        up = {"bank": "bank", "north": "resource"}
        self.agents = {name: AgentStatus(name, kind, 7, "ready", "", 0, "", is_up=True) for name, kind in up.items()}
        self._answer = answer

    async def call(self, asked: GroupCall) -> tuple[list[str], list[str]]:
        if isinstance(self._answer, RampError):
            raise self._answer
        return self._answer

    def kill(self, name: str) -> None:
        pass

    async def give_account(self, name: str) -> None:
        pass

    def configure(self, config: SwarmConfig) -> None:
        pass

    async def launch(self, name: str) -> AgentStatus:
        return self.agents[name]

    async def settled(self, name: str) -> AgentStatus:
        return self.agents[name]

    async def end(self, name: str) -> None:
        pass


class Owner:
    """Whoever gives the order, and reads afterwards what was written down."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "market.toml"
        self._path.write_text(MARKET)
        self._state = StateFolder(folder / "state")
        self._state.prepare()

    def reclaims(self, answer: tuple[list[str], list[str]] | RampError) -> MarketChanged:
        overlay = new_overlay(MARKET, self._path)
        changing = Changing(Selling(answer), overlay.config(self._path), overlay, self._state, SystemClock())
        return asyncio.run(changing.perform(ReclaimCores("north", "offer-1", 4), "somebody"))

    @property
    def lines(self) -> list[tuple[str, str, str]]:
        return [(each.verb, each.name, each.what) for each in lines_of(self._state)]


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    return Owner(tmp_path)


def test_what_is_on_record_at_the_bank_is_written_down(owner: Owner) -> None:
    owner.reclaims(([], ["a1 has 4 cores from then on"]))
    assert owner.lines == [("resource reclaim", "north", "north takes cores back: a1 has 4 cores from then on")]


@pytest.mark.parametrize(
    ("answer", "known"),
    [
        ((["no_answer: the bank is silent"], ["it is asked"]), ["it is asked", "no_answer: the bank is silent"]),
        (NotAnswered("its process has ended"), ["its process has ended", "no_answer"]),
    ],
)
def test_what_may_be_done_yet_is_written_down_too_and_told_as_not_known(
    owner: Owner, answer: tuple[list[str], list[str]] | RampError, known: list[str]
) -> None:
    unknown = f"nobody knows yet whether north takes cores of offer-1 back: {known[0]}"
    with pytest.raises(MarketRefused, match=f"^{unknown}: {known[1]}$") as refused:
        owner.reclaims(answer)
    assert refused.value.exit_code == 1
    assert owner.lines == [("resource reclaim", "north", unknown)]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((["below_minimum: it leaves 1"], []), "north takes nothing of offer-1 back: below_minimum: it leaves 1"),
        (TransportError("north is not up, or sells nothing"), "north is not up, or sells nothing"),
    ],
)
def test_what_was_never_begun_is_not(owner: Owner, answer: tuple[list[str], list[str]] | RampError, said: str) -> None:
    with pytest.raises(RampError) as refused:
        owner.reclaims(answer)
    assert said in str(refused.value)
    assert owner.lines == []
