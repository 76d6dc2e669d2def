"""Builds agents from a swarm's configuration and its state folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ramp.agents.guests.isolated import IsolatedGuest
from ramp.agents.guests.opening import GuestPorts, open_machine, open_pricing
from ramp.agents.party_agent import PartyAgent
from ramp.agents.roles import BankingAgent, DirectoryAgent, KeeperAgent, ResourceAgent, UserAgent, log_keeper
from ramp.errors import ConfigurationError, StateDamaged
from ramp.ledger.account import AccountKind
from ramp.ledger.interface import Ledger
from ramp.model.acl import OFFERS, SEALED, Message
from ramp.model.agreement import Signed
from ramp.model.instant import Instant
from ramp.model.ports import Notary
from ramp.protocol.bank.keeper_party import KeeperParty
from ramp.protocol.bank.party import BankParty
from ramp.protocol.directory.party import DirectoryParty
from ramp.protocol.events import Answer
from ramp.protocol.progress import Progress
from ramp.protocol.resource.party import ResourceParty
from ramp.protocol.resource.seller import Seller
from ramp.protocol.rules.rule_book import RuleBook
from ramp.protocol.user.party import UserParty
from ramp.runtime.auction_rules import RULES
from ramp.runtime.clock import SystemClock
from ramp.runtime.config import SwarmConfig
from ramp.runtime.host import Host, Ports
from ramp.runtime.identifiers import RandomIds
from ramp.runtime.journal import SqliteJournal
from ramp.runtime.keys.store import KeyStore
from ramp.runtime.ledger.bank_ledger import BankLedger
from ramp.runtime.sqlite_file import FROM_BACKUP
from ramp.runtime.state_folder import StateFolder, write_private
from ramp.runtime.storage_errors import STORAGE_ERRORS, check_room
from ramp.xmpp.settings import TransportSettings

if TYPE_CHECKING:
    from ramp.runtime.ledger.store import LedgerStore


@dataclass(frozen=True, slots=True)
class Building:
    """What agents are built from.

    Attributes:
        config: the swarm.
        state: its state folder.
        settings: how agents reach the XMPP server.
        passwords: of the agents' accounts, by local name.
        clock: the time.
    """

    config: SwarmConfig
    state: StateFolder
    settings: TransportSettings
    passwords: dict[str, str]
    clock: SystemClock

    def build(self, name: str) -> PartyAgent:
        """Build the agent of a local name, whatever its role.

        Raises:
            ConfigurationError: if the configuration has no such agent, or its plug-in or files cannot be opened.
        """
        if name == self.config.directory:
            return self._directory(name)
        if name == self.config.bank:
            return self._bank(name)
        if name == self.config.keeper:
            return self._keeper(name)
        if any(user.name == name for user in self.config.users):
            return self._user(name)
        return self._resource(name)

    def _directory(self, name: str) -> PartyAgent:
        address = self.config.address(name)
        notary = self._notary(address)
        known = self.state.registered()

        def new_host(send: Callable[[Message], None]) -> Host:
            """The host of this agent's party, which sends by `send`."""
            party = DirectoryParty(address, timing=self.config.timing, known=known)
            return Host(party, self._ports(send, notary))

        return DirectoryAgent(
            address,
            self.passwords[name],
            self.settings,
            new_host=new_host,
            notary=notary,
            clock=self.clock,
            keep=self.state.keep_registered,
        )

    def _bank(self, name: str) -> PartyAgent:
        address = self.config.address(name)
        notary = self._notary(address)
        ledger = self._audited_ledger()

        def new_host(send: Callable[[Message], None]) -> Host:
            """The host of this agent's party, which sends by `send`."""
            party = BankParty(address, timing=self.config.timing)
            ports = self._ports(send, notary)
            ports.ledger, ports.watch = BankLedger(ledger), log_keeper
            return Host(party, ports)

        return BankingAgent(
            address, self.passwords[name], self.settings, new_host=new_host, notary=notary, clock=self.clock
        )

    def _audited_ledger(self) -> LedgerStore:
        """Open the ledger; a bank does not run on one whose books contradict each other.

        Raises:
            StateDamaged: if they do; names the account or transfer.
            StorageFailed: if it cannot be written.
        """
        if not self.config.ledger_url:
            check_room(self.state.path)
        from ramp.runtime.ledger.store import LedgerStore  # brings sqlalchemy, which only the bank needs

        ledger = LedgerStore.open(self.config.ledger_url or self.state.ledger)
        try:
            audit(ledger, self.state.ledger)
            open_accounts(self.config, KeyStore(self.state.keys), ledger, self.clock.now())
        except BaseException:
            ledger.close()
            raise
        return ledger

    def _keeper(self, name: str) -> PartyAgent:
        address = self.config.address(name)
        notary = self._notary(address)
        built: list[KeeperAgent] = []

        def watch(progress: Progress) -> None:
            for agent in built:
                agent.watch(progress)

        def new_host(send: Callable[[Message], None]) -> Host:
            bank = self.config.address(self.config.bank)
            ports = self._ports(send, notary)
            ports.watch = watch
            return Host(KeeperParty(address, bank=bank, timing=self.config.timing), ports)

        agent = KeeperAgent(
            address, self.passwords[name], self.settings, new_host=new_host, notary=notary, clock=self.clock
        )
        built.append(agent)
        return agent

    def _user(self, name: str) -> PartyAgent:
        address = self.config.address(name)
        notary = self._notary(address)
        built: list[UserAgent] = []

        def watch(progress: Progress) -> None:
            for agent in built:
                agent.watch(progress)

        def new_host(send: Callable[[Message], None]) -> Host:
            party = UserParty(
                address,
                bank=self.config.address(self.config.bank),
                directory=self.config.address(self.config.directory),
                ids=RandomIds(),
                timing=self.config.timing,
                rules=RuleBook(RULES.find, self.config.auction_rule),
            )
            ports = self._ports(send, notary)
            ports.journal = self._journal(name)
            ports.keep_agreement, ports.watch = self._shelf(name), watch
            return Host(party, ports)

        agent = UserAgent(
            address, self.passwords[name], self.settings, new_host=new_host, notary=notary, clock=self.clock
        )
        built.append(agent)
        return agent

    def _resource(self, name: str) -> PartyAgent:
        resource = self.config.resource(name)
        address = self.config.address(name)
        notary = self._notary(address)
        built: list[ResourceAgent] = []

        def watch(progress: Progress) -> None:
            for agent in built:
                agent.watch(progress)

        def deliver(answer: Answer) -> None:
            for agent in built:
                agent.take_answer(answer)

        def say(guest: str, line: str) -> None:
            for agent in built:
                agent.heard(guest, line)

        guests = GuestPorts(
            self.config.guests,
            now=self.clock.now,
            deliver=deliver,
            say=say,
            watch=watch,
        )
        pricing = open_pricing(resource, guests)
        machine, source = open_machine(
            resource, self.state.started_at(self.clock.now()), self.state.reservations, guests
        )

        def new_host(send: Callable[[Message], None]) -> Host:
            seller = Seller(
                address,
                terms=resource.terms,
                prices=resource.prices,
                source=source,
                ids=RandomIds(),
                timing=self.config.timing,
            )
            party = ResourceParty(
                address,
                directory=self.config.address(self.config.directory),
                bank=self.config.address(self.config.bank),
                seller=seller,
                timing=self.config.timing,
                quotas=self.config.holds,
            )
            ports = self._ports(send, notary)
            ports.journal = self._journal(name)
            ports.machine, ports.pricing = machine, pricing
            ports.keep_agreement, ports.watch = self._shelf(name), watch
            return Host(party, ports)

        agent = ResourceAgent(
            address, self.passwords[name], self.settings, new_host=new_host, notary=notary, clock=self.clock
        )
        agent.guests += [guest for guest in (machine, pricing) if isinstance(guest, IsolatedGuest)]
        built.append(agent)
        return agent

    def _journal(self, name: str) -> SqliteJournal:
        check_room(self.state.journals)
        return SqliteJournal(self.state.journal(name), self.state.archive(name))

    def _notary(self, address: str) -> Notary:
        return KeyStore(self.state.keys).notary(address)

    def _ports(self, send: Callable[[Message], None], notary: Notary) -> Ports:
        sealed = SEALED | OFFERS if self.config.signed_offers else SEALED
        return Ports(send=send, notary=notary, sealed=sealed)

    def _shelf(self, name: str) -> Callable[[str, Signed, str], None]:
        def keep(agreement_id: str, signed: Signed, payment: str) -> None:
            write_private(self.state.agreement(name, agreement_id), signed.document)
            write_private(self.state.payment(name, agreement_id), payment)

        return keep


