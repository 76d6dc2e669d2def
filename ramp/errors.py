"""Every exception class of the project.

Assertions are for our own impossibilities; the classes here are for the world: bad documents, refused money,
broken configuration, peers that break the protocol. Each message says what, where, and the offending value.
The command line turns a `RampError` into one line on standard error and its `exit_code`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ramp.text import one_line

START_EMPTY: Final = "start with an empty state folder, or use the version of RAMP that wrote it"
SAME_VERSION: Final = "both sides must run the same version of RAMP"
START_AGAIN: Final = "`ramp down` and `ramp up` start the market in the version that is installed"


def told(error: BaseException) -> str:
    """What a guest has raised, in one short line; its own way to say so may raise as well."""
    try:
        said = str(error)
    except (Exception, SystemExit):
        said = "(unprintable exception)"
    return one_line(f"{type(error).__name__}: {said}")


class RampError(Exception):
    """Base of all errors that a user or a peer can cause.

    Args:
        reason: one line.
        where: what the message begins with: a file, a key, a conversation; without those that are None or empty.

    Attributes:
        exit_code: exit status of a command that this error ends (2 = bad input, 1 = refused or failed).
    """

    exit_code: int = 2

    def __init__(self, reason: str = "", *where: object) -> None:
        self.reason = reason
        super().__init__(": ".join([*(str(part) for part in where if part is not None and part != ""), reason]))


class ConfigurationError(RampError):
    """A configuration file or option is wrong: names the file, the key, the value and what would be right."""

    def __init__(self, reason: str, *, path: Path | str | None = None, key: str | None = None) -> None:
        self.path = path
        self.key = key
        super().__init__(reason, path, key)


class WrongVersion(ConfigurationError):
    """A file has another format version than this program's; nothing was changed."""


def check_version(path: Path | str, what: str, got: object, expected: int, remedy: str = START_EMPTY) -> None:
    """Check the format version that a file states; `WrongVersion`, with what to do, if it differs."""
    if got != expected:
        raise WrongVersion(wrong_version(f"this {what}", got, expected, remedy), path=path)


def wrong_version(what: str, got: object, expected: object, remedy: str) -> str:
    """The sentence on a version that is not the expected one; `got` is None where none is stated."""
    return f"wrong version of {what}: got {'none' if got is None else got}, expected {expected}; {remedy}"


class DocumentError(RampError):
    """A document from outside is not what it should be: too large, malformed, against its schema, or senseless.

    Attributes:
        source: the file or message that the document came from.
        violations: all single findings where there are several.
    """

    def __init__(self, reason: str, *, source: str | None = None, violations: tuple[str, ...] = ()) -> None:
        super().__init__("\n  ".join((reason, *violations)), source)
        self.reason = reason
        self.source = source
        self.violations = violations


class SignatureInvalid(DocumentError):
    """A signature is missing, broken, weak, doubled, or covers something else."""


class SignerUnknown(DocumentError):
    """The signer's certificate is not of this market, not on file, expired, or not the expected party's."""


class CertificateExpired(SignerUnknown):
    """The certificate is past its last day, or before its first."""


class SealInvalid(DocumentError):
    """A sealed message is not its sender's own word, or not for us, or the seal is missing: it is dropped unanswered.

    Whoever cannot be identified gets no answer: an answer would go to whom the message only pretends to come from.
    """


class ProtocolError(RampError):
    """Our side went against the protocol's tables: a bug of ours; with the last events of that conversation."""

    exit_code = 1

    def __init__(self, reason: str, *, conversation_id: str = "", story: tuple[str, ...] = ()) -> None:
        super().__init__("\n  ".join((reason, *story)), conversation_id)
        self.reason = reason
        self.conversation_id = conversation_id
        self.story = story


class RemoteProtocolError(ProtocolError):
    """The peer broke the table; it is answered with NOT_UNDERSTOOD."""


class RuleFailed(RampError):
    """An auction rule has raised, or answered what cannot be; it ends that auction only.

    Attributes:
        code: for programs (`ramp.protocol.rules.checked_rule.RuleFault`).
    """

    exit_code = 1

    def __init__(self, code: str, rule: str, detail: str) -> None:
        self.code = code
        super().__init__(f"the auction rule {rule} failed: {detail}")


class LedgerRefusal(RampError):
    """The ledger refuses a transfer; `code` is the reason for programs (`insufficient_funds`, ...)."""

    exit_code = 1

    def __init__(self, code: str, reason: str) -> None:
        self.code = code
        super().__init__(reason, code)


class LedgerCorrupt(RampError):
    """A ledger invariant does not hold; the write that showed it was not made."""

    exit_code = 1


