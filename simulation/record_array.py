"""Results as NumPy structured arrays, and as data frames where pandas is installed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ramp.errors import ConfigurationError

if TYPE_CHECKING:
    import pandas as pd


class RecordArray(np.ndarray[Any, np.dtype[np.void]]):
    """A structured array whose columns are had by name."""

    @classmethod
    def of(cls, fields: Sequence[tuple[str, Any]], rows: Iterable[tuple[Any, ...]]) -> Self:
        """An array from rows; texts (`np.str_`) become as wide as the longest.

        Args:
            fields: name and type of each column.
            rows: a value for each of them.
        """
        found = list(rows)
        widths = {
            column: max((len(row[column]) for row in found), default=0) or 1
            for column, (_, kind) in enumerate(fields)
            if kind is np.str_
        }
        dtype = [
            (name, f"U{widths[column]}" if column in widths else kind) for column, (name, kind) in enumerate(fields)
        ]
        return np.array(found, dtype=dtype).view(cls)

    def to_pandas(self) -> pd.DataFrame:
        """The same as a data frame.

        Raises:
            ConfigurationError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ConfigurationError("pandas is not installed: `pip install pandas`") from error
        return pd.DataFrame.from_records(self.view(np.ndarray))
