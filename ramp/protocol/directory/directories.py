"""Which of a market's directories a party asks. Every resource is entered in all of them, so any one knows the market.

Directories do not know each other: what they share are the leases that resources renew with each. So the loss of one,
for good, costs whoever asks it one pause, once; and one that lies about numbers or names is believed for itself alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from ramp.model.acl import Message
from ramp.model.seal import Role, Seal
from ramp.protocol.belief import said_by


class Directories:
    """The directories of a market as one party asks them: the one that answered last, until it is silent.

    Args:
        names: of the directories, the one to begin with first; at least one.

    Attributes:
        names: the directories.
        preferred: the one to ask next.
    """

    def __init__(self, names: Sequence[str]) -> None:
        if not names:
            raise ValueError("a market needs at least one directory")
        self.names = tuple(names)
        self.preferred = self.names[0]

    def pass_over(self, silent: str) -> str:
        """Ask another than one that has not answered; returns which.

        Several conversations may find out at a time: only the first moves the preference on.
        """
        if silent == self.preferred:
            self.preferred = self.names[(self.names.index(silent) + 1) % len(self.names)]
        return self.preferred

    def said(self, message: Message) -> Seal:
        """The seal of a message that only a directory may send; any of them, for a late answer is an answer.

        Raises:
            RemoteProtocolError: if another party sent it, or its seal is missing.
        """
        name = message.sender if message.sender in self.names else self.preferred
        return said_by(message, name, Role.DIRECTORY)
