"""Files in the folder of a job, which the job itself may have made: nothing there leads elsewhere, blocks or floods."""

import os
import socket
from pathlib import Path

import pytest

from ramp.launching import worker


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "jobs" / "res" / "job-1"
    (found / "work" / "deep").mkdir(parents=True)
    return found


def test_a_file_in_subfolders_is_read_and_written(folder: Path) -> None:
    worker.write(folder, "work/deep/x", b"hello", 0o700)
    assert worker.piece_of(folder, "work/deep/x", 1, 3) == (b"ell", 5)
    worker.write(folder, "work/deep/x", b"hi")
    assert worker.text_of(folder, "work/deep/x") == "hi"
    assert (folder / "work/deep/x").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("kind", ["link", "pipe", "socket", "folder", "linked folder", "nothing"])
def test_what_is_no_regular_file_is_refused_at_once(folder: Path, tmp_path: Path, kind: str) -> None:
    name, secret = "work/x", tmp_path / "secret"
    secret.write_text("secret")
    path = folder / name
    if kind == "link":
        path.symlink_to(secret)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(os.path.relpath(path))
    elif kind == "folder":
        path.mkdir()
    elif kind == "linked folder":
        path.symlink_to(tmp_path)
        name = "work/x/secret"
    with pytest.raises(OSError):
        worker.piece_of(folder, name, 0, 100)
    assert worker.text_of(folder, name) == ""
    if kind != "nothing":
        with pytest.raises(OSError):
            worker.write(folder, name, b"overwritten")
    assert secret.read_text() == "secret"


@pytest.mark.parametrize("part", ["", "res", "res/job-1"])
def test_a_job_cannot_replace_its_own_folder_by_a_link(folder: Path, tmp_path: Path, part: str) -> None:
    worker.write(folder, "work/x", b"hello")
    (tmp_path / "jobs" / part).rename(tmp_path / "moved")
    (tmp_path / "jobs" / part).symlink_to(tmp_path / "moved")
    with pytest.raises(OSError):
        worker.piece_of(folder, "work/x", 0, 100)


def test_a_file_is_read_only_as_far_as_is_wanted(folder: Path) -> None:
    worker.write(folder, "big", b"x" * 100_000)
    assert len(worker.text_of(folder, "big")) == worker.SMALL_MAX


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../job-2/x", "work/../../x", "work//x", "work/", ".", "a\0b"])
def test_a_name_cannot_lead_out_of_the_folder(folder: Path, name: str) -> None:
    with pytest.raises(worker.WrongQuestion, match="invalid file name"):
        worker.opened(folder, name)
