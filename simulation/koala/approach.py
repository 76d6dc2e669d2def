"""What an approach is: it says when running jobs change their sizes, and when waiting ones are placed (section 5.2)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING

from simulation.koala.policy import Policy

if TYPE_CHECKING:
    from simulation.koala.scheduler import Koala


class Approach(Policy, ABC):
    """Says who has precedence when processors become available."""

    @abstractmethod
    def manage(self, koala: Koala) -> None:
        """Act at a poll after which something is different from what was known: `grow`, `scan` and `shrink_for`."""

    def closed(self, koala: Koala) -> Iterable[str]:
        """Return the clusters where no waiting job is placed now; none by default."""
        return ()
