"""The reference of the configuration, drawn from the reader itself: which keys it knows, asks for and defaults to.

The reader is run once over a small market and listened to, so a key that is added there is on the page, or the page
cannot be made for want of a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from ramp.launching.configuration import LaunchingConfig
from ramp.model.instant import SECOND
from ramp.model.money import credits_text
from ramp.model.slot import StaticTerms
from ramp.protocol.resource.quotas import Quotas
from ramp.protocol.timing import Timing
from ramp.runtime.configuration.file import CONFIG_VERSION, read_swarm
from ramp.runtime.configuration.reader import Reader
from ramp.runtime.configuration.servers import BankConfig, RedundancyConfig, ServerConfig
from ramp.runtime.configuration.sites import EnrolmentConfig, FederationConfig, SiteConfig
from ramp.runtime.configuration.values import (
    GuestLimits,
    Isolation,
    LogConfig,
    QuotaConfig,
    ResourceConfig,
    SwarmConfig,
    UserConfig,
)
from sentences import attribute_sentences, cell

TOP: Final = ""
"""In place of a table's name: keys outside all tables."""

TABLES: Final[dict[str, tuple[str, tuple[Any, ...]]]] = {
    TOP: ("Keys before the first table.", ()),
    "market": ("The market as a whole.", (SwarmConfig, RedundancyConfig)),
    "server": ("The XMPP server of the agents.", (ServerConfig,)),
    "timing": (
        "Time limits of the protocol in seconds, above 0 (fractions allowed).",
        (Timing,),
    ),
    "quotas": ("Limits on what one party may ask of another.", (QuotaConfig, Quotas)),
    "guests": (
        "Limits of a plug-in or price strategy in its own process; times in seconds, above 0 (fractions allowed).",
        (GuestLimits,),
    ),
    "logs": ("Logs of the market's processes; applied at `ramp up`.", (LogConfig,)),
    "launching": ("Launching of jobs on reservations (`docs/launching.md`).", (LaunchingConfig,)),
    "accounts": (
        "The local account of each buyer's jobs. Resources that launch jobs refuse other buyers.",
        (),
    ),
    "bank": ("The Banking Agents. Two of them need a ledger on PostgreSQL (`docs/operations.md`).", (BankConfig,)),
    "site": ("Marks the configuration of a site that joined a market (`docs/joining.md`).", (SiteConfig,)),
    "federation": (
        "Connections of the market's server with servers of other sites (`docs/joining.md`).",
        (FederationConfig,),
    ),
    "enrolment": (
        "Starts an enrolment office, which issues certificates to invited parties (`docs/joining.md`).",
        (EnrolmentConfig,),
    ),
    "users": ("One table `[[users]]` for each buyer.", (UserConfig,)),
    "machines": (
        "One table `[machines.NAME]` for each kind of machine. It meets only requests for terms that it states.",
        (StaticTerms,),
    ),
    "resources": ("One table `[[resources]]` for each seller.", (ResourceConfig,)),
}
"""The file's tables: what each is, and the classes whose attributes say what its keys mean."""

SENTENCES: Final[dict[str, str]] = {
    "version": "Version of the file's format. Files of another version are refused.",
    "market.ledger": "The ledger's database as a SQLAlchemy URL, such as "
    "`postgresql+psycopg://ramp@db.example.org/ramp` (needs the extra `postgresql`); by default SQLite in the state "
    "folder.",
    "timing.retention_s": "Time from the end of a slot or request until its records move from memory and journal to "
    "the archive; at least 1200, and more with longer limits, because peers may still refer to it.",
    "machines.plugin": "Plug-in of its resources, by name.",
    "machines.options": "Options of that plug-in. The `options` of a resource override them.",
    "resources.machine": "Its machine: NAME of a table `[machines.NAME]`.",
    "resources.start_price": "Start price in whole credits per core hour.",
    "resources.minimum_price": "Lowest price in whole credits per core hour, at most the start price.",
    "resources.rounds_expected": "How many rounds the price strategy reckons with.",
    "resources.isolation": "Whether plug-in and price strategy have processes of their own: by `auto` those of another "
    "package, by `process` also those that come with RAMP, by `none` neither.",
    "accounts.NAME": "Local account of the buyer NAME (of this market, or a full name). "
    '`"*"`: all other buyers of this domain. `"*@DOMAIN"`: buyers of another domain. '
    "`@own`: the agents' own account, or `nobody` if they run as root; for simulated machines only.",
    "resources.executor": "Executor of jobs on its slots; default: that of `[launching]`.",
    "resources.accounts": "Local accounts of buyers at this resource. They override `[accounts]`.",
    "resources.options": "Options of the plug-in. They override those of the machine.",
}
"""Keys that are no attribute of the classes above, or mean something else in the file."""

_INTRODUCTION: Final = """\
A TOML file describes a market. `ramp config --check FILE` reports all errors in it, and `ramp config FILE` prints
it with all defaults. Start from one of the shipped files `quickstart`, `table2` and `torus`. This page is generated
from the program.
""".splitlines()

_MARKET: Final[Mapping[str, Any]] = {
    "users": [{"name": "alice"}],
    "machines": {"m": {"cores": 1}},
    "resources": [{"name": "m1", "machine": "m", "start_price": 1, "minimum_price": 1}],
}
REQUIRED: Final = "required"
"""In place of a default where there is none."""

