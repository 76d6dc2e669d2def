"""Short identifiers: a unique beginning is enough."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeVar

from ramp.control.events import AgreementStanding, RequestStanding
from ramp.errors import ConfigurationError

SHORTEST: Final = 6
"""Minimum number of characters shown of an identifier's random part."""

LISTED: Final = 5
"""Maximum number of ids listed for an ambiguous short id."""

T = TypeVar("T")


def random_part(identifier: str) -> str:
    """Return an identifier without its kind: `1f0c9a5e7b3d2c4a` of `request-1f0c9a5e7b3d2c4a`."""
    return identifier.partition("-")[2] or identifier


def shortened(identifiers: Collection[str]) -> dict[str, str]:
    """Return, for each identifier, the shortest unique beginning of its random part."""
    parts = {identifier: random_part(identifier) for identifier in identifiers}
    length = SHORTEST
    while len({part[:length] for part in parts.values()}) < len(set(parts.values())):
        length += 1
    return {identifier: part[:length] for identifier, part in parts.items()}


def matching(entries: Sequence[T], any_id: str, key: Callable[[T], str]) -> list[T]:
    """Return the entry with this id; otherwise the entries whose id, or its random part, begins with it."""
    exact = [entry for entry in entries if key(entry) == any_id]
    if exact or not any_id:
        return exact
    return [entry for entry in entries if key(entry).startswith(any_id) or random_part(key(entry)).startswith(any_id)]


def belonging(
    any_id: str, requests: Sequence[RequestStanding], agreements: Sequence[AgreementStanding]
) -> tuple[RequestStanding | None, tuple[AgreementStanding, ...]]:
    """Find the one agreement (or reservation) that an id means, or the request with all its agreements."""
    bought = matching(agreements, any_id, lambda each: each.agreement.agreement_id) or matching(
        agreements, any_id, lambda each: each.reservation_id
    )
    asked = matching(requests, any_id, lambda each: each.request_id)
    if len(bought) + len(asked) != 1:
        exactly = [each for each in bought if any_id in (each.agreement.agreement_id, each.reservation_id)]
        if len(exactly) != 1:
            ids = [_meant(each, any_id) for each in bought] + [each.request_id for each in asked]
            raise not_one(f"request, agreement or reservation {any_id!r}", ids)
        return None, (exactly[0],)
    if bought:
        return None, (bought[0],)
    request_id = asked[0].request_id
    return asked[0], tuple(each for each in agreements if each.agreement.request_id == request_id)


def one_request(requests: Sequence[RequestStanding], any_id: str) -> RequestStanding:
    """Return the request that an id means; raises `ConfigurationError` unless there is exactly one."""
    found = matching(requests, any_id, lambda each: each.request_id)
    if len(found) != 1:
        raise not_one(f"request {any_id!r}", [each.request_id for each in found])
    return found[0]


def not_one(what: str, ids: Sequence[str]) -> ConfigurationError:
    """Return the error for an id that matches nothing or several things; `what` names the thing with the id."""
    if not ids:
        return ConfigurationError(f"unknown {what}; list all with `ramp status --all` and `ramp reservations --all`")
    more = f" and {len(ids) - LISTED} more" if len(ids) > LISTED else ""
    listed = ", ".join(sorted(ids)[:LISTED])
    return ConfigurationError(f"{what} is ambiguous: it matches {len(ids)} ids, {listed}{more}; give more characters")


def _meant(standing: AgreementStanding, any_id: str) -> str:
    agreement_id = standing.agreement.agreement_id
    return agreement_id if matching([agreement_id], any_id, str) else standing.reservation_id
