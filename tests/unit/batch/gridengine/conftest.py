"""Outputs of the real commands (Grid Engine 8.1.9 of Debian 12, nine hosts), recorded on 2026-11-21."""

from pathlib import Path

import pytest

OUTPUTS = Path(__file__).parent / "outputs"


@pytest.fixture
def recorded():
    """The recorded output of a name."""
    return lambda name: (OUTPUTS / f"ge_{name}.txt").read_text(encoding="utf-8")
