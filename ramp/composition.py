"""How the parties of a market are put together: once, for the agents over XMPP and for the simulator.

What differs between the two is handed in: identifiers, what drives a machine, and the ports to the world.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from zlib import crc32

from ramp.ledger.entry import AccountKind
from ramp.ledger.interface import Ledger
from ramp.model.acl import OFFERS, SEALED
from ramp.model.instant import Instant
from ramp.model.ports import IdSource
from ramp.model.seal import Role
from ramp.model.slot import StaticTerms
from ramp.protocol.bank.keeper_party import KeeperParty
from ramp.protocol.bank.party import BankParty
from ramp.protocol.directory.party import DirectoryParty, KnownAgent
from ramp.protocol.resource.jobs.launching import LaunchTerms
from ramp.protocol.resource.party import ResourceParty
from ramp.protocol.resource.quotas import Quotas
from ramp.protocol.resource.seller import PriceRange, Seller
from ramp.protocol.rules.auction_rule import PAPER_RULE
from ramp.protocol.rules.checked_rule import RuleBook
from ramp.protocol.timing import Timing
from ramp.protocol.user.party import UserParty
from ramp.runtime.auction_rules import RULES


@dataclass(frozen=True, slots=True)
class OpeningAccount:
    """The account of a party by its name when its market opens: overdraft and a single deposit in minor units."""

    name: str
    kind: AccountKind
    credit_limit: int = 0
    deposit: int = 0


@dataclass(frozen=True, slots=True)
class Composition:
    """One market: who is who in it, and the limits that all its parties keep.

    Attributes:
        bank: name of its Banking Agent, as parties address it.
        directories: names of its directories, one or more.
        keeper: name of its keeper.
        timing: the protocol's limits.
        quotas: what a resource grants one buyer who has not paid.
        signed_offers: whether offers, and what is said of them, bear seals.
    """

    bank: str
    directories: tuple[str, ...]
    keeper: str
    timing: Timing = field(default_factory=Timing)
    quotas: Quotas = field(default_factory=Quotas)
    signed_offers: bool = False

    @property
    def sealed(self) -> frozenset[type]:
        """Contents that leave a party with a seal."""
        return SEALED | OFFERS if self.signed_offers else SEALED

    def roles(self, resources: Iterable[str], users: Iterable[str]) -> dict[str, Role]:
        """Every party by name and what it is, the market's own first."""
        directories = dict.fromkeys(self.directories, Role.DIRECTORY)
        own = {self.bank: Role.BANK, **directories, self.keeper: Role.KEEPER}
        return own | dict.fromkeys(resources, Role.RESOURCE) | dict.fromkeys(users, Role.USER)

    def directory_party(self, name: str, known: Sequence[KnownAgent] = ()) -> DirectoryParty:
        """A directory's protocol; `known` are those who were registered in its life before."""
        return DirectoryParty(name, timing=self.timing, known=known)

    def bank_party(self) -> BankParty:
        """The bank's protocol."""
        return BankParty(self.bank, timing=self.timing)

    def keeper_party(self) -> KeeperParty:
        """The keeper's protocol."""
        return KeeperParty(self.keeper, bank=self.bank, timing=self.timing)

    def user_party(self, name: str, ids: IdSource, rule: str = PAPER_RULE) -> UserParty:
        """A buyer's protocol; `rule` is the auction rule of requests that name none."""
        return UserParty(
            name,
            bank=self.bank,
            directories=self._beginning_with(name),
            ids=ids,
            timing=self.timing,
            rules=RuleBook(RULES.find, rule),
        )

    def resource_party(
        self,
        name: str,
        source: str,
        ids: IdSource,
        *,
        terms: StaticTerms,
        prices: PriceRange,
        launching: LaunchTerms | None,
        draining: bool = False,
    ) -> ResourceParty:
        """A seller's protocol; the arguments are those of its `Seller`."""
        timing = self.timing
        seller = Seller(
            name,
            terms=terms,
            prices=prices,
            source=source,
            ids=ids,
            timing=timing,
            draining=draining,
            launching=launching,
        )
        return ResourceParty(
            name,
            directories=self.directories,
            bank=self.bank,
            seller=seller,
            timing=timing,
            quotas=self.quotas,
            launching=launching,
        )

    def _beginning_with(self, name: str) -> tuple[str, ...]:
        """The directories in the order in which a buyer asks them: buyers begin with different ones."""
        first = crc32(name.encode()) % len(self.directories)
        return self.directories[first:] + self.directories[:first]


def open_accounts(accounts: Iterable[OpeningAccount], ledger: Ledger, now: Instant) -> None:
    """Open accounts that are not open yet, and credit opening deposits once (section 6.3)."""
    known = {balance.account.account_id for balance in ledger.balances()}
    for each in accounts:
        if each.name not in known:
            ledger.open_account(each.name, each.kind, at=now, credit_limit=each.credit_limit)
        if each.deposit:
            ledger.deposit(f"opening-{each.name}", each.name, each.deposit, at=now, memo="opening deposit")