class LedgerUnavailable(RampError):
    """The ledger's database does not answer, or another Banking Agent has taken over, so that nothing may be said."""

    exit_code = 1


class MachineError(RampError):
    """A machine description, shape, host list or allocation request is wrong, or a scheduler does what none may."""


class PluginError(RampError):
    """A resource plug-in failed.

    Attributes:
        transient: whether the same call may succeed later. The Resource Agent reads it of a hold or confirmation, and
            of a plug-in that is opened; `ramp.plugins.interface` says what it does then.
    """

    exit_code = 1

    def __init__(self, plugin: str, reason: str, *, transient: bool = False) -> None:
        self.transient = transient
        super().__init__(reason, plugin and f"plug-in {plugin}")


class WorkloadError(RampError):
    """A workload log cannot be found or read; names the file and the line."""

    def __init__(self, reason: str, *, path: Path | str | None = None, line_number: int | None = None) -> None:
        self.path = path
        self.line_number = line_number
        super().__init__(reason, path if line_number is None else f"{'' if path is None else path}:{line_number}")


class TransportError(RampError):
    """The XMPP side failed: no server, refused login, message not deliverable."""

    exit_code = 1


class NoMarket(TransportError):
    """No market is running where one was looked for, or it has ended."""


class MarketRefused(RampError):
    """A party of the market does not do what was asked of it.

    Attributes:
        code: why, of a closed list (`ramp.MarketRefusalCode`).
        exit_code: 2 where asking again in the same way cannot help, else 1.
    """

    def __init__(self, code: str, reason: str, *, exit_code: int = 1) -> None:
        self.code = code
        self.exit_code = exit_code
        super().__init__(reason)


class EnrolmentRefused(RampError):
    """The authority of a market issues no certificate on a request.

    Attributes:
        code: a word for programs, such as `other_key`.
        detail: a sentence for people.
    """

    exit_code = 1

    def __init__(self, code: str, detail: str) -> None:
        self.code = code
        self.detail = detail
        super().__init__(f"{detail} ({code})")


class MembershipRevoked(RampError):
    """The market has revoked a party's certificate: nobody believes it any more, and its agent stays down."""

    exit_code = 1


class ControlLineError(RampError):
    """A line of the control channel is no request or event of this version."""


class InvariantViolated(RampError):
    """A checker found a broken market invariant in a simulation."""

    exit_code = 1

    def __init__(self, checker: str, reason: str) -> None:
        self.checker = checker
        super().__init__(reason, checker)


class StorageFailed(RampError):
    """Something that must survive could not be written or read back; the same call may succeed later."""

    exit_code = 1

    def __init__(self, reason: str, *, path: Path | str | None = None) -> None:
        super().__init__(f"{reason}: {path}" if path is not None else reason)


class StateDamaged(RampError):
    """Something in the state folder cannot be read or contradicts itself; its agent stays down until it is put right.

    The message names the file or database, the row or account, and what to do. It shows nothing of the contents.
    """

    exit_code = 1

    def __init__(self, path: Path | str, finding: str, remedy: str) -> None:
        super().__init__(f"{finding}; {remedy}", path)


class EffectFailed(RampError):
    """What a party has decided could not be carried out, so it ends there and goes on from its memory on disk."""

    exit_code = 1

    def __init__(self, party: str, effect: str, reason: str) -> None:
        super().__init__(f"{party} stops because {effect} failed: {reason}; earlier decisions remain valid")
        self.reason = reason


class BatchSystemError(PluginError):
    """A batch system has not done what it was told, or nobody knows what it has done."""

    def __init__(self, reason: str, *, transient: bool = True) -> None:
        super().__init__("", reason, transient=transient)


class SystemRefused(BatchSystemError):
    """A batch system's sure no: nothing has been changed; `busy` if others have the cores."""

    def __init__(self, reason: str, *, busy: bool = False) -> None:
        self.busy = busy
        super().__init__(reason, transient=False)


class CommandFailed(BatchSystemError):
    """A command ended with an exit code that means a failure; `said` is what it complained of."""

    def __init__(self, argv: tuple[str, ...], code: int, said: str) -> None:
        self.code = code
        self.said = said
        super().__init__(f"{_command(argv)}: exit code {code}: {said or 'no error output'}")


def command_error(argv: tuple[str, ...], what: str, *, transient: bool = True) -> BatchSystemError:
    """Return the error about a command that cannot be run, came to a limit, or printed something else."""
    return BatchSystemError(f"{_command(argv)}: {one_line(what)}", transient=transient)


def _command(argv: tuple[str, ...]) -> str:
    return one_line(" ".join(argv), 120)
