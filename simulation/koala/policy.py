"""KOALA's approaches and policies by name: each is a class of one file, with an object of it under the name `POLICY`.

Other packages register the class or an object of it as an entry point of the groups `ramp.placement_policies`,
`ramp.size_policies` or `ramp.approaches`, or users name its place (`module:Name`, `FILE.py:Name`).

A placement policy says where the components of a job run (section 4.1 of the paper). It sees idle processors only, no
run times. The user of a job chooses one; the paper's experiments use WF only.

A size policy says which of a cluster's running malleable jobs grow and which shrink. It is two generators that yield
messages to jobs and are sent how many processors each job accepts: so a policy reads as the paper's pseudo-code does.
It never looks at speed-up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ramp.declarations import Sort
from ramp.errors import ConfigurationError
from ramp.options import first_paragraph
from simulation.koala.jobs import Component
from simulation.malleable.malleability import Sizes

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


@dataclass(frozen=True, slots=True)
class Replicas:
    """Which clusters hold which input files, and how fast they can be brought elsewhere.

    Attributes:
        sites: clusters that hold a file, by its name; a file that is not named is everywhere.
        bytes_of: size of a file.
        bandwidth: bytes a second from one cluster to another.
    """

    sites: Mapping[str, frozenset[str]] = field(default_factory=dict)
    bytes_of: Mapping[str, int] = field(default_factory=dict)
    bandwidth: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def transfer_s(self, files: Sequence[str], cluster: str) -> float | None:
        """Return the seconds to bring files to a cluster one after the other, each from where that is fastest.

        None where one of them cannot be brought; 0 where all are there.
        """
        total = 0.0
        for name in files:
            sites = self.sites.get(name)
            if sites is None or cluster in sites:
                continue
            speeds = [self.bandwidth.get((site, cluster), 0.0) for site in sites]
            best = max(speeds, default=0.0)
            if best <= 0:
                return None
            total += self.bytes_of.get(name, 0) / best
        return total


@dataclass(frozen=True, slots=True)
class Assignment:
    """A component (or, where the policy splits jobs, a part of one) in a cluster.

    Attributes:
        cluster: its name.
        processors: how many.
        files: its input files.
    """

    cluster: str
    processors: int
    files: tuple[str, ...] = ()


Placed = tuple[Assignment, ...] | None
"""An assignment for each component, or None where the job cannot be placed now."""


class PlacementPolicy(Policy, ABC):
    """Says where the components of a job run."""

    @abstractmethod
    def place(self, components: Sequence[Component], idle: Mapping[str, int], replicas: Replicas) -> Placed:
        """Place all components of a job, or none.

        Args:
            components: at least one.
            idle: processors that the job could have in each cluster, in the order of the machine's file.
            replicas: where input files are.

        Returns:
            An assignment a component, in their order (other numbers where the policy splits them); None where the job
            cannot be placed now. Ties should go to the first cluster.
        """


def place_one_by_one(
    components: Sequence[Component], idle: Mapping[str, int], rank: Callable[[Component, str, int], Any]
) -> Placed:
    """Place components in their order, each in the cluster of the lowest rank that has room for it.

    Args:
        components: of the job.
        idle: processors by cluster.
        rank: of a cluster for a component, given the cluster's idle processors; None where it does not suit.
    """
    left = dict(idle)
    placed = []
    for component in components:
        ranks = {name: rank(component, name, free) for name, free in left.items() if free >= component.processors}
        suitable = [name for name, its in ranks.items() if its is not None]
        if not suitable:
            return None
        cluster = min(suitable, key=ranks.__getitem__)
        left[cluster] -= component.processors
        placed.append(Assignment(cluster, component.processors, component.files))
    return tuple(placed)


@dataclass(frozen=True, slots=True)
class RunningMalleable:
    """A running malleable job, as a policy sees it.

    Attributes:
        number: of the job.
        started: microseconds.
        size: processors that it has, in all clusters.
        sizes: that it may have.
    """

    number: int
    started: int
    size: int
    sizes: Sizes

    @property
    def can_give(self) -> int:
        """Processors above its smallest size."""
        return max(0, self.size - self.sizes.least)

    @property
    def can_take(self) -> int:
        """Processors below its largest size."""
        return max(0, self.sizes.maximum - self.size)


@dataclass(frozen=True, slots=True)
class Message:
    """An offer of processors to a job, or, below 0, a request for processors."""

    job: int
    processors: int


Asking = Generator[Message, int, None]
"""Yields messages and is sent how many processors were accepted, in the message's direction, never below 0."""


class SizePolicy(Policy, ABC):
    """Says which jobs grow and which shrink."""

    waits: bool = False
    """A shrinking job's processors are waited for before the next job is asked."""
    rebalances: bool = False
    """Growing is worth a try though nothing is idle, because it shrinks others as well."""
    steals: bool = False
    """Running jobs shrink for all waiting jobs at once, and processors are given out as they are released."""

    @abstractmethod
    def grow(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Give out processors that are idle.

        Args:
            jobs: that run in the cluster and are in no change, in the order of their starts.
            value: how many processors.
        """

    @abstractmethod
    def shrink(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Get processors back; arguments as of `grow`."""
