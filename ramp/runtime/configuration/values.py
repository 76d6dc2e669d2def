"""A swarm's configuration as values, and its entry points: plug-ins and pricing strategies.

`ramp.runtime.configuration.file` reads it from TOML.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

from ramp.entry_points import entry_points_by_name
from ramp.errors import ConfigurationError
from ramp.launching.acting import Acting
from ramp.launching.configuration import LaunchingConfig
from ramp.model.instant import MINUTE, SECOND, Duration
from ramp.model.money import credits_of, credits_text
from ramp.model.seal import Role
from ramp.model.slot import StaticTerms
from ramp.options import Bounds, Seconds, Written, nearest_name
from ramp.plugins.interface import PluginSettings, ResourcePlugin, checked_plugin
from ramp.protocol.pricing import PricingStrategy
from ramp.protocol.resource.jobs.launching import LaunchTerms
from ramp.protocol.resource.quotas import Quotas
from ramp.protocol.resource.seller import PriceRange
from ramp.protocol.rules.auction_rule import PAPER_RULE
from ramp.protocol.timing import Timing
from ramp.runtime.configuration.sites import (
    DIRECTORIES_MAX,
    BankConfig,
    EnrolmentConfig,
    FederationConfig,
    Name,
    ServerConfig,
    SiteConfig,
    Text,
    Whole,
)

PLUGIN_GROUP: Final = "ramp.resource_plugins"
PRICING_GROUP: Final = "ramp.pricing"
OWN_DISTRIBUTION: Final = "ramp-market"
BATCH_PACKAGE: Final = "ramp.batch."
QUEUE_BOUND: Final = "queue-bound"
"""Plug-in that sells jobs in a queue instead of reservations."""

MEMORY_MB_MIN: Final = 128
"""Minimum memory of a guest; Python and the plug-in interface take half of it."""


def _read_credits(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int | str):
        raise ValueError("no amount")  # noqa: TRY004 -- as all wrong amounts
    return credits_of(given, zero=True)


Credits = Annotated[int, Written('credits, for example 1000 or "99.50"', _read_credits, credits_text)]
"""An amount in minor units, written in credits."""


@dataclass(frozen=True, slots=True)
class QuotaConfig(Quotas):
    """Limits of what one party may ask of another; messages beyond them are dropped unread.

    The defaults for messages are far above the traffic of an honest party: 30 simultaneous requests of 25 units are
    some 750 messages to a resource, and pauses between repeats double.

    Attributes:
        messages_per_sender_per_second: rate in the long run.
        burst: messages at once, after a silence of at least `burst / messages_per_sender_per_second` seconds.
    """

    messages_per_sender_per_second: Whole = 200
    burst: Whole = 2_000


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Logs of the processes.

    Attributes:
        format: `text` or `json` (a JSON object a line).
        rotate_mb: size at which a log or a file of events is rotated, in MB of 2**20 bytes.
        keep: number of rotated files to keep.
    """

    format: Literal["text", "json"] = "text"
    rotate_mb: Whole = 10
    keep: Whole = 5

    @property
    def rotate_bytes(self) -> int:
        return self.rotate_mb << 20


Isolation = Literal["auto", "process", "none"]
"""Where a resource's plug-in and price strategy run: each in a process, or in the agent's process.

`auto` isolates guests from other packages, and runs those of RAMP in the agent's process.
"""


@dataclass(frozen=True, slots=True)
class GuestLimits:
    """What a plug-in or price strategy in a process of its own may take; past a limit it is killed and started anew.

    A resource has a round (15 s) to quote and price, so both together stay well below; a buyer waits some seconds for a
    vote, so that a hold which takes longer is given back when it is there; a confirmation is waited for as long as a
    purchase (`confirm_limit`).

    Attributes:
        quote: for the slots of one call, all units together. Whatever else keeps the guest so long keeps callers no
            longer: they are refused meanwhile.
        price: for the prices of one call.
        change: for a hold, a confirmation, a release, or a look at a reservation.
        snapshot: for a picture of the machine.
        open: for opening it; a torus machine's compiler takes a while.
        waiting_max: questions that wait; more are refused, or in doubt.
        memory_mb: memory of its process and all that it starts together, shared memory included, in MB of 2**20 bytes;
            a torus machine whose loops are being compiled takes some hundreds.
        environment: variables of the environment that it sees beside the usual ones (PATH, HOME, the language, ...).
    """

    quote: Seconds = 5 * SECOND
    price: Seconds = 5 * SECOND
    change: Seconds = 30 * SECOND
    snapshot: Seconds = 5 * SECOND
    open: Seconds = MINUTE
    waiting_max: Whole = 500
    memory_mb: Annotated[int, Bounds(MEMORY_MB_MIN)] = 4096
    environment: tuple[str, ...] = ()

    def of(self, kind: str) -> Duration:
        """Return the limit of a kind of question (`ramp.runtime.guests.questions.Limit`)."""
        limit: Duration = getattr(self, kind)
        return limit


