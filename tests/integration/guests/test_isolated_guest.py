"""Guests in real processes that raise, hang, exit, print, answer nonsense or a gigabyte, fork, and ignore signals.

Every question is answered, a process that has failed is gone with all that it has started, and a mended guest is back.
"""

import asyncio
import dataclasses
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import psutil
import pytest

from ramp.agents.guests.isolated import GuestPorts, IsolatedGuest
from ramp.agents.guests.messages import Opening
from ramp.agents.guests.process import MARK, GuestProcess, environment_of
from ramp.errors import ConfigurationError, PluginError
from ramp.model.instant import HOUR, SECOND
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.slot import Reservation, Slot
from ramp.plugins.interface import PluginSettings
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.pricing import PriceQuestion, PriceRefusal
from ramp.runtime.clock import SystemClock
from ramp.runtime.configuration.values import PLUGIN_GROUP, PRICING_GROUP, GuestLimits
from ramp.runtime.guests import health
from ramp.runtime.guests.health import GuestHealth
from ramp.runtime.guests.questions import OUT_OF_MEMORY
from tests.integration.guests.guest_package import MODULE, MoodyPackage
from tests.waiting import LIMIT_S, soon

BEGIN = SystemClock().now() + HOUR
UNIT = RequestUnit(1, 70, BEGIN + HOUR, TotalCores(16), not_before=BEGIN, wall_time=HOUR)
LIMITS = GuestLimits(*[300 * SECOND] * 5)
"""Nothing that works takes so long, however busy the machine is."""

SHORT = GuestLimits(quote=SECOND, price=SECOND, change=SECOND, snapshot=SECOND, open=15 * SECOND)
"""For what hangs, which is waited for so long."""


class Agent:
    """What an agent is to its guest."""

    def __init__(self, package: MoodyPackage, folder: Path, limits: GuestLimits = LIMITS, **settings: Any) -> None:
        self.package = package
        self.clock = SystemClock()
        self.answers: asyncio.Queue[ev.Answer] = asyncio.Queue()
        self.told: list[str] = []
        self.printed: list[str] = []
        self.source = ""
        self.health = GuestHealth("plug-in", lambda progress: self.told.append(progress.reason))  # type: ignore[union-attr]
        self._folder = folder
        self._settings = settings
        self._limits = limits
        self.guest = self._new(Opening(PLUGIN_GROUP, "moody", f"{MODULE}:Moody", self._plugin_settings()))

    def _plugin_settings(self) -> PluginSettings:
        return PluginSettings("m1", 64, 1, BEGIN, self._settings, self._folder)

    def _new(self, opening: Opening) -> IsolatedGuest:
        return IsolatedGuest(
            opening,
            {**environment_of(os.environ), **self.package.environment},
            self.health,
            GuestPorts("", self._limits, self.clock.now, self._deliver, self._say, lambda _: None),
        )

    def _say(self, _guest: str, line: str) -> None:
        self.printed.append(line)

    def price_instead(self) -> None:
        self.guest = self._new(Opening(PRICING_GROUP, "moody", f"{MODULE}:price", None))

    def open_instead(self, value: str) -> None:
        self.guest = self._new(Opening(PLUGIN_GROUP, "moody", value, self._plugin_settings()))

    def _deliver(self, answer: ev.Answer) -> None:
        if isinstance(answer, ev.MachineOpened):
            self.source = answer.source
        else:
            self.answers.put_nowait(answer)

    async def __aenter__(self) -> Self:
        self.guest.begin()
        try:
            await self.guest.opened()  # or, on a busy computer, it takes longer
        except Exception:
            await self.guest.stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.guest.stop()

    @property
    def warden(self) -> psutil.Process:
        assert self.guest.pid is not None
        return psutil.Process(self.guest.pid)

    async def ask(self, question: Any) -> Any:
        now = self.guest.ask(question, self.clock.now())
        return now if now is not None else await asyncio.wait_for(self.answers.get(), LIMIT_S)

    async def quote(self) -> Slot | Refusal:
        answer = await self.ask(fx.QuoteSlots("c", (UNIT,)))
        assert answer.call_id == "c"
        return answer.answers[0]

    async def hold(self, key: str) -> Any:
        slot = await self.quote()
        assert isinstance(slot, Slot), slot
        return (await self.ask(fx.HoldSlot(key, UNIT, slot, BEGIN))).answer

    async def look_up(self, key: str) -> Any:
        """What the machine has, as soon as it says so."""
        return await self.until(lambda: self.ask(fx.LookUpSlot(key)), lambda answer: not in_doubt(answer.answer))

    async def until(self, ask: Callable[[], Any], is_right: Callable[[Any], bool]) -> Any:
        async with asyncio.timeout(LIMIT_S):
            while not is_right(answer := await ask()):
                await asyncio.sleep(0.05)
        return getattr(answer, "answer", answer)

    async def is_back(self) -> None:
        """Wait until quotes are quotes again, and it has said so."""
        await self.until(self.quote, lambda slot: isinstance(slot, Slot))
        assert self.told[-1] == ""
        assert self.health.reason == ""


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "PAUSE_FIRST", SECOND // 10)


