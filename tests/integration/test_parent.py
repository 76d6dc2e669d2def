"""Processes that are tied to the one that started them end with it, even of kill -9."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from ramp.servers.parent import tied

LIMIT_S = 300.0
LAUNCHER = """
import subprocess, sys, time
from ramp.servers.parent import tied
said = "print('up', flush=True); import time; time.sleep(600)"
own = "import os; from ramp.servers.parent import end_with_parent; end_with_parent(os.getppid());"
command = tied([sys.executable, "-c", said]) if sys.argv[1] == "tied" else [sys.executable, "-c", own + said]
child = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("how", ["tied", "by itself"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_tied_process_ends_with_its_launcher(number, how):
    with subprocess.Popen([sys.executable, "-c", LAUNCHER, how], stdout=subprocess.PIPE, text=True) as launcher:
        child = psutil.Process(int(launcher.stdout.readline()))
        assert child.is_running()
        launcher.send_signal(number)
        launcher.wait(LIMIT_S)
        _, alive = psutil.wait_procs([child], timeout=LIMIT_S)
        for each in alive:
            each.kill()
        assert alive == []


def test_a_tied_process_is_the_command_itself():
    done = subprocess.run(tied(["sh", "-c", "echo $PPID $0", "word"]), capture_output=True, text=True, check=True)
    assert done.stdout == f"{os.getpid()} word\n"


def test_whose_parent_is_gone_already_does_not_begin():
    late = (
        "import os; from ramp.servers.parent import end_with_parent; end_with_parent(os.getppid() + 1); print('begun')"
    )
    done = subprocess.run([sys.executable, "-c", late], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "has ended" in done.stderr
