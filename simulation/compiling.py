"""Inner loops compiled by numba.

Compiled code is kept on disk until the file of its own function changes: after a change in a function that is called
from another module, that module has to be touched as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """Compile a function when it is first called, and keep the machine code on disk between runs."""
    result: _Function = numba.njit(cache=True)(function)
    return result