def family_of(warden: psutil.Process) -> list[psutil.Process]:
    found = warden.children(recursive=True)
    return found if len(found) >= 4 else []


def in_doubt(answer: Any) -> bool:
    return isinstance(answer, ev.MachineInDoubt)


@pytest.fixture
def agent(moody: MoodyPackage, tmp_path: Path, request: pytest.FixtureRequest) -> Agent:
    how = request.node.callspec.params.get("how", "") if hasattr(request.node, "callspec") else ""
    return Agent(moody, tmp_path, SHORT if "hang" in how or how in HANGING else LIMITS)


async def test_a_guest_that_behaves_sells(agent: Agent) -> None:
    async with agent:
        await soon(lambda: agent.source == "live")
        held = await agent.hold("k")
        assert isinstance(held, Reservation)
        assert (await agent.ask(fx.ConfirmSlot("k"))).answer.firm
        assert (await agent.look_up("k")).reservation_id == held.reservation_id
        snapshot = (await agent.ask(fx.DescribeMachine("s", HOUR))).snapshot
        assert '"reservations":[{' in snapshot
        assert (await agent.ask(fx.ReleaseSlot("k"))) == ev.SlotFreed("k", None)
        assert await agent.look_up("k") is None
    assert agent.told == []


QUOTES = {
    "raise": "ValueError: the parser of sinfo broke",
    "transient": "the batch system is away",
    "unspeakable": "Unspeakable: ",
    "hang": "no answer within 1 s",
    "stubborn": "no answer within 1 s",
    "exit": "its process ended with status 3",
    "die": "its process ended with status 7",
    "scribble": "invalid message (UnicodeDecodeError)",
    "none": "got NoneType",
    "text": "got str",
    "huge": "100000000 characters",
    "backwards": "not after its start",
    "few": "too few cores: got 1, expected at least 16",
    "nul": "has line breaks or hidden characters",
}
HANGING = ("hang", "stubborn")


@pytest.mark.parametrize(
    "how", ["die", *(pytest.param(how, marks=pytest.mark.slow) for how in (*HANGING, "all others in turn"))]
)
async def test_a_quote_that_fails_is_refused_and_the_guest_comes_back(agent: Agent, how: str) -> None:
    async with agent:
        assert isinstance(await agent.quote(), Slot)
        for mood in [how] if how in QUOTES else [each for each in QUOTES if each not in HANGING]:
            agent.package.be(quote=mood)
            before = agent.clock.now()
            refused = await agent.quote()
            assert refused.code is RefusalCode.PLUGIN_FAILED
            await soon(lambda mood=mood: QUOTES[mood] in agent.health.reason)
            at_once = agent.guest.ask(fx.QuoteSlots("c", (UNIT,)), before)  # now its rest may be over
            assert at_once is not None, "it rests"
            assert QUOTES[mood] in at_once.answers[0].detail  # type: ignore[union-attr]
            agent.package.be()
            await agent.is_back()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["hang", "after hang", "others"])
async def test_a_hold_that_fails_is_in_doubt_until_it_is_looked_up(agent: Agent, how: str) -> None:
    async with agent:
        for mood in ("die", "after die", "after raise", "none", "nul", "transient") if how == "others" else (how,):
            agent.package.be(hold=mood)
            assert in_doubt(await agent.hold(mood))
            agent.package.be()
            found = await agent.look_up(mood)
            was_booked = mood.startswith("after") or mood in ("none", "nul")
            assert (found is not None) == was_booked
            assert (await agent.ask(fx.ReleaseSlot(mood))).answer is None
            assert await agent.look_up(mood) is None
            await agent.until(agent.quote, lambda slot: isinstance(slot, Slot))
            again = f"{mood} again"
            assert isinstance(await agent.hold(again), Reservation)
            assert (await agent.ask(fx.ReleaseSlot(again))).answer is None


