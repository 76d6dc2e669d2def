"""kill -9 at each step of a purchase across Slurm and Grid Engine: who dies, when, and that all comes right again."""

import concurrent.futures
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ramp
from ramp.batch.node_lists import expand
from ramp.model.instant import HOUR, to_datetime
from tests.e2e.real_machines.real_books import GRIDENGINE, SLURM, RealBooks
from tests.e2e.real_machines.real_jobs import CORES, both_sell, launched, purchase, run_once_in_both
from tests.e2e.slurm.cluster_fixture import in_service
from tests.e2e.swarm.swarm_market import Market, in_hours, own_id, until

STEPS = {
    "hold": ("resource", "system make", "after"),  # reserved; nobody has read it back
    "vote": ("resource", "agree HoldGranted", "before"),
    "confirm": ("resource", "confirm Confirmed", "before"),
    "sign": ("resource", "request Agreement", "before"),
    "pay": ("bank", "agree PaymentMade", "before"),  # posted; nobody has been told
    "hand over": ("resource", "system hand_over", "after"),
    "launch": ("resource", "launcher SubmitJob", "after"),  # submitted; the agent has not heard of it
    "cancel": ("resource", "system remove", "after"),  # deleted; the money is on its way back
}
"""By each step of a purchase who does what just then, and whether death comes before or after it."""

AGENTS = ("alice", "site1", "site2", "bank", "directory")
DAEMONS = ("sge_qmaster", "slurmctld")
"""The last comes last: a job that it has just started it starts again after its death, and drains the job's node, some
seconds later."""

NODE_DAEMONS = ("slurmd", "sge_execd")
"""Matter while a job is submitted alone: they know nothing of reservations."""

CELLS = [(step, who) for step in STEPS for who in (*AGENTS, *(NODE_DAEMONS if step == "launch" else ()), *DAEMONS)]

SYSTEM_OF = {"site1": GRIDENGINE, "sge_qmaster": GRIDENGINE, "sge_execd": GRIDENGINE}
"""At whose step those die that have to do with Grid Engine; all others at the step of the seller on Slurm."""

DECIDED = ("confirm", "sign", "pay", "hand over", "cancel")
"""Steps at which the purchase is decided, and nobody's death can undo it."""

AWAY_S = 3.0
"""For so long a killed daemon is away; agents are started again by their supervisor."""


@dataclass(frozen=True)
class World:
    """What a cell happens in.

    Attributes:
        market: the market, armed.
        gridengine: the cell of `site1`.
        slurm: the cluster of `site2`.
        books: their judge.
        hours: windows of their own.
    """

    market: Market
    gridengine: Any
    slurm: Any
    books: RealBooks
    hours: Any

    def dies_at(self, step: str, who: str, slots: Any = None, folder: Path | None = None) -> tuple[str, float]:
        """Let somebody die at a step, and see that whatever is paid is reserved, and nothing else.

        Args:
            step: of `STEPS`.
            who: an agent or a daemon.
            slots: what was bought before, to launch on.
            folder: for what is launched.

        Returns:
            How the purchase ended, and the seconds until all was right again, from the end of what its user did.
        """
        self.market.wait_ready()
        self.gridengine.wait_for_host()
        in_service(self.slurm)  # see DAEMONS
        begin = in_hours(next(self.hours))
        window = {"start": to_datetime(begin), "end": to_datetime(begin + HOUR)}
        both_sell(self.market, *(ramp.request(cores=cores, wall_time="1h", price=70, **window) for cores in CORES))
        before = set(self.books.findings())
        seller = SYSTEM_OF.get(who, SLURM)
        outcome = purchase(self.market, own_id(step, who), begin) if step == "cancel" else None
        role, act, when = STEPS[step]
        self.market.arm(role, act, when, pid=self._pid(who, slots), agent=seller if role == "resource" else "")
        with concurrent.futures.ThreadPoolExecutor(1) as beside:
            back = beside.submit(self._come_back, who, slots)
            if step == "launch":
                jobs = launched(self.market, slots, folder)
            elif outcome is not None:
                self._cancel(outcome, seller)
            else:
                outcome = purchase(self.market, own_id(step, who), begin)
            ended = time.monotonic()
            back.result()
        if step == "launch":
            run_once_in_both(self.market, slots, jobs, self.gridengine)
        else:
            assert step not in DECIDED or outcome["status"] == "committed", outcome["reason"]
        self._comes_right(before)
        return "launched" if outcome is None else outcome["status"], time.monotonic() - ended

    def _comes_right(self, before: set[str]) -> None:
        """Wait until nothing is wrong that was not wrong before this cell."""
        found: list[str] = []

        def right() -> bool:
            found[:] = [each for each in self.books.findings() if each not in before]
            return not found

        until(right, lambda: "; ".join(found))

    def _cancel(self, outcome: dict[str, Any], seller: str) -> None:
        """Give one unit back, whoever dies meanwhile."""
        assert outcome["status"] == "committed", outcome["reason"]
        ours = next(each for each in outcome["units"] if each["offer"]["resource"].startswith(f"{seller}@"))
        self.market.ask("alice", {"verb": "agreement_cancelled", "agreement_id": ours["agreement_id"], "reason": ""})

        def state() -> str:
            listed = self.market.agreements("alice")
            ids = {each["agreement"]["agreement_id"]: each["state"] for each in listed}
            return ids[ours["agreement_id"]]

        until(lambda: state() == "cancelled", lambda: f"it is given back: {state()}")

    def _pid(self, who: str, slots: Any) -> int:
        match who:
            case "slurmctld":
                return self.slurm.processes["slurmctld"].pid
            case "sge_qmaster":
                return self.gridengine.master_pid
            case "slurmd":
                return self.slurm.processes[f"slurmd{self._first_node(slots)}"].pid
            case "sge_execd":
                return self.gridengine.host_pid
        return self.market.agent(who)["pid"]

    def _first_node(self, slots: Any) -> int:
        """Number of the node on which a job of the slot begins."""
        shown = self.slurm.run("scontrol", "-o", "show", "reservation", slots.units[1].reservation_id)
        return int(expand(shown.split(" Nodes=")[1].split()[0])[0].removeprefix(self.slurm.name))

    def _come_back(self, who: str, slots: Any) -> None:
        """Wait for the death, and start again what has no supervisor."""
        until(self.market.victim, lambda: f"somebody walks into the trap\n{self.market.logs()}")
        if who in AGENTS:
            return
        time.sleep(AWAY_S)
        match who:
            case "slurmctld":
                self.slurm.processes["slurmctld"].kill()
                self.slurm.processes["slurmctld"].wait()  # reaps it
                self.slurm.start_controller()
            case "sge_qmaster":
                self.gridengine.start_master()
            case "slurmd":
                number = self._first_node(slots)
                os.waitpid(self.slurm.processes[f"slurmd{number}"].pid, 0)
                self.slurm.start_node(number)
            case "sge_execd":
                self.gridengine.start_host()
