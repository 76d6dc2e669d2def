"""Where `make test` has its temporary files."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import memory_folder
import pytest

GIGABYTE = 1 << 30


@pytest.fixture
def space(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What every folder is told to be like: two gigabytes are free, and programs may be run."""
    found = SimpleNamespace(f_flag=0, f_frsize=4096, f_bavail=2 * GIGABYTE // 4096)
    monkeypatch.setattr(memory_folder.os, "statvfs", lambda folder: found)
    return found


def test_memory_is_taken_where_it_is_enough(tmp_path: Path, space: SimpleNamespace) -> None:
    assert memory_folder.memory_folder({}, tmp_path) == tmp_path
    space.f_bavail = GIGABYTE // 4096 - 1  # as in a container
    assert memory_folder.memory_folder({}, tmp_path) is None


def test_what_somebody_has_named_stays(tmp_path: Path, space: SimpleNamespace) -> None:
    assert memory_folder.memory_folder({"TMPDIR": "/var/tmp"}, tmp_path) is None


def test_there_may_be_none(tmp_path: Path, space: SimpleNamespace) -> None:
    assert memory_folder.memory_folder({}, tmp_path / "none") is None


def test_programs_may_have_to_run_elsewhere(tmp_path: Path, space: SimpleNamespace) -> None:
    space.f_flag = os.ST_NOEXEC | os.ST_NOSUID
    assert memory_folder.memory_folder({}, tmp_path) is None
