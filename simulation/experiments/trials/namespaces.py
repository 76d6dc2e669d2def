"""Hosts on one machine: network namespaces joined by a link. Needs root and `ip`.

Latency, jitter and loss of what the servers say to each other come from a relay in front of each host's server
(`trials.relay`).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ramp.errors import TransportError
from ramp.servers.certificate import ensure_server_certificate

DOMAINS: Final = ("site-a.test", "site-b.test")
"""Of the laboratory and of the other sites; `.test` is reserved for such use (RFC 6761)."""

ADDRESSES: Final = ("10.77.31.1", "10.77.31.2")
_NAME: Final = "ramp-host-{pid}-{number}"
_PROBE: Final = f"ramp-probe-{os.getpid()}"


@dataclass(frozen=True, slots=True)
class Host:
    """One host: its network namespace, address, domain and the authority of its server's certificate."""

    namespace: str
    address: str
    domain: str
    ca_file: Path

    def command(self, *arguments: str) -> list[str]:
        """A command that runs on the host."""
        return [*_in(self.namespace), *arguments]


def reason_against() -> str:
    """Why a market cannot be spread over hosts here; empty if it can."""
    for program in ("ip", "prosody"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    if os.geteuid() != 0:
        return "network namespaces need root"
    complaint = _try(["ip", "netns", "add", _PROBE])
    _try(["ip", "netns", "del", _PROBE])
    return f"network namespaces are not permitted: {complaint}" if complaint else ""


def _in(namespace: str) -> list[str]:
    return ["ip", "netns", "exec", namespace]


def _try(command: Sequence[str]) -> str:
    """Run a command; what it complains about, empty if it succeeds."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[0]


@contextlib.contextmanager
def joined_hosts(folder: Path) -> Iterator[tuple[Host, Host]]:
    """Two hosts and the link between them; removed afterwards.

    Args:
        folder: for their servers' certificates and the file `hosts` with their addresses.

    Raises:
        TransportError: if the kernel refuses a command.
    """
    _remove_left_behind()
    pid = os.getpid()
    names = [_NAME.format(pid=pid, number=number) for number in (1, 2)]
    (folder / "hosts").write_text("".join(f"{a} {d}\n" for a, d in zip(ADDRESSES, DOMAINS, strict=True)), "utf-8")
    try:
        for command in joining_commands(names, [f"rv{pid}{letter}" for letter in "ab"]):
            complaint = _try(command)
            if complaint:
                raise TransportError(f"{' '.join(command)}: {complaint}")
        hosts = [
            Host(name, address, domain, ensure_server_certificate(folder / f"tls-{domain}", domain).ca_file)
            for name, address, domain in zip(names, ADDRESSES, DOMAINS, strict=True)
        ]
        yield hosts[0], hosts[1]
    finally:
        for name in names:
            _try(["ip", "netns", "del", name])


def joining_commands(names: Sequence[str], ends: Sequence[str]) -> list[list[str]]:
    """Return the commands that make two namespaces and the link between them."""
    commands = [["ip", "netns", "add", name] for name in names]
    commands += [["ip", "-n", name, "link", "set", "lo", "up"] for name in names]
    first = ["ip", "link", "add", ends[0], "netns", names[0]]
    commands.append([*first, "type", "veth", "peer", "name", ends[1], "netns", names[1]])
    for name, end, address in zip(names, ends, ADDRESSES, strict=True):
        commands.append(["ip", "-n", name, "addr", "add", f"{address}/24", "dev", end])
        commands.append(["ip", "-n", name, "link", "set", end, "up"])
    return commands


def _remove_left_behind() -> None:
    """Remove the hosts of experiments that were killed before they could do it themselves."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
    for line in listed.splitlines():
        name = line.partition(" ")[0]
        pid = name.removeprefix(_NAME.partition("{")[0]).partition("-")[0]
        if name.startswith(_NAME.partition("{")[0]) and pid.isdigit() and not Path(f"/proc/{pid}").exists():
            _try(["ip", "netns", "del", name])
