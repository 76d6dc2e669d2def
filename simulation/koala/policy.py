"""KOALA's approaches and policies by name: each is a class of one file, with an object of it under the name `POLICY`.

Other packages register the class or an object of it as an entry point of the groups `ramp.placement_policies`,
`ramp.size_policies` or `ramp.approaches`, or users name its place (`module:Name`, `FILE.py:Name`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from ramp.declarations import Sort
from ramp.errors import ConfigurationError
from ramp.options import first_paragraph

if TYPE_CHECKING:
    from simulation.koala.scheduler import Koala


class Policy:
    """What all policies have."""

    @property
    def about(self) -> str:
        """One line: the first paragraph of the docstring."""
        return first_paragraph(type(self))


PolicyT = TypeVar("PolicyT", bound=Policy)


def policies(noun: str, package: str, base: type[Any]) -> Sort[Any]:
    """Return the sort of all policies derived from a class; `package` of `simulation.koala` has the shipped ones."""

    def adopt(given: Any) -> Any:
        made = given() if isinstance(given, type) and issubclass(given, base) else given
        if not isinstance(made, base):
            got = given.__name__ if isinstance(given, type) else type(given).__name__
            raise ConfigurationError(f"got {got}, expected a class derived from {base.__name__}", key=noun)
        return made

    return Sort(noun, f"simulation.koala.{package}", "POLICY", f"ramp.{package}", adopt)


def policy_of(sort: Sort[PolicyT], given: str | PolicyT) -> PolicyT:
    """Return the policy of a name, in capitals as papers write them or not, or at a place.

    Raises:
        ConfigurationError: no policy has that name, or it cannot be used.
    """
    if not isinstance(given, str):
        return given
    return sort.find(given if ":" in given else given.lower())


class Approach(Policy, ABC):
    """Says who has precedence when processors become available."""

    @abstractmethod
    def manage(self, koala: Koala) -> None:
        """Act at a poll after which something is different from what was known: `grow`, `scan` and `shrink_for`."""

    def closed(self, koala: Koala) -> Iterable[str]:
        """Return the clusters where no waiting job is placed now; none by default."""
        return ()
