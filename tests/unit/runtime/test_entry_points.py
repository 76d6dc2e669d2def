"""What installed packages declare is read once, and again when a package has come or gone."""

import shutil
from importlib import metadata
from pathlib import Path

import pytest

from ramp.entry_points import entry_points
from tests.packages import install

GROUP = "ramp.test_group"


def test_they_are_those_of_the_standard_library() -> None:
    for group in ("ramp.pricing", "ramp.commands", "console_scripts"):
        assert entry_points(group) == list(metadata.entry_points(group=group)) != []
    assert entry_points(GROUP) == []


def test_what_comes_and_goes_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "site"
    first = install(folder, "first", f"[{GROUP}]\none = first:thing\n")
    monkeypatch.syspath_prepend(str(folder))
    assert [entry.name for entry in entry_points(GROUP)] == ["one"]
    install(folder, "second", f"[{GROUP}]\ntwo = second:thing\n")
    assert sorted(entry.name for entry in entry_points(GROUP)) == ["one", "two"]
    shutil.rmtree(first)
    assert [entry.value for entry in entry_points(GROUP)] == ["second:thing"]


def test_no_file_is_read_a_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    before = entry_points("ramp.pricing")
    monkeypatch.setattr(metadata, "entry_points", lambda **_: pytest.fail("read again"))
    assert entry_points("ramp.pricing") == before != []
