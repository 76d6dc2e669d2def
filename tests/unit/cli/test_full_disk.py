"""A full disk and an output that cannot be written are named as such, and leave nothing half-written."""

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from ramp.cli.main import main
from ramp.client.swarm import start_detached
from ramp.errors import StorageFailed
from ramp.runtime.atomic_writes import write_output
from ramp.runtime.state_folder import state_folder
from tests.unit.cli.every_command import COMMANDS

NEW = ("rfq", "new", "--cores", "4", "--walltime", "1h", "--price", "5")


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.parametrize("words", [*((*words, "--help") for words in COMMANDS), NEW], ids=" ".join)
def test_an_output_that_cannot_be_written_is_an_error_about_the_output(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with Path("/dev/full").open("w") as full, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        assert main(words) == 1
    assert capsys.readouterr().err == "ramp: cannot write the output: disk full\n"


def test_messages_that_cannot_be_written_do_not_change_the_exit_code() -> None:
    with suppress(OSError), Path("/dev/full").open("w", buffering=1) as full, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", full)
        assert main(["rfq", "new", "--cores", "x"]) == 2


@pytest.mark.usefixtures("full_disk")
def test_a_request_on_a_full_disk_leaves_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*NEW, "-o", str(tmp_path / "job.xml")]) == 1
    assert capsys.readouterr().err == f"ramp: disk full: {tmp_path / 'job.xml'}\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("full_disk")
def test_an_older_file_stays_whole(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    with pytest.raises(StorageFailed, match="disk full"):
        write_output(tmp_path / "old", "new")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("old", "old")]


def test_a_device_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_output(pipe, "text")
    assert (os.read(reader, 9), pipe.is_fifo()) == (b"text", True)
    os.close(reader)


@pytest.mark.usefixtures("full_disk")
def test_a_launch_on_a_full_disk_says_so_before_it_starts_anything(tmp_path: Path) -> None:
    state = state_folder(tmp_path / "state")
    with pytest.raises(StorageFailed, match="disk full"):
        start_detached(tmp_path / "market.toml", state)
    assert not (state.logs / "supervisor.log").exists()
