"""The commands of docs/gridengine.md, in their order, with a real Grid Engine where the page has one."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.documents.command_blocks import read_page, run
from tests.e2e.gridengine.gridengine_cell import LIBRARY

PAGE = Path(__file__).parents[3] / "docs" / "gridengine.md"


@pytest.mark.e2e
@pytest.mark.timeout(1200)
def test_every_command_of_the_page_works_in_its_order(cluster):
    text = PAGE.read_text("utf-8")
    for written, here in (
        ("/var/lib/gridengine", str(cluster.root)),
        ("6444", cluster.environment["SGE_QMASTER_PORT"]),
        ("6445", cluster.environment["SGE_EXECD_PORT"]),
    ):
        assert written in text
        text = text.replace(written, here)
    with tempfile.TemporaryDirectory(prefix="ramp-ge-page-") as folder:
        work = Path(folder) / "work"
        work.mkdir()
        path = f"{Path(sys.executable).parent}:{LIBRARY}:{os.environ['PATH']}"
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("RAMP_", "XDG_", "PYTEST_"))}
        environment = {**kept, **cluster.environment, "HOME": folder, "PATH": path, "COLUMNS": "120"}
        try:
            findings = run(read_page(text).commands, work, environment)
        finally:
            subprocess.run(["ramp", "down"], env=environment, capture_output=True)
    assert not findings, "\n\n".join(findings)
    assert cluster("qrstat", "-u", "*") == ""  # what was cancelled is given back
