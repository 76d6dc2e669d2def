"""`ramp.agents.group` with traps: an agent sends itself a signal at a chosen act, as if hit at the worst moment.

The trap is `traps/armed.json` in the state folder: the role, the act (`performative Content`), when (`before` the
message leaves, or `after` it has left), which time from now on, and the signal; the process that it is sent to, if not
the agent's own; the agent, if not the first of its role. Acts are also what a resource has a batch system do
(`system make`, `system hand_over`, `system remove`) and what it asks its launcher (`launcher SubmitJob`): `after` such
an act the system has done it, and the agent has not heard of it yet. Whoever walks into it first takes it away, so that
it strikes once.
What every agent sends is also written down, one line a message, in `steps/`.
A process with an agent for which there is `traps/NAME.lost` never gets going.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from ramp.agents import group
from ramp.agents.building import PartyBuilder
from ramp.agents.guests import process
from ramp.agents.job_launcher import JobLauncher
from ramp.agents.party_agent import PartyAgent
from ramp.agents.roles import BankingAgent, DirectoryAgent, KeeperAgent, ResourceAgent, UserAgent
from ramp.model.acl import Message
from ramp.model.agreement import Signed

ROLES = {
    UserAgent: "user",
    ResourceAgent: "resource",
    BankingAgent: "bank",
    DirectoryAgent: "directory",
    KeeperAgent: "keeper",
}


class Traps:
    """The traps of one state folder, as one agent meets them.

    Args:
        folder: of the traps.
        agent: its name.
        role: its role.
        pid: its process.
    """

    def __init__(self, folder: Path, agent: str, role: str, pid: int) -> None:
        self._folder = folder
        self._agent = agent
        self._role = role
        self._pid = pid
        self._number = 0
        self._met = 0

    def meet(self, act: str, when: str) -> None:
        """Come past with an act; does not return if the trap is for it."""
        trap = self._current()
        if trap is None or (trap["role"], trap["act"], trap["when"]) != (self._role, act, when):
            return
        if trap["agent"] not in ("", self._agent):
            return
        self._met += 1
        if self._met < trap["nth"]:
            return
        try:
            (self._folder / "armed.json").rename(self._folder / f"{self._agent}.victim")
        except FileNotFoundError:  # another agent was first
            return
        os.kill(trap["pid"] or self._pid, trap["signal"])

    @property
    def are_set(self) -> bool:
        """Whether somebody is to walk into a trap."""
        return self._current() is not None

    def _current(self) -> dict[str, Any] | None:
        try:
            trap = json.loads((self._folder / "armed.json").read_text("utf-8"))
        except FileNotFoundError:
            return None
        if trap["number"] != self._number:
            self._number, self._met = trap["number"], 0
        return trap


def act_of(message: Message) -> str:
    """A message by its performative and the kind of its content."""
    content = message.content
    return f"{message.performative.value} {type(content.body if isinstance(content, Signed) else content).__name__}"


async def _has_left(agent: PartyAgent) -> None:
    """Wait until the kernel, and a server that acknowledges also the server, has all that was sent."""
    if agent.client.acknowledging:
        await agent.drain()
    while agent.client.transport is not None and agent.client.transport.get_write_buffer_size():
        await asyncio.sleep(0)


def _arm(folder: Path) -> None:
    build, send = PartyBuilder.build, PartyAgent._send
    of_this_process: list[Traps] = []

    def armed_build(self: PartyBuilder, name: str) -> PartyAgent:
        agent = build(self, name)
        role = next(role for kind, role in ROLES.items() if isinstance(agent, kind))
        agent.traps = Traps(folder / "traps", name, role, os.getpid())
        agent.steps = folder / "steps" / f"{name}.txt"
        of_this_process.append(agent.traps)
        return agent

    async def armed_send(self: PartyAgent, message: Message) -> None:
        act = act_of(message)
        self.traps.meet(act, "before")
        await send(self, message)
        with self.steps.open("a") as steps:
            steps.write(f"{message.conversation_id} {message.receiver.partition('@')[0]} {act}\n")
        if self.traps.are_set:
            await _has_left(self)
            self.traps.meet(act, "after")

    PartyBuilder.build = armed_build
    PartyAgent._send = armed_send
    _arm_guests(folder, of_this_process)


def _arm_guests(folder: Path, of_this_process: list[Traps]) -> None:
    """Traps at what an agent's machine and launcher do; who has a machine is alone in its process."""
    process.WORKER = (sys.executable, str(Path(__file__).with_name("armed_guest.py")), str(folder), *_names()[:1])
    asked = JobLauncher._asked

    async def armed_asked(self: JobLauncher, question: Any) -> bytes:
        act = f"launcher {type(question).__name__}"
        for traps in of_this_process:
            traps.meet(act, "before")
        printed = await asked(self, question)
        for traps in of_this_process:
            traps.meet(act, "after")
        return printed

    JobLauncher._asked = armed_asked


def _names() -> list[str]:
    """The agents of this process."""
    return sys.argv[sys.argv.index("--agents") + 1].split(",")


def _lost(folder: Path) -> None:
    """Do nothing as long as an agent of this process is to be lost (`Market.lose`) and its market is up."""
    names = _names()
    supervisor = os.getppid()
    while any((folder / "traps" / f"{name}.lost").exists() for name in names) and os.getppid() == supervisor:
        time.sleep(0.2)


if __name__ == "__main__":
    state = Path(sys.argv[sys.argv.index("--state-dir") + 1])
    _lost(state)
    _arm(state)
    sys.exit(group.main())
