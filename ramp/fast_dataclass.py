"""Dataclasses of which a market makes hundreds for each request: frozen for the type checker, not at run time.

A frozen one sets every field by a call of `object.__setattr__`. That takes five times as long and was a fifth of the
time of a large simulated market. What a plug-in returns, or is given and others read too, stays frozen at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["fast_dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass as fast_dataclass
else:
    from dataclasses import dataclass

    def fast_dataclass(*, frozen: bool, slots: bool):
        """Make a dataclass that compares and hashes as a frozen one does."""
        return dataclass(slots=slots, unsafe_hash=frozen)
