"""A real Grid Engine 8.1 of a test's own: a cell in a new folder with its own ports; Debian's own cell is not touched.

Needs root (execd changes to the jobs' users) and Debian's packages gridengine-master, -exec and -client.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Self

import pytest

from tests.waiting import LIMIT_S
from tests.waiting import until as wait_until

LIBRARY = Path("/usr/lib/gridengine")
SHARE = Path("/usr/share/gridengine")

HOST = """hostname localhost
load_scaling NONE
complex_values slots={slots}
user_lists NONE
xuser_lists NONE
projects NONE
xprojects NONE
usage_scaling NONE
report_variables NONE
"""

ENVIRONMENT = """pe_name mpi
slots 9999
user_lists NONE
xuser_lists NONE
start_proc_args NONE
stop_proc_args NONE
allocation_rule $fill_up
control_slaves TRUE
job_is_first_task TRUE
urgency_slots min
accounting_summary FALSE
qsort_args NONE
"""

_NONE = (
    "load_thresholds suspend_thresholds ckpt_list prolog epilog starter_method suspend_method resume_method "
    "terminate_method owner_list user_lists xuser_lists subordinate_list complex_values projects xprojects calendar"
)
_INFINITE = (
    "s_rt h_rt s_cpu h_cpu s_fsize h_fsize s_data h_data s_stack h_stack s_core h_core s_rss h_rss s_vmem h_vmem"
)

QUEUE = "\n".join(
    (
        "qname all.q",
        "hostlist localhost",
        "seq_no 0",
        "nsuspend 1",
        "suspend_interval 00:05:00",
        "priority 0",
        "min_cpu_interval 00:05:00",
        "processors UNDEFINED",
        "qtype BATCH INTERACTIVE",
        "pe_list mpi",
        "rerun FALSE",
        "slots {slots}",
        "tmpdir /tmp",
        "shell /bin/sh",
        "shell_start_mode posix_compliant",
        "notify 00:00:60",
        "initial_state default",
        *(f"{name} NONE" for name in _NONE.split()),
        *(f"{name} INFINITY" for name in _INFINITE.split()),
        "",
    )
)

SCHEDULER = {  # what docs/gridengine.md tells a site to set
    "schedule_interval": "0:0:2",
    "flush_submit_sec": "1",
    "flush_finish_sec": "1",
    "params": "DURATION_OFFSET=1",
    "max_reservation": "32",
    "schedd_job_info": "true",
}


def why_not() -> str:
    """Why no Grid Engine can be started here, or the empty string."""
    missing = [name for name in ("sge_qmaster", "sge_execd", "qrsub", "qconf") if not (LIBRARY / name).exists()]
    if missing:
        return f"Grid Engine is not installed (no {LIBRARY / missing[0]}); apt install gridengine-master -exec -client"
    if not (SHARE / "scripts" / "init_cluster").exists():
        return f"no {SHARE / 'scripts' / 'init_cluster'}; this is not Debian's Grid Engine"
    return "" if os.geteuid() == 0 else "Grid Engine's execd and its first set-up need root"


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Cluster:
    """One qmaster with its host `localhost`; skips where it cannot be.

    Args:
        slots: of the host.
    """

    def __init__(self, slots: int) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="ramp-ge-"))
        self.root.chmod(0o755)
        self.slots = slots
        self.ports = _free_ports(2)
        self.environment = {
            "SGE_ROOT": str(self.root),
            "SGE_CELL": "default",
            "SGE_QMASTER_PORT": str(self.ports[0]),
            "SGE_EXECD_PORT": str(self.ports[1]),
        }

    def __enter__(self) -> Self:
        try:
            if reason := why_not():
                pytest.skip(reason)
            self._make_cell()
            self.start_master()
            self._configure()
            self.start_host()
            self.wait_for_host()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for pid in (self._pid("execd"), self.master_pid):
            if pid is not None:
                _end(pid)
        shutil.rmtree(self.root, ignore_errors=True)

    def __call__(self, *command: str, user: str = "root", text: str = "", status: int | None = 0) -> str:
        """Run a command of Grid Engine's; its output, standard error with it.

        Args:
            command: program and arguments.
            user: as whom.
            text: for its standard input.
            status: the exit code that is right; None for any.
        """
        done = subprocess.run(
            self._as(user, [str(LIBRARY / command[0]), *command[1:]]),
            env=self._full_environment(),
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
            cwd="/tmp",
        )
        assert status is None or done.returncode == status, f"{' '.join(command)}: {done.returncode}: {done.stdout}"
        return done.stdout

    @property
    def master_pid(self) -> int | None:
        """Process id of qmaster while it runs."""
        return self._pid("qmaster")

    @property
    def host_pid(self) -> int | None:
        """Process id of the host's execd while it runs."""
        return self._pid("execd")

    def start_host(self) -> None:
        """Start the host's execd."""
        self._daemon("sge_execd")

    def start_master(self) -> None:
        """Start qmaster and wait until it answers."""
        self._daemon("sge_qmaster", user="sgeadmin")
        wait_until(lambda: self._answers(), "qmaster answers")

    def wait_for_host(self) -> None:
        """Wait until the host has reported, as it must again after each start of qmaster, and can be sold."""

        def reports() -> bool:
            shown = self("qstat", "-f", "-xml")
            return "<arch>" in shown and "<state>" not in shown

        wait_until(reports, "the host reports")

    def kill_master(self) -> None:
        """End qmaster as `kill -9` does."""
        pid = self.master_pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: self.master_pid is None, "qmaster is gone")

    def change(self, shown: str, written: str, changes: dict[str, str], *names: str) -> None:
        """Change lines of a configuration: shown by `qconf SHOWN`, written by `qconf WRITTEN FILE`."""
        lines = self("qconf", shown, *names).replace("\\\n", " ").splitlines()
        kept = [line for line in lines if line.strip() and line.split(None, 1)[0].rstrip(":") not in changes]
        self.configure(written, "\n".join((*kept, *(f"{key} {value}" for key, value in changes.items()), "")), *names)

    def configure(self, verb: str, text: str, *names: str) -> None:
        """`qconf VERB FILE` with a file of that text; of the name `names` where that is what counts."""
        path = self.root / (names[0] if names else "configured")
        path.write_text(text)
        self("qconf", verb, str(path))
        path.unlink()

    def _make_cell(self) -> None:
        common = self.root / "default" / "common"
        for folder in (common, self.root / "qmaster" / "job_scripts", self.root / "execd", self.root / "spooldb"):
            folder.mkdir(parents=True)
        for name in ("bin", "lib", "utilbin"):
            (self.root / name).symlink_to(f"/var/lib/gridengine/{name}")
        (self.root / "util").symlink_to(SHARE / "util")
        bootstrap = (SHARE / "default-bootstrap").read_text()
        bootstrap = bootstrap.replace("/var/spool/gridengine", str(self.root))
        (common / "bootstrap").write_text(bootstrap)
        (common / "act_qmaster").write_text("localhost\n")
        names = {socket.gethostname(), socket.getfqdn()} - {"localhost"}
        (common / "host_aliases").write_text(" ".join(("localhost", *sorted(names))) + "\n")
        subprocess.run(["chown", "-R", "sgeadmin:sgeadmin", str(self.root)], check=True)
        script, database = SHARE / "scripts" / "init_cluster", self.root / "spooldb"
        make = [str(script), str(self.root), "default", str(database), "sgeadmin"]
        done = subprocess.run(self._as("sgeadmin", make), env=self._full_environment(), capture_output=True, cwd="/")
        assert done.returncode == 0, done.stdout + done.stderr

    def _configure(self) -> None:
        for verb in ("-am", "-ao"):
            self("qconf", verb, "root", user="sgeadmin", status=None)
        for verb in ("-ah", "-as"):
            self("qconf", verb, "localhost", status=None)
        changes = {
            "min_uid": "0",
            "min_gid": "0",
            "execd_spool_dir": str(self.root / "execd"),
            "load_report_time": "00:00:05",
        }
        self.change("-sconf", "-Mconf", changes, "global")
        self.change("-ssconf", "-Msconf", SCHEDULER)
        self.configure("-Ap", ENVIRONMENT)
        self.configure("-Ae", HOST.format(slots=self.slots))
        self.configure("-Aq", QUEUE.format(slots=self.slots))
        self("qconf", "-au", "root", "arusers")

    def _answers(self) -> bool:
        return "all.q" in self("qconf", "-sql", status=None) or "no cqueue list" in self("qconf", "-sql", status=None)

    def _daemon(self, program: str, user: str = "root") -> None:
        silent = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        command = self._as(user, [str(LIBRARY / program)])
        subprocess.run(command, env=self._full_environment(), check=True, cwd="/", timeout=LIMIT_S, **silent)

    def _as(self, user: str, command: list[str]) -> list[str]:
        return command if user == "root" else ["runuser", "-u", user, "--", *command]

    def _full_environment(self) -> dict[str, str]:
        return {**os.environ, **self.environment, "LD_LIBRARY_PATH": str(LIBRARY), "TZ": "UTC", "SGE_ARCH": "lx-amd64"}

    def _pid(self, daemon: str) -> int | None:
        """The process of a daemon of this very cluster, from its pid file and its environment."""
        for path in self.root.glob("qmaster/qmaster.pid" if daemon == "qmaster" else "execd/*/execd.pid"):
            pid = int(path.read_text().strip() or 0)
            try:
                own = f"SGE_ROOT={self.root}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                alive = "(zombie)" not in Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue
            if own and alive:
                return pid
        return None


def _end(pid: int) -> None:
    for sent in (signal.SIGCONT, signal.SIGKILL):
        try:
            os.kill(pid, sent)
        except ProcessLookupError:
            return
