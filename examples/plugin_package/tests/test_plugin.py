"""The plug-in keeps RAMP's contract, and sells what the site's own jobs leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from filebatch.batch import Batch, Window
from filebatch.plugin import open_plugin
from ramp.errors import ConfigurationError
from ramp.model.instant import HOUR, from_iso
from ramp.model.request import RequestUnit, TotalCores
from ramp.plugins.contract import Rule, Subject
from ramp.plugins.interface import PluginSettings, Slot

NOW = from_iso("2026-11-21T08:00:00Z")


def settings(file: Path, cores: int = 64) -> PluginSettings:
    return PluginSettings("desk1", cores=cores, cores_per_node=8, started_at=NOW, options={"file": str(file)})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A batch system where 16 of 64 cores run a job for two hours."""
    file = tmp_path / "batch.sqlite"
    batch = Batch(file)
    with batch.changing():
        batch.add_job("own", Window(NOW, NOW + 2 * HOUR, 16))
    return file


def test_keeps_the_contract(plugin_rule: Rule, file: Path, tmp_path: Path) -> None:
    plugin_rule.check(Subject(open_plugin, settings(file), NOW, tmp_path / "states"))


def test_keeps_the_contract_with_a_file_of_its_own(plugin_rule: Rule, tmp_path: Path) -> None:
    plugin_rule.check(Subject(open_plugin, PluginSettings("desk2", 16, 8, NOW), NOW, tmp_path))


def test_more_than_the_jobs_leave_waits_for_them(file: Path) -> None:
    unit = RequestUnit(1, 70, NOW + 12 * HOUR, TotalCores(49), not_before=NOW, wall_time=HOUR)
    slot = open_plugin(settings(file)).quote(unit, NOW)
    assert isinstance(slot, Slot)
    assert (slot.start, slot.load) == (NOW + 2 * HOUR, 0.0)


@pytest.mark.parametrize("options", [{"file": 7}, {"flie": "x"}])
def test_wrong_options_are_told(options: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="desk1"):
        open_plugin(PluginSettings("desk1", 64, 8, NOW, options))
