"""The option `--executor`, alike for every verb that runs many simulations."""

from __future__ import annotations

from typing import Final

import click

from ramp.cli.options import Decorator
from ramp.errors import ConfigurationError
from simulation.experiments.executors import LOCAL, check_executor

executor_option: Final[Decorator] = click.option(
    "--executor",
    default=LOCAL,
    show_default=True,
    metavar="local|dask:ADDRESS",
    help="Where to run simulations: processes of this computer or a dask cluster.",
)


def check_alone(executor: str, processes: int | None, option: str) -> None:
    """Refuse a number of local processes beside an executor that is not this computer.

    Raises:
        ConfigurationError: both are given, or the executor is unknown.
    """
    if check_executor(executor) and processes is not None:
        raise ConfigurationError(f"applies to processes of this computer; leave it out with {executor}", key=option)