def audit(ledger: LedgerStore, path: Path) -> None:
    """See that a ledger's balances, transfers and orders agree with each other.

    Args:
        ledger: the ledger.
        path: of its file, for the message.

    Raises:
        StateDamaged: if the books contradict each other or cannot be read.
    """
    try:
        findings = ledger.contradictions()
    except STORAGE_ERRORS:
        raise
    except Exception as error:  # whatever somebody has written into the tables
        raise StateDamaged(path, f"the ledger cannot be read: {type(error).__name__}", FROM_BACKUP) from error
    if findings:
        more = f" (and {len(findings) - 1} more, see `ramp bank audit`)" if len(findings) > 1 else ""
        raise StateDamaged(path, f"the ledger's books do not agree: {findings[0]}{more}", FROM_BACKUP)


def open_accounts(config: SwarmConfig, keys: KeyStore, ledger: Ledger, now: Instant) -> None:
    """Open everybody's account, credit the opening deposits once, and put the certificates on file (section 6.3)."""
    known = {balance.account.account_id: balance.account for balance in ledger.balances()}
    for user in config.users:
        address = config.address(user.name)
        if address not in known:
            ledger.open_account(address, AccountKind.USER, at=now, credit_limit=user.credit_limit)
        if user.deposit:
            ledger.deposit(f"opening-{address}", address, user.deposit, at=now, memo="opening deposit")
    for resource in config.resources:
        address = config.address(resource.name)
        if address not in known:
            ledger.open_account(address, AccountKind.RESOURCE, at=now, credit_limit=resource.credit_limit)
    for name in [user.name for user in config.users] + [resource.name for resource in config.resources]:
        address = config.address(name)
        path = keys.folder / "pins" / f"{address}.pem"
        if path.exists():
            ledger.register_certificate(address, path.read_text("ascii"))


def transport_settings(config: SwarmConfig, host: str, port: int, ca_file: Path | None) -> TransportSettings:
    """How the swarm's agents reach their server.

    Args:
        config: the swarm.
        host: address of the server started with the swarm; unused for an external one.
        port: its port.
        ca_file: the authority of its certificate.
    """
    server = config.server
    if server.kind == "external":
        return TransportSettings(
            servers=server.addresses,
            ca_file=server.ca_file,
            register=server.register,
            federation=server.federation,
            quotas=config.quotas,
        )
    if port == 0:
        raise ConfigurationError("the server started with the swarm has no port yet", path=config.path)
    return TransportSettings(servers=((host, port),), ca_file=ca_file, quotas=config.quotas)
