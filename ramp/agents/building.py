"""Builds agents from a market's configuration and state folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar
from zlib import crc32

from ramp.agents.guests.isolated import GuestPorts, IsolatedGuest, open_machine, open_pricing
from ramp.agents.job_launcher import JobLauncher
from ramp.agents.party_agent import PartyAgent
from ramp.agents.roles import (
    BankingAgent,
    DirectoryAgent,
    EnrolmentAgent,
    KeeperAgent,
    ResourceAgent,
    UserAgent,
    tell_sale,
)
from ramp.agents.sites import Site
from ramp.composition import Composition, OpeningAccount, open_accounts
from ramp.errors import ConfigurationError, MembershipRevoked, StateDamaged
from ramp.launching.configuration import acting_by
from ramp.ledger.entry import AccountKind
from ramp.ledger.interface import Ledger
from ramp.model.agreement import Agreement, Signed
from ramp.model.instant import DAY, SECOND
from ramp.model.seal import Role
from ramp.options import read_options
from ramp.protocol.enrolment.office import EnrolmentOffice
from ramp.protocol.enrolment.revocation_watch import RevocationWatch
from ramp.protocol.events import Answer
from ramp.protocol.party import Party
from ramp.protocol.progress import Progress
from ramp.runtime.clock import SystemClock
from ramp.runtime.configuration.sites import EXTERNAL
from ramp.runtime.configuration.values import QUEUE_BOUND, ResourceConfig, SwarmConfig
from ramp.runtime.configuration_changes.overlay import running_config
from ramp.runtime.host import Ports
from ramp.runtime.identifiers import RandomIds
from ramp.runtime.joining.authority import Authority
from ramp.runtime.joining.invitations import Register
from ramp.runtime.journal import SqliteJournal
from ramp.runtime.keys.store import KeyStore
from ramp.runtime.ledger.bank_ledger import BankLedger
from ramp.runtime.sqlite_file import FROM_BACKUP
from ramp.runtime.state_folder import StateFolder, write_private
from ramp.runtime.storage_errors import STORAGE_ERRORS, check_room
from ramp.xmpp.link import TransportSettings

if TYPE_CHECKING:
    from ramp.runtime.ledger.bank_lease import BankLease
    from ramp.runtime.ledger.store import LedgerStore

AnAgent = TypeVar("AnAgent", bound=PartyAgent)

NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PartyBuilder:
    """Builds agents.

    Attributes:
        config: configuration of the market.
        state: its state folder.
        settings: settings of the connection to the XMPP server.
        leases: leases of redundant banks by local name.
        site: the Resource Agents of this process, which answer calls for proposals together.
    """

    config: SwarmConfig
    state: StateFolder
    settings: TransportSettings
    clock: SystemClock
    leases: dict[str, BankLease] = field(default_factory=dict)
    site: Site = field(default_factory=Site)

    def build(self, name: str) -> PartyAgent:
        """Build the agent with a local name.

        Raises:
            ConfigurationError: the configuration has no such agent, or its plug-in or files cannot be opened.
        """
        makers: dict[Role | None, Callable[[str], PartyAgent]] = {
            Role.DIRECTORY: self._directory,
            Role.BANK: self._bank,
            Role.KEEPER: self._keeper,
            Role.ENROLMENT: self._office,
            Role.USER: self._user,
        }
        return makers.get(self.config.agents().get(name), self._resource)(name)

    def anew(self) -> PartyBuilder:
        """Return a builder for the current configuration; `ConfigurationError` if that is invalid."""
        return replace(self, config=running_config(self.config.path, self.state))

    async def update(self, agent: PartyAgent, name: str) -> None:
        """Apply changes that need no restart: an agent's certificate, its prices, new accounts of the bank."""
        agent.take_notary(KeyStore(self.state.keys).notary(agent.host.name))
        if isinstance(agent, BankingAgent):
            books = agent.host.ports.ledger
            assert books is not None, "a bank has a ledger"
            self._open_accounts(books.ledger)
        elif isinstance(agent, ResourceAgent):
            resource = self.config.resource(name)
            await agent.set_selling(resource.prices, draining=resource.draining)

    def _directory(self, name: str) -> PartyAgent:
        party = self._market.directory_party(self.config.address(name), self.state.registered(name))
        return self._agent(DirectoryAgent, name, party, keep=partial(self.state.keep_registered, name))

    def _bank(self, name: str) -> PartyAgent:
        lease = self.leases.get(name)
        books = {"ledger": BankLedger(self._audited_ledger(lease))}
        clock = None if lease is None else SystemClock(wall=lease.time)  # of both banks, by which orders expire
        return self._agent(BankingAgent, self.config.bank, self._market.bank_party(), books, clock, lease=lease)

    def bank_lease(self, name: str) -> BankLease | None:
        """Return the lease that a redundant bank must take before it is built; None for all other agents."""
        config = self.config
        if name not in config.bank_names or not config.banks.standby:
            return None
        from ramp.runtime.ledger.bank_lease import BankLease  # imports sqlalchemy, as below

        if name not in self.leases:
            self.leases[name] = BankLease(config.ledger, name, duration=config.banks.lease)
        return self.leases[name]

    def _audited_ledger(self, lease: BankLease | None) -> LedgerStore:
        """Open the ledger, under a lease if two banks share it, and check its books.

        Raises:
            StateDamaged: the books are inconsistent; names the account or transfer.
            StorageFailed: the ledger cannot be written.
        """
        if not self.config.ledger:
            check_room(self.state.path)
        from ramp.runtime.ledger.bank_lease import fenced_ledger
        from ramp.runtime.ledger.store import LedgerStore  # imports sqlalchemy, which only the bank needs

        location = self.config.ledger or self.state.ledger
        ledger = LedgerStore.open(location) if lease is None else fenced_ledger(lease, str(location))
        try:
            audit(ledger, self.state.ledger)
            self._open_accounts(ledger)
            if lease is not None:
                lease.renew()  # the audit may have taken long
        except BaseException:
            ledger.close()
            raise
        return ledger

    def _open_accounts(self, ledger: Ledger) -> None:
        enrolled = (  # parties of other sites
            OpeningAccount(entry.invitation.name, entry.kind, entry.credit_limit, entry.deposit)
            for entry in Register(self.state.invitations).members()
        )
        open_accounts([*opening_accounts(self.config), *enrolled], ledger, self.clock.now())

    def _keeper(self, name: str) -> PartyAgent:
        return self._agent(KeeperAgent, name, self._market.keeper_party())

    def _office(self, name: str) -> PartyAgent:
        settings = self.config.enrolment
        assert settings is not None, "the name comes from these settings"
        authority = Authority(self.state, settings.revocations_days * DAY)
        party = EnrolmentOffice(
            self.config.address(name),
            per_sender=settings.attempts_per_sender_per_minute,
            in_all=settings.attempts_per_minute,
        )
        return self._agent(EnrolmentAgent, name, party, {"authority": authority})

    def _member(self, agent: AnAgent) -> AnAgent:
        """Let the agent of a user or resource at a joined site follow the market's revocations.

        Raises:
            MembershipRevoked: the known revocation list contains the agent's certificate.
        """
        site = self.config.site
        if site is None:
            return agent
        keys, name = KeyStore(self.state.keys), agent.host.name
        if keys.is_revoked(keys.identity(name)[1]):
            raise MembershipRevoked(
                f"the market has revoked the certificate of {name}; ask its keeper for a new invitation"
            )
        known = keys.signed_list()
        watch = RevocationWatch(
            name,
            office=self.config.market_address(site.enrolment),
            pause=site.revocations_s * SECOND,
            number=0 if known is None else known.number,
            expires_at=0 if known is None else known.expires_at,
        )
        agent.follow_revocations(watch, Authority(self.state))
        return agent

    def _user(self, name: str) -> PartyAgent:
        party = self._market.user_party(self.config.address(name), RandomIds(), self.config.auction_rule)
        return self._member(self._agent(UserAgent, name, party, self._memory(name)))

    def _resource(self, name: str) -> PartyAgent:
        resource = self.config.resource(name)
        built: list[ResourceAgent] = []  # filled below; guests may report before and after

        def watch(progress: Progress) -> None:
            for agent in built:
                agent.watch(progress)

        def deliver(answer: Answer) -> None:
            for agent in built:
                agent.take_answer(answer)

        def say(guest: str, line: str) -> None:
            for agent in built:
                agent.heard(guest, line)

        owner = f"{self.state.path.absolute()} {name}"
        guests = GuestPorts(owner, self.config.guests, now=self.clock.now, deliver=deliver, say=say, watch=watch)
        pricing = open_pricing(resource, guests)
        started_at = self.state.started_at(self.clock.now())
        machine, opened = open_machine(resource, started_at, self.state.reservations, guests)
        party = self._market.resource_party(
            self.config.address(name),
            opened.source,
            RandomIds(),
            terms=resource.terms,
            prices=resource.prices,
            launching=resource.launching,
            draining=resource.draining,
        )
        party.handle(opened, started_at)
        launcher = self._launcher(resource, deliver, watch)
        own = {"machine": machine, "pricing": pricing, "launcher": launcher}
        agent = self._member(self._agent(ResourceAgent, name, party, self._memory(name) | own))
        agent.launcher = launcher
        agent.site = self.site
        agent.guests += [guest for guest in (machine, pricing) if isinstance(guest, IsolatedGuest)]
        built.append(agent)
        return agent

    def _launcher(
        self, resource: ResourceConfig, deliver: Callable[[Answer], None], watch: Callable[[Progress], None]
    ) -> JobLauncher | None:
        if resource.launching is None:
            return None
        return JobLauncher(
            resource.launching.executor,
            acting_by(self.config.launching),
            self.state.jobs,
            self.state.path / "kept-jobs",
            finding_variables(resource),
            deliver,
            watch,
        )

    def _agent(
        self,
        kind: type[AnAgent],
        name: str,
        party: Party,
        own_ports: Mapping[str, Any] = NOTHING,
        clock: SystemClock | None = None,
        **more: Any,
    ) -> AnAgent:
        """Build the agent of a party; `own_ports` are its ports besides the network and the notary."""
        notary = KeyStore(self.state.keys).notary(party.name)
        ports = partial(Ports, notary=notary, sealed=self._market.sealed, **own_ports)
        clock = clock or self.clock
        settings = self.settings.beginning_at(crc32(name.encode())) if self.config.server.spread else self.settings
        password = self.state.passwords([name])[name]
        return kind(party.name, password, settings, party=party, ports=ports, clock=clock, **more)

    def _memory(self, name: str) -> dict[str, Any]:
        check_room(self.state.journals)
        journal = SqliteJournal(self.state.journal(name))
        return {"journal": journal, "keep_agreement": self._shelf(name)}

    @property
    def _market(self) -> Composition:
        config = self.config
        bank, keeper = config.market_address(config.bank), config.market_address(config.keeper)
        directories = tuple(map(config.market_address, config.directory_names))
        return Composition(bank, directories, keeper, config.timing, config.quotas, config.signed_offers)

    def _shelf(self, name: str) -> Callable[[str, Signed, str], None]:
        def keep(agreement_id: str, signed: Signed, payment: str) -> None:
            write_private(self.state.agreement(name, agreement_id), signed.document)
            write_private(self.state.payment(name, agreement_id), payment)
            body = signed.body
            if isinstance(body, Agreement) and body.resource == self.config.address(name):
                tell_sale(body)

        return keep


