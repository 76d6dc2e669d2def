"""Files that go to a job and come back: what is packed, what a site may say, and where files are saved."""

import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from ramp.client.jobs import files
from ramp.client.jobs.files import files_of, save
from ramp.client.jobs.work import work_of
from ramp.errors import ConfigurationError, ControlLineError
from ramp.model.instant import to_datetime


def test_a_job_without_files_has_no_archive() -> None:
    work = work_of("a b", environment={"A": "b"})
    assert (work.arguments, work.archive) == (("a", "b"), b"")
    assert [(each.name, each.value) for each in work.variables] == [("A", "b")]


@pytest.mark.parametrize("as_script", [False, True])
def test_a_pipe_or_device_is_no_input_and_is_not_waited_for(tmp_path: Path, as_script: bool) -> None:
    os.mkfifo(tmp_path / "pipe")
    for each in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(ConfigurationError, match="cannot be staged: expected files, folders, or links to files"):
            work_of("a", script=each) if as_script else work_of("a", inputs=[each])


@pytest.mark.parametrize("why", ["file", "name", "folder", "stream"])
def test_inputs_go_into_an_archive(tmp_path: Path, why: str) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh")
    name = {"name": "ü b", "stream": "stdout"}.get(why, "data")
    given = [tmp_path / name]
    if why == "folder":
        (given[0] / "deep").mkdir(parents=True)
        (given[0] / "deep" / "x").write_text("y")
        (given[0] / "link").symlink_to(script)
    else:
        given[0].write_bytes(b"x")
    work = work_of("a", script=script, inputs=given)
    assert work.arguments == ("./job.sh", "a")
    with tarfile.open(fileobj=io.BytesIO(work.archive)) as archive:
        modes = {each.name: each.mode for each in archive}
        assert all(each.isreg() for each in archive)
    expected = {"data/deep/x", "data/link"} if why == "folder" else {each.name for each in given}
    assert modes.keys() == expected | {"job.sh"}
    assert modes["job.sh"] & 0o100
    assert work.archive == work_of("a", script=script, inputs=given).archive


def test_inputs_that_cannot_be_sent_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, big = tmp_path / "folder", tmp_path / "big"
    folder.mkdir()
    (folder / "loop").symlink_to(folder)
    with pytest.raises(ConfigurationError, match="links to files"):
        work_of("a", inputs=[folder])
    (tmp_path / "other").mkdir()
    for each in (tmp_path / "x", tmp_path / "other" / "x"):
        each.touch()
    with pytest.raises(ConfigurationError, match="two input files are called 'x'"):
        work_of("a", inputs=[tmp_path / "x", tmp_path / "other" / "x"])
    with pytest.raises(ConfigurationError, match="cannot be read"):
        work_of("a", inputs=[tmp_path / "none"])
    big.write_bytes(bytes(100_000))
    monkeypatch.setattr(files, "UNPACKED_BYTES_MAX", 90_000)
    with pytest.raises(ConfigurationError, match="too large"):
        work_of("a", inputs=[big])
    monkeypatch.setattr(files, "UNPACKED_BYTES_MAX", 900_000)
    monkeypatch.setattr(files, "ARCHIVE_BYTES_MAX", 50)
    with pytest.raises(ConfigurationError, match="too large"):
        work_of("a", inputs=[big])


def test_a_list_of_files_is_read() -> None:
    lines = b'["stdout", 0, 1000000]\n["a b/\\u00fc", 5, 2000000]\n'
    assert [(each.path, each.size, each.changed) for each in files_of(lines)] == [
        ("stdout", 0, to_datetime(1_000_000)),
        ("a b/ü", 5, to_datetime(2_000_000)),
    ]
    assert files_of(b"") == ()


@pytest.mark.parametrize(
    "entry",
    [
        ["../x", 0, 0],
        ["/etc/passwd", 0, 0],
        ["a\nb", 0, 0],
        ["\x1b[2J", 0, 0],
        ["a", -1, 0],
        ["a", 1.5, 0],
        ["a", True, 0],
        ["a", 0, 10**30],
        ["a", 0, None],
        [1, 0, 0],
        ["a", 0],
        {},
        3,
    ],
)
def test_a_list_that_a_site_has_made_up_is_refused(entry: object) -> None:
    with pytest.raises(ControlLineError, match="list of files is invalid"):
        files_of(json.dumps(entry).encode())


def test_files_are_saved_below_their_folder_only(tmp_path: Path) -> None:
    folder, secret = tmp_path / "results", tmp_path / "secret"
    secret.write_text("secret")
    assert save(folder, "a b/ü", b"1").read_bytes() == b"1"
    assert save(folder, "a b/ü", b"2").read_bytes() == b"2"
    (folder / "file").symlink_to(secret)
    (folder / "folder").symlink_to(tmp_path)
    for path in ("../secret", "/etc/passwd", "file", "folder/secret", "a b", "a b/ü/x", ""):
        with pytest.raises(ConfigurationError):
            save(folder, path, b"overwritten")
    assert secret.read_text() == "secret"
