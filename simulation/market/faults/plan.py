"""What goes wrong in one simulated market, drawn from its seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from ramp.model.instant import HOUR, MILLISECOND, MINUTE, SECOND, Duration
from ramp.protocol.records import Record
from simulation.market.faults.breakdowns import Aim, Blow
from simulation.market.faults.late_guests import GuestFaults, draw_machine_faults, draw_strategy_faults
from simulation.market.network import HEALTHY, FaultWindow, NetworkFaults
from simulation.market.party_clock import ClockFault
from simulation.market.random_streams import stream

RECORDS: Final = tuple(kind.__name__ for kind in Record.__args__)
"""Every kind of record; a crash after it, or its write failing."""

LEDGER_WRITES: Final = ("CarryOutPaymentOrder", "CountersignLine", "VoidOrder", "PostChange")
"""Calls to the ledger after which the bank may crash before it tells anybody."""

MACHINE_CALLS: Final = ("HoldSlot", "ConfirmSlot", "ReleaseSlot")
"""Calls to a machine after which a resource may crash before it has noted the answer."""

MESSAGES: Final = (
    "SendAcceptance",
    "SendHoldGranted",
    "SendPaymentOrder",
    "SendFundsReserved",
    "SendCommitment",
    "SendConfirmed",
    "SendAgreement",
    "SendPaymentMade",
    "SendSettled",
    "SendOrderWithdrawal",
)
"""Messages after which their sender may crash, one step further in the purchase."""

PURCHASE: Final = (
    "RequestStarted",
    "AcceptanceAsked",
    "FundsAsked",
    "CommitDecided",
    "AgreementReceived",
    "VoidAsked",
    "SendHoldGranted",
    "SendAgreement",
    "SendFundsReserved",
)
"""Moments of a purchase at which a line may be cut for longer than a hold, a vote or an order lasts."""

LINES: Final = (Blow.CUT_SELF, Blow.CUT_SELF, Blow.CUT_BANK, Blow.CUT_BANK, Blow.CUT_DIRECTORY)


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """All faults of one run; they end at `heal_after`, from where on the market must come to rest.

    Clocks do not heal: what is promised of a market whose clocks agree within the protocol's limit must come true with
    the clocks as they are.

    Attributes:
        network: how bad the network is.
        crash: probability that a party crashes after an effect.
        restart_mean: mean of the exponential time a crashed party stays down.
        heal_after: when the faults end, counted from the run's start.
        isolations: who is cut off when, counted from the run's start.
        aims: trouble at single kinds of effects.
        disks: whose disk is full when, counted from the run's start.
        clocks: whose clock is wrong, and how.
        outages: who is down when, counted from the run's start, and comes up with its memory alone.
        machines: whose machine answers late or not at all, and how badly.
        strategies: whose price strategy does.
    """

    network: NetworkFaults = HEALTHY
    crash: float = 0.0
    restart_mean: Duration = 5 * SECOND
    heal_after: Duration = 2 * MINUTE
    isolations: tuple[FaultWindow, ...] = ()
    aims: tuple[Aim, ...] = ()
    disks: tuple[FaultWindow, ...] = ()
    clocks: Mapping[str, ClockFault] = field(default_factory=dict)
    outages: tuple[FaultWindow, ...] = ()
    machines: Mapping[str, GuestFaults] = field(default_factory=dict)
    strategies: Mapping[str, GuestFaults] = field(default_factory=dict)

    def clocks_agree(self, within: Duration) -> bool:
        """Return whether all clocks, the right one included, show the same within a limit throughout."""
        offsets = [0, *(offset for fault in self.clocks.values() for offset in fault.offsets)]
        return max(offsets) - min(offsets) < within


NO_FAULTS = FaultPlan(heal_after=0)


def draw_fault_plan(
    seed: int, traders: Sequence[str] = (), own: Sequence[str] = ("bank", "directory", "keeper")
) -> FaultPlan:
    """Draw a plan: from a quiet run to one that loses every fifth message and crashes at every fiftieth effect.

    Args:
        seed: the run's seed.
        traders: users and resources, who may be cut off for a while.
        own: the market's own parties.
    """
    random = stream(seed, "fault plan")
    bad = random.random()
    heal_after = random.randint(1, 4) * MINUTE
    network = NetworkFaults(
        loss=random.choice((0.0, 0.02, 0.1, 0.2)) * bad,
        duplication=random.choice((0.0, 0.1, 0.3)) * bad,
        delay_floor=random.randint(1, 40) * MILLISECOND,
        delay_mean=random.choice((0, 5, 50, 800)) * MILLISECOND,
        late_copies=random.choice((0.0, 0.0, 0.05, 0.3)),
    )
    crash = random.choice((0.0, 0.0, 0.0, 0.004, 0.02))
    restart_mean = random.choice((100 * MILLISECOND, 2 * SECOND, 20 * SECOND))
    isolations = _draw_isolations(random, traders, heal_after)
    aims = _draw_aims(random)
    away = _draw_absence(random, own[:2]) if traders else ()
    outages = _draw_outages(stream(seed, "outages"), own[:2], traders) if traders else ()
    longest = max((each.until for each in (*away, *outages)), default=0)
    if any(aim.blow in LINES for aim in aims):
        longest = max(longest, 5 * MINUTE)
    heal_after = max(heal_after, longest)
    parties = (*own, *traders) if traders else ()
    return FaultPlan(
        network=network,
        crash=crash,
        restart_mean=restart_mean,
        heal_after=heal_after,
        isolations=(*isolations, *away),
        aims=aims,
        disks=_draw_disks(random, parties, heal_after),
        clocks=_draw_small_steps(
            stream(seed, "clock steps"), _draw_clocks(stream(seed, "clocks"), parties, heal_after), heal_after
        ),
        outages=outages,
        **_draw_guests(stream(seed, "guests"), traders),
    )


def _draw_isolations(random: Random, parties: Sequence[str], heal_after: Duration) -> tuple[FaultWindow, ...]:
    """Draw up to three lines that are cut for a second or longer; all are whole again at the healing."""
    isolations = []
    for _ in range(random.choice((0, 0, 1, 1, 2, 3)) if parties else 0):
        since = random.randrange(heal_after)
        lasts = random.choice((1, 5, 20, 90)) * SECOND
        isolations.append(FaultWindow(random.choice(parties), since, min(since + lasts, heal_after)))
    return tuple(isolations)


def _draw_aims(random: Random) -> tuple[Aim, ...]:
    """Draw, in every other run, up to two kinds of effects at which trouble is likely."""
    aims = []
    for _ in range(random.choice((0, 0, 1, 1, 1, 2))):
        chance = random.choice((0.3, 0.6, 1.0))
        lasting = random.choice((100 * MILLISECOND, 2 * SECOND, 15 * SECOND))
        match random.randrange(8):
            case 0 | 1:
                aims.append(Aim(random.choice(RECORDS), chance, Blow.CRASH, lasting))
            case 2:
                aims.append(Aim(random.choice((*LEDGER_WRITES, *MACHINE_CALLS)), chance, Blow.CRASH, lasting))
            case 3:
                aims.append(Aim(random.choice(MESSAGES), chance, Blow.CRASH, lasting))
            case 4:
                aims.append(Aim(random.choice((*RECORDS, *LEDGER_WRITES)), chance, Blow.WRITE_FAILS, lasting))
            case _:
                away = random.choice((4, 8, 15, 40, 150, 240)) * SECOND
                aims.append(Aim(random.choice(PURCHASE), chance, random.choice(LINES), away, most=2))
    return tuple(aims)


def _draw_absence(random: Random, own: Sequence[str]) -> tuple[FaultWindow, ...]:
    """Draw rare absences of bank or directory, longer than a purchase may take or than money is set aside."""
    if random.random() >= 0.1:
        return ()
    since = random.randrange(90) * SECOND
    return (FaultWindow(random.choice(own), since, since + random.choice((45, 100, 200)) * SECOND),)


def _draw_disks(random: Random, parties: Sequence[str], heal_after: Duration) -> tuple[FaultWindow, ...]:
    if not parties or random.random() >= 0.1:
        return ()
    since = random.randrange(heal_after)
    lasts = random.choice((5, 30, 90)) * SECOND
    return (FaultWindow(random.choice(parties), since, min(since + lasts, heal_after)),)


def _draw_clocks(random: Random, parties: Sequence[str], heal_after: Duration) -> dict[str, ClockFault]:
    """Draw clocks some seconds apart in most runs, minutes in few; in few, one is set by hours."""
    spread = random.choice((0, 1, 1, 3, 3, 3, 10, 10, 100, 200)) * SECOND
    if not spread:
        return {}
    stepped = random.choice(parties) if parties and random.random() < 0.06 else ""
    clocks = {}
    for name in parties:
        steps: tuple[tuple[Duration, Duration], ...] = ()
        if name == stepped:
            when, by = random.randrange(heal_after), random.choice((-3, -1, 1, 3)) * HOUR
            back = ((when + random.randrange(1, 5) * MINUTE, -by),) if random.random() < 0.5 else ()
            steps = ((when, by), *back)
        clocks[name] = ClockFault(random.randint(-spread, spread), random.choice((0, 0, -50, 20, 100)), steps)
    return clocks


def _draw_outages(random: Random, own: Sequence[str], traders: Sequence[str]) -> tuple[FaultWindow, ...]:
    """Draw rare outages of bank, directory or a trader, longer than a hold, a vote or an order lasts."""
    if random.random() >= 0.1:
        return ()
    name = random.choice(own if random.random() < 0.7 else traders)
    since = random.randrange(90) * SECOND
    return (FaultWindow(name, since, since + random.choice((45, 100, 200)) * SECOND),)


def _draw_guests(random: Random, traders: Sequence[str]) -> dict[str, dict[str, GuestFaults]]:
    """Draw, in every other run, late answers of most machines and some price strategies."""
    if random.random() < 0.5:
        return {}
    return {
        "machines": {name: draw_machine_faults(random) for name in traders if random.random() < 0.7},
        "strategies": {name: draw_strategy_faults(random) for name in traders if random.random() < 0.2},
    }


def _draw_small_steps(random: Random, clocks: dict[str, ClockFault], heal_after: Duration) -> dict[str, ClockFault]:
    """Draw, in some runs, a time daemon that sets clocks by a second to a minute, to and fro."""
    if random.random() >= 0.2:
        return clocks
    for name, fault in clocks.items():
        if random.random() < 0.3 and not fault.is_stepped:
            by = random.choice((-1, 1)) * random.choice((1, 4, 15, 60)) * SECOND
            moments = sorted(random.randrange(heal_after) for _ in range(random.randint(1, 4)))
            steps = tuple((when, by if number % 2 == 0 else -by) for number, when in enumerate(moments))
            clocks[name] = replace(fault, steps=steps)
    return clocks
