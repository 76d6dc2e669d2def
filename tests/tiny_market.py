"""The configuration of a market of a few small machines, for tests that need one and not a certain one."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ramp.cli.main import main
from ramp.runtime.configuration.file import read_tables, tables_of
from ramp.runtime.configuration.values import SwarmConfig

TWO_SELLERS = {"alpha": (40, 20), "beta": (60, 30)}
"""First and least price of each resource, credits per core-hour."""


STEADY = """cores_per_node = 8
operating_system = "LINUX"
architecture = "x86_64"
plugin = "steady"
options = { load = 0.25 }
"""
"""A machine of which others take a quarter."""


def tiny_market(
    deposits: Mapping[str, int],
    *,
    prices: Mapping[str, tuple[int, int]] = TWO_SELLERS,
    cores: int = 64,
    machine: str = STEADY,
) -> str:
    """The text of a configuration.

    Args:
        deposits: of each user, in credits.
        prices: first and least price of each resource.
        cores: of each machine.
        machine: what the file says of each machine besides its cores.
    """
    users = [f'[[users]]\nname = "{name}"\ndeposit = {amount}\n' for name, amount in deposits.items()]
    resources = [
        f'[[resources]]\nname = "{name}"\nmachine = "small"\nstart_price = {start}\nminimum_price = {least}\n'
        for name, (start, least) in prices.items()
    ]
    return "\n".join([*users, f"[machines.small]\ncores = {cores}\n{machine}", *resources])


def config_of(text: str) -> SwarmConfig:
    """The configuration that a file of this text would be."""
    path = Path("market.toml")
    return read_tables(tables_of(text, path), path, text)


@contextmanager
def launched(config: str) -> Iterator[Path]:
    """Launch a market from the text of a configuration; yield its state folder and stop the market afterwards."""
    with tempfile.TemporaryDirectory(prefix="ramp-tiny-") as folder:  # a short path, for the sockets in it
        path, state = Path(folder) / "market.toml", Path(folder) / "state"
        path.write_text(config)
        try:
            assert main(["up", str(path), "--detach", "--state-dir", str(state)]) == 0
            yield state
        finally:
            main(["down", "--state-dir", str(state)])
