"""The command line as tests call it."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import click
import pytest

from ramp.cli.main import main
from ramp.cli.views.output import JSON


@contextlib.contextmanager
def command_with_json() -> Iterator[None]:
    """Be a command that was given `--json`."""
    with click.Context(click.Command("any")) as context:
        context.meta[JSON] = True
        yield


@pytest.fixture
def ramp(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Runs a command line, which must end with an exit code; returns what it printed."""

    def run(*words: str, code: int = 0) -> Any:
        assert main(words) == code
        return capsys.readouterr()

    return run
