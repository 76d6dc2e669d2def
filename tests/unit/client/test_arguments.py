"""What callers and people type: arguments, requests, times and identifiers, checked before anybody is asked."""

import inspect
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ramp
from ramp.client import dialogues
from ramp.client.connecting import MarketOperator
from ramp.client.identifiers import matching, shortened
from ramp.client.request import combined, document_of, resolved
from ramp.client.times import duration_of, moment_of, whole_seconds_up
from ramp.control.events import AgreementsListed, AgreementStanding, RequestsListed
from ramp.errors import ConfigurationError
from ramp.model.agreement import Agreement
from ramp.model.instant import DAY, HOUR, MINUTE, SECOND, from_datetime, from_iso, local_iso, with_local_times
from ramp.model.offer import Offer
from ramp.model.request import Nodes, RequestUnit, TorusTerms, TotalCores, TotalDiskSpace
from ramp.protocol.events import AgreementResized
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
    "price": 70, "any_id": "a1", "resource": "r1", "resources": (), "name": "n", "definition": "x",
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


def unit(**terms):
    (only,) = ramp.request(price=70, **terms).at(NOW).units
    return only


def test_what_is_left_out_can_be_bought_at_once() -> None:
    only = unit(cores=64, wall_time="30min")
    assert (only.cores, only.cpu_hour_cost, only.not_before) == (TotalCores(64), 70, None)
    assert (only.wall_time, only.deadline) == (30 * MINUTE, NOW + 90 * MINUTE)


def test_times_are_those_of_the_submission() -> None:
    template = ramp.request(cores=1, price=1, wall_time=timedelta(hours=2), start="+10min", slack="0")
    for now in (NOW, NOW + HOUR):
        (only,) = template.at(now).units
        assert (only.not_before, only.deadline) == (now + 10 * MINUTE, now + 10 * MINUTE + 2 * HOUR)


def test_aware_datetimes_are_taken_and_naive_ones_refused() -> None:
    assert unit(cores=1, start=datetime(2026, 12, 1, tzinfo=UTC), end="2026-12-02").deadline == from_iso("2026-12-02")
    with pytest.raises(ramp.ConfigurationError, match="no time zone"):
        unit(cores=1, wall_time="1h", start=datetime(2026, 12, 1))  # noqa: DTZ001


def test_nodes_disks_and_torus_terms() -> None:
    only = unit(nodes=4, node_cores=16, wall_time="1h", disk_gb=9, geometry=(8, 8, 16), connection="mesh")
    assert (only.cores, only.disk) == (Nodes(4, 16), TotalDiskSpace(9))
    assert only.torus == TorusTerms((8, 8, 16), rotate=True, connection="mesh")


def test_several_requests_are_one_with_their_units_in_order() -> None:
    first, second = (ramp.request(cores=cores, price=1, wall_time="1h") for cores in (8, 16))
    both = resolved([second, first.at(NOW)], NOW)
    assert [(each.number, each.cores.total) for each in both.units] == [(1, 16), (2, 8)]
    assert combined([both]) == both
    with pytest.raises(ramp.ConfigurationError, match="at least one request"):
        resolved([], NOW)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90", 90 * SECOND),
        ("0.5", SECOND // 2),
        ("1w", 7 * DAY),
        ("90s", 90 * SECOND),
        ("5min", 5 * MINUTE),
        ("1h30min", 90 * MINUTE),
        ("1 h 30 min", 90 * MINUTE),
        ("1.5h", 90 * MINUTE),
        ("2d", 2 * DAY),
        ("24h", DAY),
        ("01:30:00", 90 * MINUTE),
        ("1:30", 90 * MINUTE),
        ("2-12:00:00", 60 * HOUR),
    ],
)
def test_durations_are_read(text, expected):
    assert duration_of(text) == expected