@pytest.mark.slow
@pytest.mark.parametrize("how", ["hang", "others"])
async def test_a_confirmation_that_fails_is_in_doubt_until_it_is_looked_up(agent: Agent, how: str) -> None:
    async with agent:
        for mood in ("after exit", "raise", "none", "text") if how == "others" else (how,):
            assert isinstance(await agent.hold(mood), Reservation)
            agent.package.be(confirm=mood)
            assert in_doubt((await agent.ask(fx.ConfirmSlot(mood))).answer)
            agent.package.be()
            found = await agent.look_up(mood)
            assert found.firm == (mood in ("after exit", "none", "text"))
            assert (await agent.ask(fx.ConfirmSlot(mood))).answer.firm
            assert agent.health.reason == ""
            assert (await agent.ask(fx.ReleaseSlot(mood))).answer is None


@pytest.mark.slow
@pytest.mark.parametrize("how", ["hang", "others"])
async def test_a_price_that_fails_is_refused_and_the_strategy_comes_back(agent: Agent, how: str) -> None:
    question = fx.PriceSlots("c", (PriceQuestion(70, 70, 20, 0.5), PriceQuestion(70, 70, 30, 0.5)))
    agent.price_instead()
    async with agent:
        assert await agent.ask(question) == ev.SlotsPriced("c", (20, 30))
        for mood in ("raise", "lasting", "word", "negative", "exit") if how == "others" else (how,):
            agent.package.be(price=mood)
            refused = (await agent.ask(question)).prices
            assert [type(each) for each in refused] == [PriceRefusal] * 2
            assert {each.code for each in refused} == {RefusalCode.PLUGIN_FAILED}
            agent.package.be()
            await agent.until(lambda: agent.ask(question), lambda answer: answer.prices == (20, 30))


@pytest.mark.slow
async def test_what_it_prints_does_not_get_among_the_answers(agent: Agent) -> None:
    async with agent:
        agent.package.be(quote="print")
        for _ in range(3):
            assert isinstance(await agent.quote(), Slot)
        await soon(lambda: len(agent.printed) >= 20)
    assert len(agent.printed) == 20
    assert agent.printed[0] == "{}" * 150
    assert agent.printed[1] == "a line of garbage?[2J"
    assert agent.told == []


@pytest.mark.slow
async def test_nothing_that_it_has_started_outlives_it(moody: MoodyPackage, tmp_path: Path) -> None:
    async with Agent(moody, tmp_path, dataclasses.replace(SHORT, quote=3 * SECOND)) as agent:
        warden = agent.warden
        agent.package.be(quote="fork")
        asking = asyncio.create_task(agent.quote())
        family = await soon(lambda: family_of(warden) if len(agent.package.notes()) == 2 else ())
        assert isinstance(await asking, Refusal)
        agent.package.be()
        await agent.is_back()
        assert [each for each in (warden, *family) if each.is_running()] == []


async def test_what_has_escaped_its_warden_ends_as_well(moody: MoodyPackage, tmp_path: Path) -> None:
    """A double fork that kills the warden: it ran its full time, through a dozen restarts of the agent."""
    async with Agent(moody, tmp_path, SHORT) as agent:
        moody.be(quote="escape")
        assert isinstance(await agent.quote(), Refusal)
        moody.be()
        await agent.is_back()
        assert len(carrying_guests(moody)) == 2, "the warden and the guest, and nothing that it had started"
    assert carrying_guests(moody) == []


async def test_what_an_earlier_agent_has_left_behind_ends_before_its_guest_starts(tmp_path: Path) -> None:
    mark = f"left by {tmp_path}"
    left = subprocess.Popen(["sleep", "900"], env={MARK: mark}, start_new_session=True)
    other = subprocess.Popen(["sleep", "900"], env={MARK: f"{mark} not"}, start_new_session=True)
    try:
        started = await GuestProcess.start({**environment_of(os.environ), MARK: mark}, 400, print)
        assert left.wait(LIMIT_S) == -signal.SIGKILL
        assert other.poll() is None
        await started.kill()
    finally:
        other.kill()
        other.wait()


