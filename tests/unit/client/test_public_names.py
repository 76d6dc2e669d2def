"""`import ramp`: what it offers, and what it does not load."""

import inspect
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import ramp

HEAVY = ("numba", "matplotlib", "spade", "slixmpp", "numpy", "pandas")


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import ramp", "name.startswith('ramp.')"),
        ("import ramp; [getattr(ramp, name) for name in ramp.__all__]", f"name in {HEAVY!r}"),
    ],
    ids=["the import nothing of the package", "no public name what is heavy"],
)
def test_what_is_not_loaded(statement: str, unwanted: str) -> None:
    probe = f"{statement}; import sys; print(*(name for name in sys.modules if {unwanted}))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("name", ramp.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    assert getattr(ramp, name).__doc__
    assert name in dir(ramp)


def test_the_names_for_type_checkers_are_those_that_are_loaded() -> None:
    """The imports under TYPE_CHECKING and the table of places say the same."""
    source = Path(ramp.__file__).read_text("utf-8")
    shown = source.replace("if TYPE_CHECKING:", "if True:").partition("_PLACES = {")[0]
    names: dict[str, object] = {}
    exec(shown, names)
    public = {name: value for name, value in names.items() if name in ramp.__all__}
    assert public == {name: getattr(ramp, name) for name in ramp.__all__}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'sell'"):
        ramp.sell  # noqa: B018


def test_every_error_that_is_raised_has_an_exit_code() -> None:
    for name in ("NoMarket", "MarketRefused", "ConfigurationError", "DocumentError", "TransportError"):
        assert issubclass(getattr(ramp, name), ramp.RampError)
    assert typing.get_type_hints(ramp.RampError)["exit_code"] is int


def test_the_blocking_market_offers_every_method_of_the_one_for_asyncio() -> None:
    for name, method in vars(ramp.AsyncMarket).items():
        if name.startswith("_"):
            continue
        blocking = getattr(ramp.Market, name)
        assert inspect.signature(blocking).parameters == inspect.signature(method).parameters, name
        assert blocking.__doc__, name
        assert not inspect.iscoroutinefunction(blocking), name
