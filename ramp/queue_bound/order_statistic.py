"""Which of the past waits, in order, bounds a quantile of the waits to come with a stated confidence.

Source: J. Brevik, D. Nurmi and R. Wolski, "Predicting bounds on queuing delay for batch-scheduled parallel machines",
PPoPP 2006, section 3.2 (the Brevik method batch predictor, BMBP).
"""

from __future__ import annotations

from functools import cache
from math import ceil, log

import numpy as np


@cache
def fewest(quantile: float, confidence: float) -> int:
    """How many waits there must be: the smallest n with log(1 - confidence) / log(quantile) <= n.

    Args:
        quantile: share of the waits that the bound is to cover, between 0 and 1.
        confidence: probability that it does, between 0 and 1.
    """
    return ceil(log(1 - confidence) / log(quantile))


@cache
def rank(count: int, quantile: float, confidence: float) -> int | None:
    """The smallest k for which the k-th smallest of `count` waits is above the quantile with the confidence.

    P(Binomial(count, quantile) <= k - 1) >= confidence, for independent waits of one distribution.

    Args:
        count: of past waits.
        quantile: between 0 and 1.
        confidence: between 0 and 1.

    Returns:
        1 to `count`; None where they are fewer than `fewest`.
    """
    if count < fewest(quantile, confidence):
        return None
    numbers = np.arange(1, count + 1)
    # logarithms of the binomial coefficients, then of the probabilities of 0 to count successes
    falling = np.concatenate([[0.0], np.cumsum(np.log(count - numbers + 1) - np.log(numbers))])
    successes = np.arange(count + 1)
    probability = np.exp(falling + successes * np.log(quantile) + (count - successes) * np.log1p(-quantile))
    return int(np.searchsorted(np.cumsum(probability), confidence)) + 1