@pytest.mark.parametrize("text", ["", "soon", "5 parsecs", "-5min", "1h foo", "1:75", "h", "1e3"])
def test_what_is_no_duration_is_refused_with_what_would_be_right(text):
    with pytest.raises(ValueError, match="expected a length such as 90s"):
        duration_of(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", "2026-11-21T08:30:00Z"),
        ("+5min", "2026-11-21T08:35:00Z"),
        ("+1d", "2026-11-22T08:30:00Z"),
        ("2026-11-23T10:00", "2026-11-23T10:00:00Z"),
        ("2026-11-23 10:00:00+01:00", "2026-11-23T09:00:00Z"),
        ("2026-11-23", "2026-11-23T00:00:00Z"),
        ("-1h", "2026-11-21T07:30:00Z"),
        ("-2d", "2026-11-19T08:30:00Z"),
        ("today", "2026-11-21T00:00:00Z"),
        ("yesterday", "2026-11-20T00:00:00Z"),
        ("tomorrow", "2026-11-22T00:00:00Z"),
        ("Tomorrow  08:00", "2026-11-22T08:00:00Z"),
        ("yesterday at 18:05", "2026-11-20T18:05:00Z"),
        ("18:00", "2026-11-21T18:00:00Z"),
        ("08:30", "2026-11-22T08:30:00Z"),  # it is that now: the next one
        ("8:00z", "2026-11-22T08:00:00Z"),
        ("monday 06:00", "2026-11-23T06:00:00Z"),  # 2026-11-21 is a Saturday
        ("saturday", "2026-11-28T00:00:00Z"),
    ],
)
def test_moments_are_read(text, expected):
    assert moment_of(text, NOW) == from_iso(expected)


@pytest.mark.parametrize(
    "text", ["", "5min", "tomorrow morning", "soon", "25:00", "21/11/2026", "2026-13-01", "+", "+x"]
)
def test_what_is_no_moment_is_refused(text):
    with pytest.raises(ValueError, match="expected a time such as now"):
        moment_of(text, NOW)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tomorrow 18:00", "2026-11-22T23:00:00Z"),
        ("today", "2026-11-21T05:00:00Z"),  # it is 3:30 there
        ("18:00", "2026-11-21T23:00:00Z"),
        ("03:00", "2026-11-22T08:00:00Z"),
        ("18:00z", "2026-11-21T18:00:00Z"),
        ("2026-07-01", "2026-07-01T04:00:00Z"),  # summer time
        ("2026-11-23T10:00", "2026-11-23T15:00:00Z"),
        ("2026-11-23T10:00Z", "2026-11-23T10:00:00Z"),
        ("+1d", "2026-11-22T08:30:00Z"),
    ],
)
def test_a_moment_without_a_zone_is_in_the_zone_of_the_computer(new_york, text, expected):
    assert moment_of(text, NOW) == from_iso(expected)


def test_the_times_in_the_sentence_of_another_party_are_local_and_whole_seconds(new_york):
    said = "it ends at 2026-11-28T17:56:46.467527Z, after 2026-11-28T17:00:00Z; not 2026-99-99T99:99:99Z or 2026-11-28"
    assert with_local_times(said) == (
        "it ends at 2026-11-28T12:56:46-05:00, after 2026-11-28T12:00:00-05:00; not 2026-99-99T99:99:99Z or 2026-11-28"
    )
    assert with_local_times("at 2026-11-28T17:56:46.467527Z", lambda at: str(at % 10)) == "at 7"


def test_a_moment_for_people_names_its_zone_and_can_be_read_again(new_york):
    assert local_iso(NOW + 467_527) == "2026-11-21T03:30:00-05:00"
    assert moment_of(local_iso(NOW), 0) == NOW


@pytest.mark.parametrize("text", ["+99999999d", "-99999999d", "9999-12-31T23:59", "0001-01-01", "9000-01-01T00:00Z"])
def test_a_moment_out_of_range_is_refused(text):
    with pytest.raises(ValueError, match=r"time out of range: got .*, expected a time from 1970 to 8999"):
        moment_of(text, NOW)


