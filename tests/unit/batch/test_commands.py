"""Commands as they are run: what they get, what they may take, and what is believed of them."""

import json
import os
import pwd
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ramp.batch import commands
from ramp.errors import BatchSystemError, CommandFailed, ConfigurationError
from tests.waiting import is_alive, until


def _python(text: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", text)


def test_a_command_sees_utc_the_c_locale_and_nothing_of_the_callers_taste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUEUE_FORMAT", "%i")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    done = commands.CommandRunner({"SLURM_CONF": "/x"})(_python("import os, json; print(json.dumps(dict(os.environ)))"))
    seen = json.loads(done.stdout)
    assert (seen["TZ"], seen["LC_ALL"], seen["SLURM_CONF"]) == ("UTC", "C", "/x")
    assert "SQUEUE_FORMAT" not in seen


def test_a_folder_of_commands_comes_before_the_callers_own_path(tmp_path: Path) -> None:
    command = tmp_path / "sh"
    command.write_text("#!/bin/sh\necho from the folder\n")
    command.chmod(0o755)
    variables = {"PATH": str(tmp_path)}
    assert commands.CommandRunner(variables)(("sh",)).stdout == "from the folder\n"
    assert commands.CommandRunner(variables)(("uname",)).code == 0
    commands.check_installed(("sh",), variables, "Slurm", "res1")
    with pytest.raises(ConfigurationError, match=f"res1: command {tmp_path}/uname not found; install Slurm's commands"):
        commands.check_installed(("sh", "uname"), variables, "Slurm", "res1")


def test_holds_belong_to_an_account_that_exists() -> None:
    assert commands.market_account("", "res1") == commands.own_account() == pwd.getpwuid(os.geteuid()).pw_name
    with pytest.raises(ConfigurationError, match=r"res1\.market_user: got 'nobody-here'"):
        commands.market_account("nobody-here", "res1")


def test_no_shell_reads_the_arguments() -> None:
    done = commands.CommandRunner()((*_python("import sys; print(sys.argv[1:])"), "$(id); `id`", "a b"))
    assert done.stdout.strip() == str(["$(id); `id`", "a b"])


def test_a_command_that_ends_before_it_has_read_its_input_has_answered() -> None:
    done = commands.CommandRunner()(_python("import os; os.close(0); print('done')"), stdin="x" * 5_000_000)
    assert (done.code, done.stdout) == (0, "done\n")


def test_input_and_output_are_whole() -> None:
    text = "y" * 1_000_000
    assert commands.CommandRunner()(("cat",), text).stdout == text


def test_what_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    program = f"import subprocess, time; c = subprocess.Popen(['sleep', '600']); open({str(pid)!r}, 'w')"
    program += ".write(str(c.pid)); time.sleep(600)"
    for limit_s in (1.5, 15, 150):  # as long as it takes to begin
        with pytest.raises(BatchSystemError, match="took more than"):
            commands.CommandRunner(time_limit_s=limit_s)(_python(program))
        if pid.exists() and pid.read_text():
            break
    child = int(pid.read_text())
    until(lambda: not is_alive(child))


def test_what_prints_too_much_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "OUTPUT_LIMIT", 1000)
    with pytest.raises(BatchSystemError, match="more than 1000 bytes"):
        commands.CommandRunner()(_python("while True: print('x' * 100)"))


def test_what_prints_for_ever_ends_with_the_process_that_ran_it(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    program = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid()))\n"
    program += "while True: print('x', flush=True); time.sleep(0.01)"
    owner = f"from ramp.batch.commands import CommandRunner; CommandRunner(time_limit_s=600)({_python(program)!r})"
    with subprocess.Popen([sys.executable, "-c", owner]) as running:
        until(lambda: pid.exists() and pid.read_text())
        running.kill()
    until(lambda: not is_alive(int(pid.read_text())))


def test_a_child_that_keeps_the_output_open_does_not_keep_us() -> None:
    began = time.monotonic()
    done = commands.CommandRunner(time_limit_s=300)(("sh", "-c", "sleep 290 & echo $!"))
    os.kill(int(done.stdout), signal.SIGKILL)
    assert time.monotonic() - began < 200


@pytest.mark.parametrize("argv", [("no-such-command-of-any-system",), ("/etc/passwd",), ("a\0b",)])
def test_what_cannot_be_run_is_missing(argv: tuple[str, ...]) -> None:
    with pytest.raises(BatchSystemError, match="cannot be run"):
        commands.CommandRunner()(argv)


def _said(code: int, stdout: str, stderr: str = "") -> commands.Question[int]:
    return commands.Question(
        _python(f"import sys; print({stdout!r}); print({stderr!r}, file=sys.stderr); sys.exit({code})"), int
    )


def test_an_answer_is_read_an_exit_code_is_not_passed_over() -> None:
    run = commands.CommandRunner()
    assert commands.ask(_said(0, "7"), run) == 7
    with pytest.raises(CommandFailed, match="exit code 3: slurm_load_jobs error") as failed:
        commands.ask(_said(3, "7", "slurm_load_jobs error"), run)
    assert (failed.value.code, failed.value.said) == (3, "slurm_load_jobs error")
    with pytest.raises(BatchSystemError, match="invalid literal"):
        commands.ask(_said(0, "seven"), run)


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    done = commands.CommandRunner()(_python("import sys; sys.stdout.buffer.write(b'a\\xffb')"))
    assert done == commands.Completed(done.argv, 0, "a\ufffdb", "")
