"""A pytest plug-in that passes the contract's rules, one by one, to tests with the argument `plugin_rule`.

Projects name it themselves: `addopts = ["-p", "ramp.plugins.contract.pytest_plugin"]`. An entry point would make
pytest rewrite the assertions of all of RAMP, in every project that installs it.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

FIXTURE = "plugin_rule"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run such a test once for every rule."""
    if FIXTURE in metafunc.fixturenames:
        from ramp.plugins.contract.checking import RULES

        metafunc.parametrize(FIXTURE, RULES, ids=[rule.name for rule in RULES])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Show a rule that cannot be tried as a skipped test, with the reason."""
    if FIXTURE not in getattr(item, "fixturenames", ()):
        return (yield)
    from ramp.plugins.contract.subject import NotChecked

    try:
        return (yield)
    except NotChecked as why:
        pytest.skip(str(why))
