"""The interface of predictors of waits, their declaration, and the list of all.

A declaration is at the end of the predictor's own file in `ramp.queue_bound.predictors`:

    PREDICTOR = predictor(Bmbp, about="...", options=BmbpOptions)

Guests give such a constant as an entry point of the group `ramp.queue_predictors`, or by its place (`module:Name`,
`FILE.py:Name`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any, Final, Protocol

from ramp.declarations import Sort
from ramp.errors import ConfigurationError
from ramp.options import read_options


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job as it joins a queue.

    Attributes:
        queue: name of the queue; empty if the machine has one only.
        size: processors.
        length: requested run time in microseconds.
        planned: microseconds from its submission to its start by the plan of the queue (`ramp.queue_bound.queue_plan`);
            None without a plan.
    """

    queue: str
    size: int
    length: int
    planned: int | None = None


class Predictor(Protocol):
    """Learns from the waits of a queue's jobs, and predicts the wait of one that joins it now; in microseconds."""

    def bound(self, job: QueuedJob) -> int | None:
        """Return a bound of the job's wait in microseconds, with the configured probability; None if unknown."""
        ...

    def chance(self, job: QueuedJob, within: int) -> float | None:
        """Return the probability, 0 to 1, of a start within this many microseconds; None if too little is known."""
        ...

    def started(self, job: QueuedJob, wait: int, bound: int | None = None, *, overdue: bool = False) -> None:
        """Learn that a job has started.

        Args:
            job: as it joined the queue.
            wait: microseconds that it waited.
            bound: of its wait when it joined the queue; None if it was unknown.
            overdue: whether `overdue` has told already that it would miss its bound.
        """
        ...

    def overdue(self, job: QueuedJob) -> None:
        """Learn that a job still waits though its bound has passed."""
        ...


@dataclass(frozen=True, slots=True)
class PredictorDeclaration:
    """A predictor with a name.

    Attributes:
        make: makes a new one from its options.
        about: one line.
        options: the dataclass of its options.
    """

    make: Callable[[Any], Predictor]
    about: str
    options: type[Any]

    def new(self, options: Mapping[str, Any] | None = None, within: str = "") -> Predictor:
        """Return a new predictor.

        Args:
            options: by name; the others have their defaults.
            within: their place, for messages.

        Raises:
            ConfigurationError: an option is unknown or wrong.
        """
        return self.make(read_options(options or {}, self.options, within=within))


def predictor(make: Callable[[Any], Predictor], *, options: type, about: str = "") -> PredictorDeclaration:
    """Declare a predictor; arguments as of `PredictorDeclaration`, `about` by default the docstring's first line.

    Raises:
        ConfigurationError: `make` cannot be called, or the options are no dataclass.
    """
    if not callable(make) or not is_dataclass(options):
        raise ConfigurationError("expected a callable and a dataclass of options", key="predictor")
    return PredictorDeclaration(make, about or (inspect.getdoc(make) or "").partition("\n")[0], options)


def _adopt(given: Any) -> PredictorDeclaration:
    if not isinstance(given, PredictorDeclaration):
        raise ConfigurationError(
            f"expected a declaration made by `predictor`, got an object of type {type(given).__name__}", key="predictor"
        )
    return given


PREDICTORS: Final = Sort("predictor", "ramp.queue_bound.predictors", "PREDICTOR", "ramp.queue_predictors", _adopt)
