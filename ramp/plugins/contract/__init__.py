"""The contract of resource plug-ins (`ramp.plugins.interface`), as rules that run against any plug-in.

`ramp plugins check NAME` runs them from the command line. In a plug-in's own tests the pytest plug-in that comes with
RAMP passes them to every test with the argument `plugin_rule`::

    def test_keeps_the_contract(plugin_rule, tmp_path):
        settings = PluginSettings("desk", cores=64, cores_per_node=8, started_at=from_iso("2026-11-21T08:00:00Z"))
        plugin_rule.check(Subject(open_plugin, settings, settings.started_at, tmp_path))
"""

from ramp.plugins.contract.checking import RULES, Result, Verdict, check_plugin
from ramp.plugins.contract.subject import ContractBroken, NotChecked, Rule, Subject

__all__ = ["RULES", "ContractBroken", "NotChecked", "Result", "Rule", "Subject", "Verdict", "check_plugin"]
