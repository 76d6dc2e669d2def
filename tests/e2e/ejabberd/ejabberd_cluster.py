"""A cluster of two ejabberd nodes on this computer, configured as `docs/xmpp-servers.md` says."""

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ramp.servers.certificate import ensure_server_certificate
from ramp.servers.process import free_port, probe_problem
from tests.waiting import LIMIT_S, until

PAGE = Path(__file__).parents[3] / "docs" / "xmpp-servers.md"
LAUNCHES_AGAIN = 2  # ejabberd gives itself 60 s to read its configuration, and ends where others leave it no processor
FRUGAL = ("+S", "1:1", "+SDcpu", "1:1", "+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none")
"""One scheduler and no busy waiting: else nodes that have nothing to do take the processor from those that have."""

PROGRAMS = ("erl", "epmd")
LIBRARIES = "/usr/lib/x86_64-linux-gnu"


def is_installed() -> bool:
    """Whether Debian's ejabberd and its Erlang are there."""
    return all(map(shutil.which, PROGRAMS)) and any(Path("/usr/lib").glob("*/ejabberd-*/ebin"))


@dataclass
class Node:
    """One node."""

    name: str
    port: int
    folder: Path
    process: subprocess.Popen[bytes] | None = None


@dataclass
class Cluster:
    """Two nodes with a port mapper of their own.

    Attributes:
        folder: where everything of it lies; made if missing.
        domain: of its accounts.
    """

    folder: Path
    domain: str = "localhost"
    nodes: list[Node] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._token = f"ramp{secrets.token_hex(4)}"
        self._cookie = secrets.token_hex(16)
        self._mapper = free_port()
        self._asked = 0
        self.certificate = ensure_server_certificate(self.folder / "tls", self.domain)
        pem = self.folder / "market.pem"
        pem.touch(mode=0o600)
        files = (self.certificate.key_file, self.certificate.certificate_file, self.certificate.ca_file)
        pem.write_text("".join(path.read_text() for path in files))
        for number in (1, 2):
            node = Node(f"{self._token}n{number}@localhost", free_port(), self.folder / f"node{number}")
            node.folder.mkdir(parents=True)
            (node.folder / "ejabberd.yml").write_text(self._configuration(node, pem))
            self.nodes.append(node)

    def start(self, accounts: Mapping[str, str]) -> None:
        """Start both nodes, let the second one join, make accounts at the first."""
        for node in self.nodes:
            self._launch(node)
        for node in self.nodes:
            self._wait(node)
        first, second = self.nodes
        assert self._call(second, f"ejabberd_cluster, join, ['{first.name}']") == "ok"
        self._wait(second)
        domain = f'<<"{self.domain}">>'
        pairs = ", ".join(f'{{<<"{name}">>, <<"{password}">>}}' for name, password in accounts.items())
        make = f"rpc:call('{first.name}', ejabberd_auth, try_register, [N, {domain}, P])"
        assert self._evaluate(f"lists:usort([{make} || {{N, P}} <- [{pairs}]])") == "[ok]"

    def sessions(self, node: Node) -> set[str]:
        """Local names of the accounts that are logged in at a node."""
        found = self._call(node, "ejabberd_sm, dirty_get_my_sessions_list, []")
        return set(re.findall(rf'\{{<<"([^"]*)">>,<<"{re.escape(self.domain)}">>\}}', found))

    def kill(self, node: Node) -> None:
        """kill -9 of a node and all that it runs."""
        assert node.process is not None
        os.killpg(node.process.pid, signal.SIGKILL)
        node.process.wait()

    def end(self) -> None:
        """End both nodes and the port mapper."""
        for node in self.nodes:
            if node.process is not None and node.process.poll() is None:
                self.kill(node)
        subprocess.run(["epmd", "-port", str(self._mapper), "-kill"], capture_output=True, check=False)

    # -- how -----------------------------------------------------------------------------------------------------

    def _configuration(self, node: Node, pem: Path) -> str:
        (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
        here = {"market.example.org": self.domain, "/etc/ejabberd/market.pem": str(pem)}
        here |= {"port: 5222": f"port: {node.port}", 'ip: "::"': 'ip: "127.0.0.1"'}
        for there, instead in here.items():
            assert there in text, there
            text = text.replace(there, instead)
        return text

    def _environment(self, folder: Path) -> dict[str, str]:
        return {
            **os.environ,
            "HOME": str(folder),
            "ERL_LIBS": LIBRARIES,
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self._mapper),
            "ERL_CRASH_DUMP_BYTES": "0",
        }

    def _launch(self, node: Node) -> None:
        environment = self._environment(node.folder) | {
            "EJABBERD_CONFIG_PATH": str(node.folder / "ejabberd.yml"),
            "EJABBERD_LOG_PATH": str(node.folder / "ejabberd.log"),
        }
        command = ["erl", *FRUGAL, "-sname", node.name, "-setcookie", self._cookie]
        command += ["-kernel", "inet_dist_use_interface", "{127,0,0,1}"]
        command += ["-mnesia", "dir", f'"{node.folder / "spool"}"', "-s", "ejabberd", "-noinput"]
        with (node.folder / "output.log").open("wb") as log:
            node.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )

    def _wait(self, node: Node) -> None:
        again = LAUNCHES_AGAIN

        def said() -> str:
            return (node.folder / "output.log").read_text(errors="replace")[-2000:]

        def answers() -> bool:
            nonlocal again
            assert node.process is not None
            if not probe_problem("127.0.0.1", node.port, self.domain, 5.0):
                return True
            if node.process.poll() is not None:
                assert again, said()
                again -= 1
                self._launch(node)
            return False

        until(answers, said)

    def _call(self, node: Node, call: str) -> str:
        """What a function of Erlang answers at a node."""
        return self._evaluate(f"rpc:call('{node.name}', {call})")

    def _evaluate(self, expression: str) -> str:
        """What an expression of Erlang comes to, in a node of its own that ends with it."""
        self._asked += 1
        asking = f"{self._token}asks{self._asked}@localhost"
        command = ["erl", *FRUGAL, "-sname", asking, "-setcookie", self._cookie, "-noinput", "-hidden", "-eval"]
        done = subprocess.run(
            [*command, f'io:format("~0p", [{expression}]), halt().'],
            env=self._environment(self.folder),
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=True,
        )
        assert done.stdout, done.stderr
        return done.stdout


@contextlib.contextmanager
def running_cluster(names: Iterable[str]) -> Iterator[Cluster]:
    """A cluster with accounts of these names, whose passwords lie in its folder; its folder has a short path."""
    folder = Path(tempfile.mkdtemp(prefix="ramp-ej-"))
    cluster = Cluster(folder)
    try:
        passwords = {name: secrets.token_hex(12) for name in names}
        (folder / "passwords.json").write_text(json.dumps(passwords))
        cluster.start(passwords)
        yield cluster
    finally:
        cluster.end()
        shutil.rmtree(folder, ignore_errors=True)