@pytest.mark.parametrize("text", ["0001-01-01", "9999-12-31T23:59"])
def test_the_ends_of_the_calendar_are_out_of_range_in_any_zone(new_york, text):
    with pytest.raises(ValueError, match="time out of range: got"):
        moment_of(text, NOW)


@pytest.mark.parametrize("text", ["999999999w", "999999999d999999999d"])
def test_a_duration_out_of_range_is_refused(text):
    with pytest.raises(ValueError, match=r"below 317 years: got .*, expected a length such as 90s"):
        duration_of(text)


def test_seconds_are_rounded_up_and_whole_ones_stay():
    assert whole_seconds_up(NOW) == NOW
    assert whole_seconds_up(NOW + 1) == NOW + SECOND


OFFER = Offer("o1", "r1", 1, "res", 60, HOUR, 5 * HOUR, 16, 0.0, HOUR)
UNIT = RequestUnit(1, 70, 5 * HOUR, TotalCores(16), HOUR)
AGREEMENT = Agreement("a1", "r1", 1, "alice", "res", "bank", UNIT, OFFER, "R1", OFFER.cost, 0, "order-1", HOUR)
LONGEST = (10**10 - 1) * SECOND
"""Longest run that a request may ask for: ten digits of seconds."""


@pytest.mark.parametrize(
    ("wish", "right"),
    [
        (AgreementResized("", cores=900_000_000_000_000_000_000), "must be 1 to 1000000000000"),
        (AgreementResized("", cores=10**12 + 1), "must be 1 to 1000000000000"),
    ],
)
def test_what_no_request_may_name_is_refused_at_once(wish: AgreementResized, right: str) -> None:
    with pytest.raises(ConfigurationError, match=right):
        next(dialogues.resize(("R1",), wish))


def asked(wish: AgreementResized) -> object:
    """What the agent is asked once it has told what was bought."""
    dialogue = dialogues.resize(("R1",), wish)
    next(dialogue)
    dialogue.send(RequestsListed(()))
    return dialogue.send(AgreementsListed((AgreementStanding(AGREEMENT, "active"),)))


def test_no_slot_lasts_longer_than_the_longest_run() -> None:
    for until in (from_datetime(datetime(8999, 12, 31, tzinfo=UTC)), OFFER.start + LONGEST + 1):
        with pytest.raises(ConfigurationError, match="must be 2286-11-20T18:46:39Z at the latest"):
            asked(AgreementResized("", until=until))
    longest = AgreementResized("", cores=10**12, until=OFFER.start + LONGEST)
    assert asked(longest) == AgreementResized("a1", 10**12, OFFER.start + LONGEST)


IDS = st.lists(st.text("0123456789abcdef", min_size=24, max_size=24).map("request-{}".format), unique=True, max_size=20)


@given(IDS)
def test_what_is_shown_is_understood(identifiers: list[str]) -> None:
    for identifier, short in shortened(identifiers).items():
        assert len(short) >= 6
        assert matching(identifiers, short, str) == [identifier]


@given(IDS)
def test_nothing_shorter_would_do(identifiers: list[str]) -> None:
    shown = set(shortened(identifiers).values())
    length = max(map(len, shown), default=6)
    if length > 6:
        assert len({identifier.removeprefix("request-")[: length - 1] for identifier in identifiers}) < len(identifiers)


@pytest.mark.parametrize(
    ("given_id", "found"),
    [
        ("thunder1.7", ["thunder1.7"]),  # though another begins with it
        ("thunder1.", ["thunder1.7", "thunder1.71"]),
        ("agreement-1f", ["agreement-1f0c9a"]),
        ("1f", ["agreement-1f0c9a"]),
        ("", []),
        ("2", []),
    ],
)
def test_an_exact_id_is_itself_and_a_beginning_all_that_begin_so(given_id: str, found: list[str]) -> None:
    assert matching(["thunder1.7", "thunder1.71", "agreement-1f0c9a"], given_id, str) == found