@dataclass(frozen=True, slots=True)
class UserConfig:
    """A user of the market.

    Attributes:
        name: the agent's local name.
        deposit: initial credit of the account.
        overdraft: limit of the account's debts.
    """

    name: Name
    deposit: Credits = 0
    overdraft: Credits = 0


@dataclass(frozen=True, slots=True)
class ResourceConfig:
    """A resource of the market, as its table says, with what its machine and the market say.

    Attributes:
        terms: the machine's static terms.
        prices: start and minimum price and the rounds expected.
        draining: whether it sells nothing new; no file says so, `ramp resource drain` does.
        launching: how jobs are launched on its slots; None where none are.
        acting: by what its buyers' local accounts are acted as; None where they are not.
    """

    name: str
    plugin: str
    options: Mapping[str, Any]
    terms: StaticTerms
    prices: PriceRange
    pricing: str = "ramp"
    isolation: Isolation = "auto"
    draining: bool = False
    launching: LaunchTerms | None = None
    acting: Acting | None = None


_Party = TypeVar("_Party", bound=UserConfig | ResourceConfig)


@dataclass(frozen=True, slots=True)
class MarketTable:
    """The market as a whole.

    Attributes:
        domain: XMPP domain of the agents.
        resources_per_process: how many Resource Agents share one process, each of which takes some 50 MB; with 1 every
            agent of any role has its own.
        bank: local name of the Banking Agent.
        directory: local name of the directory agent; of the first of several.
        keeper: local name of the market's keeper.
        signed_offers: whether calls and proposals are sealed as well; by default where there are several sites.
        auction_rule: name of the rule for requests that name none.
        directories: number of directory agents; resources register with all, users ask any.
        ledger: the ledger's database as a SQLAlchemy URL, such as `postgresql+psycopg://ramp@db.example.org/ramp`
            (needs the extra `postgresql`); by default SQLite in the state folder.
    """

    domain: Text = "localhost"
    resources_per_process: Whole = 20
    bank: Name = "bank"
    directory: Name = "directory"
    keeper: Name = "keeper"
    signed_offers: bool | None = None
    auction_rule: Text = PAPER_RULE
    directories: Annotated[int, Bounds(1, DIRECTORIES_MAX)] = 1
    ledger: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwarmConfig(MarketTable):
    """A whole swarm: the table of the market, with all its defaults found, and the other tables of its file.

    Attributes:
        path: the file it was read from.
        site: the market that this site has joined.
        federation: connection of the own server to others.
        enrolment: the market's enrolment office.
        banks: the Banking Agents.
    """

    path: Path
    signed_offers: bool
    server: ServerConfig
    users: tuple[UserConfig, ...]
    resources: tuple[ResourceConfig, ...]
    timing: Timing
    quotas: QuotaConfig
    guests: GuestLimits
    logs: LogConfig
    launching: LaunchingConfig
    site: SiteConfig | None
    federation: FederationConfig | None
    enrolment: EnrolmentConfig | None
    banks: BankConfig

    @property
    def directory_names(self) -> tuple[str, ...]:
        """Local names of all directory agents of the market."""
        site = self.site
        further = range(2, (self.directories if site is None else site.directories) + 1)
        return self.directory, *(f"{self.directory}-{number}" for number in further)

    @property
    def bank_names(self) -> tuple[str, ...]:
        """Local names of the Banking Agents' processes; for the market both are one agent, `bank`."""
        return (self.bank, f"{self.bank}-2") if self.banks.standby else (self.bank,)

    @property
    def own_agents(self) -> dict[str, Role]:
        """The market's own agents that run here, with their roles; empty on a site that has joined a market."""
        if self.site is not None:
            return {}
        directories = dict.fromkeys(self.directory_names, Role.DIRECTORY)
        office = self.enrolment
        offices = {} if office is None else {office.name: Role.ENROLMENT}
        return {self.bank: Role.BANK, **directories, self.keeper: Role.KEEPER, **offices}

    def agents(self) -> dict[str, Role]:
        """Return every agent that runs with its role, also a standby bank without a name of its own on the market."""
        return self.roles() | (dict.fromkeys(self.bank_names, Role.BANK) if self.own_agents else {})

    def roles(self) -> dict[str, Role]:
        """Return the certified role of every agent by local name, in starting order."""
        market = self.own_agents
        users = {user.name: Role.USER for user in self.users}
        return market | users | {resource.name: Role.RESOURCE for resource in self.resources}

    def address(self, local_name: str) -> str:
        """Return the full name of an agent that runs here."""
        return f"{local_name}@{self.domain}"

    def market_address(self, local_name: str) -> str:
        """Return the full name of one of the market's own agents, at whichever site it runs."""
        site = self.site
        return f"{local_name}@{self.domain if site is None else site.market}"

    @property
    def federates(self) -> bool:
        """Whether agents of other domains take part."""
        return self.server.federation or any((self.site, self.federation, self.enrolment))

    def resource(self, local_name: str) -> ResourceConfig:
        """Return a resource by name; `ConfigurationError` if it is unknown."""
        return self._named(local_name, "resource", self.resources)

    def refusing(self, local_name: str) -> tuple[str, ...]:
        """Return the names of resources that launch jobs and will refuse a user without a local account."""
        user = self.address(local_name)
        launching = [each for each in self.resources if each.launching is not None and each.launching.problem(user)]
        return tuple(each.name for each in launching)

    def user(self, local_name: str) -> UserConfig:
        """Return a user by name; `ConfigurationError` if it is unknown."""
        return self._named(local_name, "user", self.users)

    def _named(self, local_name: str, noun: str, parties: Sequence[_Party]) -> _Party:
        found = {each.name: each for each in parties}
        if local_name in found:
            return found[local_name]
        raise ConfigurationError(f"unknown {noun} {local_name!r}{nearest_name(local_name, [*found])}", path=self.path)