def audit(ledger: LedgerStore, path: Path) -> None:
    """Check a ledger's balances, transfers and orders; `StateDamaged` with the path of its file if they are wrong."""
    try:
        findings = ledger.audit()
    except STORAGE_ERRORS:
        raise
    except Exception as error:  # the tables may contain anything
        raise StateDamaged(path, f"the ledger cannot be read: {type(error).__name__}", FROM_BACKUP) from error
    if findings:
        more = f" (and {len(findings) - 1} more, see `ramp bank audit`)" if len(findings) > 1 else ""
        raise StateDamaged(path, f"the ledger's books are inconsistent: {findings[0]}{more}", FROM_BACKUP)


def opening_accounts(config: SwarmConfig) -> list[OpeningAccount]:
    """Return the initial accounts of a market with their deposits and credit limits."""
    return [
        *(
            OpeningAccount(config.address(user.name), AccountKind.USER, user.overdraft, user.deposit)
            for user in config.users
        ),
        *(OpeningAccount(config.address(each.name), AccountKind.RESOURCE) for each in config.resources),
    ]


def transport_settings(config: SwarmConfig, host: str, port: int, ca_file: Path | None) -> TransportSettings:
    """Return the settings of the agents' connection to their server.

    The server started with the market has the address `host`, the port and the authority `ca_file`; these are unused
    for an external server.
    """
    server = config.server
    is_external = server.kind == EXTERNAL
    if not is_external and port == 0:
        raise ConfigurationError("the market's server has not started yet: it has no port", path=config.path)
    return TransportSettings(
        servers=server.addresses if is_external else ((host, port),),
        ca_file=server.ca_file if is_external else ca_file,
        register=server.register,
        federation=config.federates,
        quotas=config.quotas,
    )


def finding_variables(resource: ResourceConfig) -> Mapping[str, str]:
    """Return the variables for commands that act on a resource's system; `PATH` is a folder of them.

    Raises:
        ConfigurationError: an option of its plug-in is wrong.
    """
    system, options, within = resource.plugin, resource.options, resource.name
    held = system == QUEUE_BOUND
    if held:
        from ramp.batch.waiting.plugin import QueueBoundOptions  # many markets have neither of the systems

        queue = read_options(options, QueueBoundOptions, within=within)
        system, options, within = queue.system, queue.queue, f"{within}.queue"
    if system == "slurm":
        from ramp.batch.slurm.partition import cluster_variables
        from ramp.batch.slurm.plugin import ClusterOptions, SlurmOptions

        read = read_options(options, ClusterOptions if held else SlurmOptions, within=within)
        return cluster_variables(read.conf)  # as the plug-in looks for it
    if system == "gridengine":
        from ramp.batch.gridengine.held_jobs import GridEngineQueueOptions
        from ramp.batch.gridengine.plugin import GridEngineOptions, environment_of

        kind = GridEngineQueueOptions if held else GridEngineOptions
        return environment_of(read_options(options, kind, within=within), resource.name)
    return {}
