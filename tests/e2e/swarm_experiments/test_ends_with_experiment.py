"""An experiment over XMPP that is ended takes its agents with it, whatever it is ended by."""

import contextlib
import signal
import subprocess
import sys

import psutil
import pytest

from tests.e2e.waiting import LIMIT_S, until

pytestmark = [pytest.mark.e2e, pytest.mark.full]

EXPERIMENT = [sys.executable, "-m", "ramp.cli.main", "experiment", "run", "users", "--quick", "--xmpp"]


def whole_family(process: psutil.Process) -> list[psutil.Process]:
    """All descendants, once supervisor, server and the groups of agents are among them."""

    def complete() -> list[psutil.Process] | None:
        family = process.children(recursive=True)
        lines = []
        for each in family:
            with contextlib.suppress(psutil.Error):
                lines.append(" ".join(each.cmdline()))
        running = [line for line in lines if " -S -c " not in line]  # what is still to become another program
        counts = [sum(part in line for line in running) for part in ("supervise", "servers.embedded", "agents.process")]
        return family if counts[0] >= 1 and counts[1] >= 1 and counts[2] >= 4 else None

    found: list[psutil.Process] = until(complete, "a market is up")
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_process_stays_behind(number, tmp_path):
    experiment = subprocess.Popen(
        [*EXPERIMENT, "--out", str(tmp_path)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    family = []
    try:
        family = whole_family(psutil.Process(experiment.pid))
        experiment.send_signal(number)
        _, said = experiment.communicate(timeout=LIMIT_S)
        expected = {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGKILL: -signal.SIGKILL}
        assert experiment.returncode == expected[number], said.decode()
        _, alive = psutil.wait_procs(family, timeout=LIMIT_S)
        assert alive == []
    finally:
        for each in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        if experiment.poll() is None:
            experiment.kill()
            experiment.wait()
