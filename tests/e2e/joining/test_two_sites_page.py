"""The commands of docs/two-sites.md, in their order: two sites with federated servers trade, until one is shut out.

Both sites are on one computer, as the page has it; and, where the kernel allows it, on two: network namespaces, which
reach each other over one cable and nothing else.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ramp.declarations import load_file
from ramp.servers.prosody import prosody_executable
from tests.documents.command_blocks import read_page, run

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "two-sites.md"
TWO_HOSTS = load_file(ROOT / "examples" / "studies" / "two_hosts.py")

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(prosody_executable() is None, reason="Prosody is not installed"),
]


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Path]:
    """A folder; what was launched there is stopped."""
    yield tmp_path
    for site in ("south", "west"):
        down = ["ramp", "down", "--state-dir", site]
        subprocess.run(down, cwd=tmp_path, env=environment(tmp_path), capture_output=True)


PROGRAMS = Path(sys.executable).parent


def environment(work: Path, *first: Path) -> dict[str, str]:
    """What the page's commands run with; programs are looked for in some folders first."""
    path = ":".join([*map(str, first), str(PROGRAMS), os.environ["PATH"]])
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("RAMP_", "XDG_", "PYTEST_"))}
    return {**kept, "HOME": str(work), "PATH": path, "COLUMNS": "120"}


def page_here(addresses: tuple[str, str] | None = None) -> str:
    """The page with the addresses of two hosts, or with some of this one's that no other test has."""
    if addresses is None:
        number = os.getpid()
        network = f"127.{64 + number % 128}.{number // 128 % 250}."
        addresses = f"{network}1", f"{network}2"
    text = PAGE.read_text("utf-8")
    for number, address in enumerate(addresses, 1):
        assert f'"127.41.7.{number}' in text
        text = text.replace(f'"127.41.7.{number}', f'"{address}')
    assert "127.41.7." not in text
    return text


@contextlib.contextmanager
def two_hosts(folder: Path) -> Iterator[tuple[Any, Any, Path]]:
    """West's host and everybody else's, and the folder of a `ramp` that runs a command on the host that it is for."""
    if reason := TWO_HOSTS.reason_against():
        pytest.skip(reason)
    programs = folder / "programs"
    programs.mkdir()
    with TWO_HOSTS.joined_hosts(folder) as (west, others):
        chosen = f'host={others.namespace}; [[ " $* " == *" --state-dir west "* ]] && host={west.namespace}'
        ramp = programs / "ramp"
        ramp.write_text(f'#!/bin/bash\n{chosen}\nexec ip netns exec $host {PROGRAMS / "ramp"} "$@"\n', "utf-8")
        ramp.chmod(0o755)
        yield west, others, programs


def test_every_command_of_the_page_works_in_its_order(work: Path) -> None:
    findings = run(read_page(page_here()).commands, work, environment(work))
    assert not findings, "\n\n".join(findings)
    check_invitations(work)


@pytest.mark.full
def test_every_command_works_between_two_hosts(work: Path) -> None:
    with two_hosts(work.parent) as (west, others, programs):
        page = page_here((west.address, others.address))
        findings = run(read_page(page).commands, work, environment(work, programs))
    assert not findings, "\n\n".join(findings)
    check_invitations(work)


def check_invitations(work: Path) -> None:
    """What has become of all three invitations of the page."""
    listed = subprocess.run(
        ["ramp", "invite", "list", "--json", "--state-dir", "west"],
        cwd=work,
        env=environment(work),
        capture_output=True,
        text=True,
        check=True,
    )
    states = {entry["name"]: entry["state"] for entry in json.loads(listed.stdout)}
    assert states == {
        "south1@south.example": "revoked",
        "sofia@south.example": "enrolled",
        "dora@west.example": "enrolled",
    }
