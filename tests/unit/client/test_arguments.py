"""Every argument of the Python interface is checked at its edge, with one table of hostile values for all."""

import inspect
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NoReturn

import pytest

import ramp
from ramp.client.connecting import MarketOperator
from ramp.client.request import document_of
from ramp.model.instant import from_iso
from ramp.runtime.state_folder import state_folder

NOW = from_iso("2026-11-21T08:30:00Z")
NAIVE = datetime.fromisoformat("2026-12-01")
OF_NO_TYPE = (object(), b"8", date(2026, 12, 1), {"a": 1})
"""Values that no argument takes."""
HOSTILE = (
    *(*OF_NO_TYPE, None, True, -1, 0, 8, 10**30, 10**5000, 70.5, float("nan"), float("inf")),
    *(Decimal("NaN"), Decimal("1e30"), timedelta(-3), timedelta.max, NAIVE, datetime.max.replace(tzinfo=UTC)),
    *("", "8", "-1", "1e15", "fastest", "a b", "ünï", "\x00", "\ud800", "\n", "x" * 300),
    *("+99999999d", "9999-12-31T23:59", "0001-01-01", [], ["x"], (8, 8), (-1, 8, 9), [object()]),
)
REQUIRED = {
    "price": 70, "any_id": "a1", "any_ids": ("a1",), "resource": "r1", "names": ("r1",), "name": "n", "definition": "x",
    "account": "alice", "amount": 5, "folder": "/nonexistent", "agreement_id": "a1", "request_id": "r1",
    "reason": "a fault", "role": "user",
}  # fmt: skip
NOT_FOR_USERS = {"follow", "ask", "change", "access", "user", "short", "close"}
"""Names that take objects of RAMP only, or nothing."""


class NoMarketHere:
    """An access whose market is gone: a call that reaches it has passed all checks."""

    user, domain, users = "alice", "localhost", ("alice",)

    def now(self) -> int:
        return NOW

    def new_id(self, kind: str) -> str:
        return f"{kind}-1"

    async def open(self) -> NoReturn:
        raise ramp.NoMarket("none")

    reopen = open  # noqa: A003 - the name of the protocol


def methods(of: object) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in dir(of):
        if not name.startswith("_") and name not in NOT_FOR_USERS:
            yield f"{type(of).__name__}.{name}", getattr(of, name)


def called(tmp_path: Any) -> dict[str, Callable[..., Any]]:
    state = state_folder(tmp_path)
    found = {name: getattr(ramp, name) for name in ("request", "connect", "connect_async", "operate", "launch")}
    found["launch_async"] = ramp.launch_async
    for of in (ramp.Market(NoMarketHere()), ramp.AsyncMarket(NoMarketHere()), MarketOperator(state)):
        found.update(methods(of))
    return found


def arguments() -> list[tuple[str, str]]:
    return [
        (place, name)
        for place, function in called("/nonexistent").items()
        for name in inspect.signature(function).parameters
        if not (place.startswith("Async") and place.endswith("Market.watch"))
    ]


def call(function: Callable[..., Any], argument: str, value: object) -> None:
    parameters = inspect.signature(function).parameters
    needed = {
        name for name, each in parameters.items() if each.default is each.empty and each.kind is not each.VAR_POSITIONAL
    }
    given = {name: REQUIRED[name] for name in needed} | {argument: value}
    if parameters[argument].kind is inspect.Parameter.VAR_POSITIONAL:
        result = function(*(REQUIRED[name] for name in parameters if name in needed), value)
    else:
        plain = [ramp.request(price=1, cores=1, wall_time="1h")] if "requests" in parameters else []
        if function is ramp.request and "wall_time" not in given:
            given |= {"wall_time": "1h"} | ({} if argument in ("cores", "nodes", "node_cores") else {"cores": 4})
        result = function(*plain, **given)
    if inspect.isgenerator(result):
        next(result)
    if inspect.iscoroutine(result):
        result.close()  # `ramp.Market` runs the same body
    if isinstance(result, ramp.RequestTemplate):
        document_of(result.at(NOW))


@pytest.mark.parametrize(("place", "argument"), arguments())
def test_an_argument_of_no_possible_type_is_refused_with_its_name(place: str, argument: str, tmp_path: Any) -> None:
    function = called(tmp_path)[place]
    for value in OF_NO_TYPE:
        with pytest.raises(ramp.ConfigurationError, match=rf"^{argument}(\[0\]|\.a)?: got .*, expected ."):
            call(function, argument, value)


@pytest.mark.parametrize(("place", "argument"), [each for each in arguments() if not each[0].startswith("launch")])
def test_hostile_arguments_end_in_errors_of_ramp(place: str, argument: str, tmp_path: Any) -> None:
    function = called(tmp_path)[place]
    for value in HOSTILE:
        told = ""
        try:
            call(function, argument, value)
        except ramp.RampError as error:
            told = str(error)
        assert len(told) < 1200, value
        assert "\x00" not in told, value


@pytest.mark.parametrize(
    ("terms", "told"),
    [
        ({"cores": -1}, "cores: got -1, expected whole number from 1 to 1000000000000 or text or list"),
        ({"price": 70.5}, "price: got 70.5, expected a whole number"),
        ({"price": 0}, "price: got 0, expected a whole number from 1 to 1000000000000"),
        ({"wall_time": -3}, "wall_time: got -3, expected text or timedelta"),
        ({"wall_time": "0s"}, "wall_time: must be above 0 and below 317 years: got '0s'"),
        ({"start": date(2026, 12, 1)}, "start: got datetime.date(2026, 12, 1), expected text or datetime"),
        ({"start": NAIVE}, "start: no time zone: got '2026-12-01T00:00:00'"),
        ({"connection": "ring"}, "connection: got 'ring', expected one of torus, mesh, any"),
        ({"start_probability": 2}, "start_probability: got 2, expected a number above 0 and at most 1"),
    ],
)
def test_python_refuses_what_the_terminal_refuses(terms: dict[str, Any], told: str) -> None:
    with pytest.raises(ramp.ConfigurationError) as caught:
        ramp.request(**{"price": 70, "cores": 4, "wall_time": "1h"} | terms)
    assert str(caught.value).startswith(told)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"prefer": "fastest"}, "prefer: got 'fastest', expected one of cheapest, soonest"),
        ({"max_cost": -1}, "max_cost: must be above 0: got '-1', expected an amount such as 100 or 99.50"),
        ({"max_cost": 99.5}, "max_cost: got 99.5, expected whole number or text or Decimal"),
        ({"max_cost": "1e15"}, "max_cost: invalid amount of credits: got '1e15'"),
        ({"rounds": 0}, "rounds: got 0, expected a whole number from 1 to 100"),
        ({"approve": "never"}, "approve: got 'never', expected auto or best-offer or function"),
    ],
)
def test_options_of_an_auction_name_what_is_allowed(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ramp.ConfigurationError) as caught:
        ramp.Market(NoMarketHere()).submit(ramp.request(price=1, cores=1, wall_time="1h"), **options)
    assert str(caught.value).startswith(told)


def test_a_new_size_is_a_number() -> None:
    market = ramp.Market(NoMarketHere())
    with pytest.raises(ramp.ConfigurationError, match="cores: got '8', expected a whole number"):
        market.resize("a1", cores="8")  # type: ignore[arg-type]
    with pytest.raises(ramp.ConfigurationError, match="max_cost: must be above 0: got '-1'"):
        market.resize("a1", cores=8, max_cost=-1)