def entry_point(group: str, name: str) -> metadata.EntryPoint:
    """Return an entry point by group and name; `ConfigurationError` if it is unknown."""
    installed = entry_points_by_name(group)
    if name not in installed:
        near = nearest_name(name, sorted(installed))
        raise ConfigurationError(f"unknown name {name!r} in the entry point group {group}{near}")
    return installed[name]


def has_own_process(entry: metadata.EntryPoint, isolation: Isolation) -> bool:
    """Return whether a plug-in or price strategy runs in a separate process."""
    if isolation != "auto":
        return isolation == "process"
    if entry.value.startswith(BATCH_PACKAGE):  # it waits for the commands of a batch system
        return True
    return entry.dist is None or re.sub("[-_.]+", "-", entry.dist.name).lower() != OWN_DISTRIBUTION


def open_plugin(resource: ResourceConfig, started_at: int, state_dir: Path | None, seed: int = 0) -> ResourcePlugin:
    """Open a resource's plug-in by its entry point; the arguments are those of its `PluginSettings`.

    Raises:
        ConfigurationError: the plug-in is unknown or does not accept its options.
    """
    settings = plugin_settings(resource, started_at, state_dir, seed)
    return checked_plugin(entry_point(PLUGIN_GROUP, resource.plugin).load()(settings))


def plugin_settings(resource: ResourceConfig, started_at: int, state_dir: Path | None, seed: int = 0) -> PluginSettings:
    """Return the settings of a resource's plug-in."""
    return PluginSettings(
        resource=resource.name,
        cores=resource.terms.cores,
        cores_per_node=resource.terms.cores_per_node,
        started_at=started_at,
        options=resource.options,
        state_dir=state_dir,
        seed=seed,
        acting={} if resource.acting is None else asdict(resource.acting),
    )


def pricing_strategy(name: str) -> PricingStrategy:
    """Return a pricing strategy by its entry point; `ConfigurationError` if it is unknown."""
    strategy: PricingStrategy = entry_point(PRICING_GROUP, name).load()
    return strategy