def carrying_guests(package: MoodyPackage) -> list[int]:
    name, value = next(iter(package.environment.items()))
    return [
        each.pid
        for each in psutil.process_iter()
        if each.status() != psutil.STATUS_ZOMBIE and name_in(each, name) == value
    ]


def name_in(process: psutil.Process, name: str) -> str:
    try:
        return process.environ().get(name, "")
    except psutil.Error:
        return ""


@pytest.mark.slow
async def test_everything_ends_with_the_agent(agent: Agent) -> None:
    agent.package.be(quote="fork")
    async with agent:
        warden = agent.warden
        agent.guest.ask(fx.QuoteSlots("c", (UNIT,)), agent.clock.now())
        family = await soon(lambda: family_of(warden))
    assert [each for each in (warden, *family) if each.is_running()] == []


@pytest.mark.slow
async def test_it_has_nothing_of_the_agents(agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMP_PASSWORD", "secret")
    secret = (tmp_path / "secret").open("w")
    with secret:
        os.set_inheritable(secret.fileno(), True)
        async with Agent(agent.package, tmp_path) as other:
            (process,) = other.warden.children()
            assert "RAMP_PASSWORD" not in process.environ()
            opened = {str(link.readlink()) for link in Path(f"/proc/{process.pid}/fd").iterdir()}
    assert [name for name in opened if not name.startswith(("pipe:", "socket:", "/dev/null"))] == []
    assert len([name for name in opened if name.startswith("socket:")]) == 1


OPENINGS = {
    "raise": "it does not open: ValueError: the parser of sinfo broke",
    "transient": "it does not open: the batch system is away",
    "exit": "it does not open: its process ended with status 3",
    "hang": "it does not open within 4 s",
}


@pytest.mark.slow
@pytest.mark.parametrize("how", OPENINGS)
async def test_one_that_does_not_open_is_tried_again(moody: MoodyPackage, tmp_path: Path, how: str) -> None:
    limits = dataclasses.replace(SHORT, open=4 * SECOND) if how == "hang" else LIMITS
    moody.be(open=how)
    async with Agent(moody, tmp_path, limits) as agent:
        refused = await agent.quote()
        assert isinstance(refused, Refusal)
        await soon(lambda: agent.health.reason == OPENINGS[how])
        doubtful = agent.guest.ask(fx.LookUpSlot("k"), agent.clock.now())
        assert doubtful is None, "what may have been promised is asked as soon as it is open"
        agent.package.be()
        assert (await asyncio.wait_for(agent.answers.get(), LIMIT_S)).key == "k"
        assert await agent.look_up("k") is None
        await agent.is_back()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mood", "options", "error", "reason"),
    [
        ("", {"colour": "green"}, ConfigurationError, "colour: is unknown; there is load"),
        ("lasting", {}, PluginError, "that partition is gone"),
    ],
    ids=["options", "for ever"],
)
async def test_one_that_says_it_can_never_be_opened_is_believed(
    moody: MoodyPackage, tmp_path: Path, mood: str, options: dict[str, str], error: type[Exception], reason: str
) -> None:
    moody.be(open=mood)
    with pytest.raises(error, match=reason):
        async with Agent(moody, tmp_path, **options):
            pass


@pytest.mark.slow
async def test_one_that_cannot_be_imported_is_tried_again(agent: Agent) -> None:
    agent.open_instead("moody_absent:Moody")
    async with agent:
        await soon(lambda: len(agent.told) >= 2)
        assert "No module named 'moody_absent'" in agent.health.reason


@pytest.mark.slow
async def test_one_that_ends_by_itself_is_started_again(agent: Agent) -> None:
    async with agent:
        (process,) = agent.warden.children()
        process.kill()
        await soon(lambda: "SIGKILL" in agent.health.reason)
        assert isinstance(await agent.quote(), Refusal)
        await agent.is_back()


