"""The commands of docs/two-sites.md, in their order: two sites with federated servers trade, until one is shut out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ramp.servers.prosody import prosody_executable

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tests" / "documents"))

from command_blocks import read_page, run  # noqa: E402 (beside the documents' tests)

PAGE = ROOT / "docs" / "two-sites.md"

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(prosody_executable() is None, reason="Prosody is not installed"),
]


@pytest.fixture
def work() -> Iterator[Path]:
    """A short path, for the sockets under it; what was launched there is stopped."""
    with tempfile.TemporaryDirectory(prefix="ramp-2-") as folder:
        work = Path(folder) / "w"
        work.mkdir()
        yield work
        for site in ("south", "west"):
            subprocess.run(["ramp", "down", "--state-dir", site], cwd=work, env=environment(work), capture_output=True)


def environment(work: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("RAMP_", "XDG_", "PYTEST_"))}
    return {**kept, "HOME": str(work), "PATH": path, "COLUMNS": "120"}


def page_here() -> str:
    """The page with addresses that no other test has."""
    number = os.getpid()
    network = f"127.{64 + number % 128}.{number // 128 % 250}."
    text = PAGE.read_text("utf-8")
    assert "127.41.7." in text
    return text.replace("127.41.7.", network)


def test_every_command_of_the_page_works_in_its_order(work: Path) -> None:
    findings = run(read_page(page_here()).commands, work, environment(work))
    assert not findings, "\n\n".join(findings)
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