_KINDS: Final = {
    "text": "text",
    "whole": "whole number from {least}",
    "truth": "true or false",
    "money": 'credits, such as `1000` or `"99.50"`',
}


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the file: its table, what kind of value it has, its default, and what it means."""

    table: str
    name: str
    kind: str
    default: str
    sentence: str


class Listener(Reader):
    """A reader that remembers which keys it was asked for."""

    def __init__(self) -> None:
        super().__init__(Path("market.toml"))
        self.known: dict[str, set[str]] = {}
        self.asked: dict[tuple[str, str], tuple[str, str]] = {}

    def unknown(self, where: str, table: Mapping[str, Any], known: set[str]) -> None:
        """Remember the keys of a table."""
        self.known.setdefault(_table(where), set()).update(known)
        super().unknown(where, table, known)

    def text(self, where: str, table: Mapping[str, Any], key: str, default: str | None = None) -> str:
        """Remember a text."""
        self._remember(where, key, _KINDS["text"], _shown(default))
        return super().text(where, table, key, default)

    def whole(self, where: str, table: Mapping[str, Any], key: str, default: int | None, least: int = 1) -> int:
        """Remember a whole number."""
        shown = REQUIRED if default is None else f"`{default}`"
        self._remember(where, key, _KINDS["whole"].format(least=least), shown)
        return super().whole(where, table, key, default, least)

    def truth(self, where: str, table: Mapping[str, Any], key: str, default: bool) -> bool:
        """Remember true or false."""
        self._remember(where, key, _KINDS["truth"], f"`{str(default).lower()}`")
        return super().truth(where, table, key, default)

    def money(self, where: str, table: Mapping[str, Any], key: str, default: int) -> int:
        """Remember an amount."""
        self._remember(where, key, _KINDS["money"], f"{credits_text(default)} credits")
        return super().money(where, table, key, default)

    def _remember(self, where: str, key: str, kind: str, default: str) -> None:
        self.asked[_table(where), key] = kind, default


def _shown(default: str | None) -> str:
    if default is None:
        return REQUIRED
    return f'`"{default}"`' if default else ""


def _table(where: str) -> str:
    return where.partition(".")[0].partition("[")[0]


def declared_keys() -> list[Key]:
    """Every key that the reader knows.

    Raises:
        ValueError: for a key without a sentence, or a sentence without a key.
    """
    listener = Listener()
    listener.whole("", _MARKET, "version", CONFIG_VERSION)  # as `load_config` asks before it reads the rest
    read_swarm(listener, _MARKET)
    if listener.findings:
        raise ValueError(f"the small market is not right: {listener.findings}")
    unused = set(SENTENCES)
    found = []
    for table, (_, classes) in TABLES.items():
        said = {name: text for each in classes for name, text in attribute_sentences(each).items()}
        known = listener.known[table] - set(TABLES) if table == TOP else listener.known[table]
        for name in _ordered(known, classes):
            full = f"{table}.{name}" if table != TOP else name
            unused.discard(full)
            meaning = SENTENCES.get(full) or said.get(name) or said.get(name.removesuffix("_s"))
            if not meaning:
                raise ValueError(f"{full}: no docstring says what this key means")
            kind, default = listener.asked.get((table, name)) or _by_hand(name, classes)
            found.append(Key(table, name, kind, default, meaning.replace("minor units", "credits")))
    if unused:
        raise ValueError(f"no such keys any more: {sorted(unused)}")
    return found


def _ordered(known: set[str], classes: tuple[Any, ...]) -> list[str]:
    order = [field.name for each in classes if is_dataclass(each) for field in fields(each)]

    def place(name: str) -> tuple[int, str]:
        plain = name.removesuffix("_s")
        return (order.index(plain) if plain in order else len(order), name)

    return sorted(known, key=place)


def _by_hand(name: str, classes: tuple[Any, ...]) -> tuple[str, str]:
    """Kind and default of a key that the reader reads without its own words, from the class's field."""
    for each in classes:
        for field in fields(each):
            if field.type == "Duration" and f"{field.name}_s" == name:
                return "seconds", f"`{field.default / SECOND:g}`"
            if field.name == name and isinstance(field.default, StrEnum):
                return _kind(str(field.type)), _shown(field.default.value)
            if field.name == name:
                shown = "" if field.default in (None, (), "") or callable(field.default) else f"`{field.default}`"
                return _kind(str(field.type)), shown.lower() if isinstance(field.default, int | float | str) else ""
    return "table" if name == "options" else "text", ""


def _kind(annotation: str) -> str:
    words = {
        "Path | None": "path, from the file's folder",
        "tuple[tuple[str, int], ...]": 'list such as `["xmpp.example.org:5222"]`',
        "tuple[str, ...]": "list of names",
        "float": "share from 0 to 1",
        "int | None": "whole number from 1",
        "int": "whole number from 1",
        "str | None": "text",
        "bool": "true or false",
        "Mapping[str, Any]": "table",
        "Isolation": ", ".join(f'`"{each.value}"`' for each in Isolation),
    }
    return words.get(annotation, annotation)


def page() -> str:
    """The page as Markdown."""
    lines = [
        "# Configuration reference",
        "",
        *_INTRODUCTION,
        "",
    ]
    found = declared_keys()
    for table, (about, _) in TABLES.items():
        lines += [f"(configuration-{table or 'file'})=", f"## {table or 'the file'}", "", about, ""]
        lines += ["| key | value | default | meaning |", "|---|---|---|---|"]
        lines += [
            f"| `{key.name}` | {cell(key.kind)} | {cell(key.default)} | {cell(key.sentence)} |"
            for key in found
            if key.table == table
        ]
        lines.append("")
    return "\n".join(lines)
