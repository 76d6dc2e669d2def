"""Both kinds of batch machine, over a system in memory, keep the contract of plug-ins."""

from pathlib import Path

import pytest

from ramp.batch.for_sale import ForSale
from ramp.batch.machine import BatchMachine
from ramp.batch.resizable_machine import ResizableBatchMachine
from ramp.errors import ConfigurationError
from ramp.model.instant import MINUTE, from_iso
from ramp.plugins.contract import Rule, Subject
from ramp.plugins.interface import PluginSettings
from tests.unit.batch.fake_system import FakeSystem

NOW = from_iso("2026-11-21T08:00:00Z")


@pytest.mark.parametrize("kind", [BatchMachine, ResizableBatchMachine])
def test_keeps_the_contract(kind: type[BatchMachine], plugin_rule: Rule, tmp_path: Path) -> None:
    system = FakeSystem()

    def open_plugin(settings: PluginSettings) -> BatchMachine:
        if settings.options:
            raise ConfigurationError("unknown")
        return kind(system, settings.resource, settings.cores, ForSale(), settings.state_dir)

    subject = Subject(open_plugin, PluginSettings("big1", 64, 8, NOW - MINUTE), NOW, tmp_path / "states")
    plugin_rule.check(subject)
    assert not system.there, "what was given back is on the system still"
