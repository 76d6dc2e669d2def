"""The contract of all plug-ins, kept by `gridengine` over a real Grid Engine."""

import pytest

from ramp.batch.gridengine.plugin import open_plugin
from ramp.plugins.contract import Subject
from ramp.plugins.interface import PluginSettings
from tests.e2e.gridengine.gridengine_selling import SLOTS, now, options_of

pytestmark = [pytest.mark.e2e, pytest.mark.full]


def test_keeps_the_contract(plugin_rule, cluster, tmp_path):
    begun = now()
    settings = PluginSettings("ge1", SLOTS, 8, begun, options_of(cluster))
    plugin_rule.check(Subject(open_plugin, settings, begun, tmp_path / "states"))
