"""The command line as tests call it."""

from collections.abc import Callable
from typing import Any

import pytest

from ramp.cli.main import main


@pytest.fixture
def ramp(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Runs a command line, which must end with an exit code; returns what it printed."""

    def run(*words: str, code: int = 0) -> Any:
        assert main(words) == code
        return capsys.readouterr()

    return run