@pytest.mark.slow
async def test_questions_wait_in_order_and_not_without_end(moody: MoodyPackage, tmp_path: Path) -> None:
    limits = dataclasses.replace(LIMITS, waiting_max=5)
    async with Agent(moody, tmp_path, limits) as agent:
        slot = await agent.quote()
        assert isinstance(slot, Slot)
        moody.be(quote="slow 0.3")
        now = agent.clock.now()
        for number in range(3):
            assert agent.guest.ask(fx.QuoteSlots(f"q{number}", (UNIT,)), now) is None
        for key in ("k1", "k2"):
            assert agent.guest.ask(fx.LookUpSlot(key), now) is None
        too_many = agent.guest.ask(fx.HoldSlot("k3", UNIT, slot, BEGIN), now)
        assert isinstance(too_many.answer, Refusal)  # type: ignore[union-attr]
        assert "too many questions wait" in too_many.answer.detail  # type: ignore[union-attr]
        assert in_doubt(agent.guest.ask(fx.ConfirmSlot("k1"), now).answer)  # type: ignore[union-attr]
        answers = [await asyncio.wait_for(agent.answers.get(), LIMIT_S) for _ in range(5)]
        assert [getattr(each, "call_id", None) or each.key for each in answers] == ["q0", "q1", "q2", "k1", "k2"]  # type: ignore[union-attr]
        assert agent.told == []


@pytest.mark.slow
async def test_callers_do_not_wait_for_what_hangs(moody: MoodyPackage, tmp_path: Path) -> None:
    """A hold hangs for long: quotes that come meanwhile are refused, and once it has lasted so long, at once."""
    limits = dataclasses.replace(LIMITS, quote=SECOND, price=SECOND, change=30 * SECOND)
    async with Agent(moody, tmp_path, limits) as agent:
        slot = await agent.quote()
        assert isinstance(slot, Slot)
        moody.be(hold="hang")
        assert agent.guest.ask(fx.HoldSlot("k", UNIT, slot, BEGIN), agent.clock.now()) is None
        refused = await agent.quote()
        assert refused.detail == "quote: no answer within 1 s"
        at_once = agent.guest.ask(fx.QuoteSlots("c", (UNIT,)), agent.clock.now())
        assert "busy with hold for " in at_once.answers[0].detail  # type: ignore[union-attr]


@pytest.mark.slow
@pytest.mark.parametrize("call", ["quote", "price", "snapshot"])
async def test_one_that_is_mended_is_well_again_without_anybody_who_asks(agent: Agent, call: str) -> None:
    question: Any = {
        "quote": fx.QuoteSlots("c", (UNIT,)),
        "price": fx.PriceSlots("p", (PriceQuestion(70, 70, 20, 0.5),)),
        "snapshot": fx.DescribeMachine("d", HOUR),
    }[call]
    if call == "price":
        agent.price_instead()
    async with agent:
        await agent.until(lambda: agent.ask(question), lambda _: agent.health.reason == "")  # it is open
        agent.package.be(**{call: "raise"})
        await agent.until(lambda: agent.ask(question), lambda _: agent.health.is_failing(call))
        failures = len(agent.told)
        await soon(lambda: len(agent.told) >= failures + 2)  # asked again, and again
        assert agent.answers.empty()  # nobody waits for that
        agent.package.be()
        await soon(lambda: agent.health.reason == "")
        assert agent.told[-1] == ""
        assert agent.answers.empty()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["grow", "grow and keep"])
async def test_one_that_takes_memory_without_end_fails_and_begins_anew(
    moody: MoodyPackage, tmp_path: Path, how: str
) -> None:
    """Its agent goes on; what it has kept goes with its process."""
    agent = Agent(moody, tmp_path, dataclasses.replace(LIMITS, memory_mb=400))
    async with agent:
        await agent.until(agent.quote, lambda slot: isinstance(slot, Slot))
        first = agent.guest.pid
        moody.be(quote=how)
        refused = await agent.until(agent.quote, lambda slot: isinstance(slot, Refusal))
        assert (refused.code, refused.detail) == (RefusalCode.PLUGIN_FAILED, f"quote: {OUT_OF_MEMORY}")
        assert agent.health.reason == f"quote: {OUT_OF_MEMORY}"
        moody.be()
        await soon(lambda: agent.health.reason == "")
        assert agent.guest.pid not in (None, first)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["share", "family"])
async def test_the_memory_of_all_its_processes_together_is_limited(
    moody: MoodyPackage, tmp_path: Path, how: str
) -> None:
    """No process has much private memory: what they share counts, and what each has."""
    async with Agent(moody, tmp_path, dataclasses.replace(LIMITS, memory_mb=250)) as agent:
        await agent.until(agent.quote, lambda slot: isinstance(slot, Slot))
        moody.be(quote=how)
        refused = await agent.until(agent.quote, lambda slot: isinstance(slot, Refusal))
        assert refused.detail == f"quote: {OUT_OF_MEMORY}"
        moody.be()
        await agent.is_back()
        assert len(carrying_guests(moody)) == 2
