"""A Slurm cluster of emulated nodes on this computer, for demonstrations and tests; real programs, loopback only.

One controller, one small daemon per node (5 MB each) and a munge daemon, all under one folder; several clusters can run
side by side. Nodes really run jobs, on this computer's processors. As root, jobs run as their submitters; otherwise
everything runs as this account.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ramp.errors import PluginError, command_error

PROGRAMS: Final = ("munged", "slurmctld", "slurmd", "scontrol", "sinfo", "squeue")
PACKAGES: Final = "apt-get install slurmctld slurmd slurm-client munge"
START_LIMIT_S: Final = 120.0
_SBIN: Final = ("/usr/sbin", "/usr/local/sbin", "/sbin")

_CONFIGURATION: Final = """\
ClusterName={name}
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=5,bf_interval=5
ReturnToService=2
SlurmdParameters=config_overrides
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
{more}
NodeName={name}[1-{nodes}] NodeAddr=127.0.0.1 NodeHostName={host} Port=[{first}-{last}] CPUs={cores} Boards=1 \
SocketsPerBoard=1 CoresPerSocket={cores} ThreadsPerCore=1 RealMemory=1000 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing_programs() -> tuple[str, ...]:
    """Return the programs of Slurm and munge that are not installed."""
    return tuple(name for name in PROGRAMS if _program(name) is None)


class EmulatedCluster:
    """A cluster; as a context it is started and always stopped.

    Args:
        folder: an empty folder with a short path, because it holds sockets.
        name: of the cluster; its nodes have this name with a number.
        nodes: how many nodes.
        cores: cores of each.
        more: further lines of `slurm.conf`, before those of nodes and partition.
        files: texts of further files beside it, by name (`topology.conf`).

    Attributes:
        processes: the running daemons by name: `munged`, `slurmctld`, and `slurmd1` of the first node.
    """

    def __init__(
        self, folder: Path, name: str, nodes: int, cores: int, more: str = "", files: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.name = name
        self.nodes = nodes
        self.cores = cores
        self.conf = folder / "slurm.conf"
        self._more = more
        self._files = files or {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start munge, the controller and the nodes.

        Raises:
            BatchSystemError: a program is not installed.
            PluginError: the nodes are not idle within two minutes.
        """
        for program in missing_programs():
            raise command_error((program,), f"cannot be run: it is not installed ({PACKAGES})", transient=False)
        for each in (self.folder, self.folder / "state", self.folder / "spool"):
            each.mkdir(parents=True, exist_ok=True)
            each.chmod(0o755)  # munge trusts no folder that others may write to
        port = _free_ports(self.nodes + 1)
        values = {
            "name": self.name,
            "host": socket.gethostname().split(".")[0],
            "user": getpass.getuser(),
            "folder": self.folder,
            "port": port,
            "nodes": self.nodes,
            "cores": self.cores,
            "first": port + 1,
            "last": port + self.nodes,
            "more": self._more,
        }
        self.conf.write_text(_CONFIGURATION.format(**values), encoding="utf-8")
        for name, text in self._files.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        self._start_munge()
        self.start_controller()
        for number in range(1, self.nodes + 1):
            self.start_node(number)
        self._wait_for_nodes()

    def start_controller(self) -> None:
        """Start the controller, with the state that an earlier one has left."""
        self._start("slurmctld", "-D", "-f", str(self.conf))

    def start_node(self, number: int) -> None:
        """Start the daemon of a node, numbered from 1."""
        self._start("slurmd", "-D", "-N", f"{self.name}{number}", "-f", str(self.conf), label=f"slurmd{number}")

    def run(self, *argv: str, limit_s: float = 60.0, user: str | None = None) -> str:
        """Run one of Slurm's commands on this cluster and return its output.

        Args:
            argv: the command.
            limit_s: seconds that it may take.
            user: account to run it as; None for this program's own.

        Raises:
            subprocess.CalledProcessError: it failed.
        """
        environment = {**os.environ, "SLURM_CONF": str(self.conf), "TZ": "UTC", "LC_ALL": "C"}
        done = subprocess.run(
            argv, env=environment, capture_output=True, text=True, timeout=limit_s, check=True, user=user, cwd="/"
        )
        return done.stdout

    def stop(self) -> None:
        """Stop everything that was started, jobs too."""
        if self.processes.get("slurmctld") is not None:
            with contextlib.suppress(subprocess.SubprocessError, OSError):
                self.run("scancel", "--quiet", "--state=RUNNING", "--signal=KILL", "--full", limit_s=5)
        for process in reversed(self.processes.values()):
            with contextlib.suppress(OSError):
                process.send_signal(signal.SIGCONT)
                process.terminate()
        until = time.monotonic() + 10
        for process in self.processes.values():
            try:
                process.wait(timeout=max(until - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes.clear()

    def _start_munge(self) -> None:
        folder = self.folder
        files = {"socket": "munge.socket", "key-file": "munge.key", "pid-file": "munged.pid"}
        files |= {"log-file": "munged.log", "seed-file": "munged.seed"}
        self._start("munged", "--foreground", "--force", *(f"--{name}={folder / file}" for name, file in files.items()))
        until = time.monotonic() + START_LIMIT_S
        while not (folder / "munge.socket").exists():
            self._check(until, "munged does not open its socket", "munged")
            time.sleep(0.02)

    def _wait_for_nodes(self) -> None:
        until = time.monotonic() + START_LIMIT_S
        while True:
            with contextlib.suppress(subprocess.SubprocessError):
                if self.run("sinfo", "-h", "-t", "idle", "-o", "%D").strip() == str(self.nodes):
                    return
            self._check(until, f"not all of {self.nodes} nodes are idle", "slurmctld")
            time.sleep(0.1)

    def _check(self, until: float, wrong: str, program: str) -> None:
        if time.monotonic() < until and self.processes[program].poll() is None:
            return
        raise PluginError("slurm", f"{self.name}: {wrong}; see {self.folder}/*.log")

    def _start(self, program: str, *arguments: str, label: str = "") -> None:
        path = _program(program)
        assert path is not None
        with (self.folder / f"{label or program}.out").open("ab") as output:
            self.processes[label or program] = subprocess.Popen(
                [path, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, "SLURM_CONF": str(self.conf)},
            )


def _program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(_SBIN))


def _free_ports(count: int) -> int:
    """Return the first of `count` consecutive free ports; clusters of other processes begin elsewhere."""
    for attempt in range(200):
        first = 22_000 + (os.getpid() * 331 + attempt * 509) % 9_500
        if all(_is_free(first + offset) for offset in range(count)):
            return first
    raise PluginError("slurm", f"no {count} free ports in a row")


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
