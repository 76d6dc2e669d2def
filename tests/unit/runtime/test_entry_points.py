"""What installed packages declare is read once, and again when a package has come or gone."""

import shutil
from importlib import metadata
from pathlib import Path

import pytest

from ramp.entry_points import entry_points

GROUP = "ramp.test_group"


def install(folder: Path, package: str, entry: str) -> Path:
    """Put a package's description into a folder, as an installer does: whole, by one move."""
    made = folder.parent / f"{package}-unpacked"
    made.mkdir()
    (made / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
    (made / "entry_points.txt").write_text(f"[{GROUP}]\n{entry} = {package}:thing\n")
    return made.rename(folder / f"{package}-1.dist-info")


def test_they_are_those_of_the_standard_library() -> None:
    for group in ("ramp.pricing", "ramp.commands", "console_scripts"):
        assert entry_points(group) == list(metadata.entry_points(group=group)) != []
    assert entry_points(GROUP) == []


def test_what_comes_and_goes_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    first = install(folder, "first", "one")
    monkeypatch.syspath_prepend(str(folder))
    assert [entry.name for entry in entry_points(GROUP)] == ["one"]
    install(folder, "second", "two")
    assert sorted(entry.name for entry in entry_points(GROUP)) == ["one", "two"]
    shutil.rmtree(first)
    assert [entry.value for entry in entry_points(GROUP)] == ["second:thing"]


def test_no_file_is_read_a_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    before = entry_points("ramp.pricing")
    monkeypatch.setattr(metadata, "entry_points", lambda **_: pytest.fail("read again"))
    assert entry_points("ramp.pricing") == before != []
