"""Where `make test` has its temporary files."""

from __future__ import annotations

from pathlib import Path

import memory_folder
import pytest


def test_memory_is_taken_where_it_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_folder, "ENOUGH", 1)
    assert memory_folder.memory_folder({}, tmp_path) == tmp_path
    monkeypatch.setattr(memory_folder, "ENOUGH", 1 << 70)  # as in a container
    assert memory_folder.memory_folder({}, tmp_path) is None


def test_what_somebody_has_named_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_folder, "ENOUGH", 1)
    assert memory_folder.memory_folder({"TMPDIR": "/var/tmp"}, tmp_path) is None


def test_there_may_be_none_and_programs_may_not_run_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_folder, "ENOUGH", 1)
    assert memory_folder.memory_folder({}, tmp_path / "none") is None
    proc = Path("/proc")  # mounted without the right to run anything, and nothing can be written there
    assert memory_folder.memory_folder({}, proc) is None
