"""Liars in the markets of the swarm, as a seed draws them."""

from collections.abc import Mapping
from dataclasses import replace

from ramp.model.seal import Role
from ramp.model.slot import StaticTerms
from ramp.protocol.resource.seller import PriceRange
from simulation.market.actors import COMPOSITION
from simulation.market.drawing import draw_sizes
from simulation.market.faults.late_guests import ForgetfulMachine
from simulation.market.random_streams import stream
from simulation.market.specs import ResourceSpec
from simulation.swarm import SeedMarket, draw_rules
from tests.swarm.liars import Habit, LiarSpec, draw_liar, interceptor


def with_liars(market: SeedMarket, *, ruled: bool) -> SeedMarket:
    """The market with the liars that its seed draws; liars that sell offer much and bid lowest, so that buyers come.

    With `ruled` the seed may draw auction rules, and lies that need them.
    """
    resources = [each.name for each in market.resources]
    liars = draw_liars(market.seed, COMPOSITION.roles(resources, (each.name for each in market.users)), ruled=ruled)
    return replace(
        market,
        resources=[_tempting(each) if each.name in liars else each for each in market.resources],
        liars={name: interceptor(spec, stream(market.seed, f"liar/{name}")) for name, spec in liars.items()},
    )


def _tempting(spec: ResourceSpec) -> ResourceSpec:
    return replace(spec, machine=ForgetfulMachine(spec.name, 256, 0.0), terms=StaticTerms(256), prices=PriceRange(1, 1))


def draw_liars(seed: int, roles: Mapping[str, Role], *, ruled: bool = True) -> dict[str, LiarSpec]:
    """In two of five markets one or two parties are liars; at least one user and one resource are honest."""
    random = stream(seed, "liars")
    liars: dict[str, LiarSpec] = {}
    if random.random() < 0.4:
        for _ in range(random.randint(1, 2)):
            role = random.choice((Role.USER, Role.RESOURCE))
            honest = [name for name, of in roles.items() if of is role and name not in liars]
            if len(honest) > 1:
                liars[random.choice(honest)] = draw_liar(role, random)
    else:
        liars = in_league(seed, roles)
    if ruled and (rules := draw_rules(seed)) is not None:
        for name, spec in liars.items():
            if spec.role is Role.USER and rules.random() < 0.5:
                liars[name] = replace(spec, habits=(*spec.habits, Habit.WRONG_PRICE))
        return with_wrong_sizes(seed, liars)
    return liars


def in_league(seed: int, roles: Mapping[str, Role]) -> dict[str, LiarSpec]:
    """In some markets without other liars, a buyer and a seller who sign whatever suits the other."""
    random = stream(seed, "league")
    users, resources = ([name for name, of in roles.items() if of is role] for role in (Role.USER, Role.RESOURCE))
    if random.random() < 0.8 or len(users) < 2 or len(resources) < 2:
        return {}
    return {random.choice(names): LiarSpec(roles[names[0]], (Habit.IN_LEAGUE,), 1.0) for names in (users, resources)}


def with_wrong_sizes(seed: int, liars: Mapping[str, LiarSpec]) -> dict[str, LiarSpec]:
    """The liars of a market; where sizes are drawn, four of five that sell also offer what no unit allows."""
    if draw_sizes(seed) is None:
        return dict(liars)
    random = stream(seed, "wrong sizes")
    return {
        name: replace(spec, habits=(*spec.habits, Habit.WRONG_SIZE))
        if spec.role is Role.RESOURCE and random.random() < 0.8
        else spec
        for name, spec in liars.items()
    }
