"""Every command of the README and of the pages under docs works, in its order, without workload logs.

`simulating-and-extending.md` has files to be written first: `tests/integration/test_examples.py` runs it. Pages
about real batch systems are run where one is: `tests/e2e/gridengine/test_page.py`; `two-sites.md` has two state folders
and is run by `tests/e2e/joining`.
"""

import os
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_blocks import read_page, run

ROOT = Path(__file__).parents[2]
RUN_ELSEWHERE = {ROOT / "docs" / name for name in ("simulating-and-extending.md", "gridengine.md", "two-sites.md")}
PAGES = [ROOT / "README.md", *sorted({*(ROOT / "docs").rglob("*.md")} - RUN_ELSEWHERE)]
COMMANDS = {page: len(read_page(page.read_text("utf-8")).commands) for page in PAGES}
WITH_COMMANDS = sorted((page for page in PAGES if COMMANDS[page]), key=lambda page: -COMMANDS[page])
"""Each is a test that shares nothing with another; those that take long begin first."""

PORT = "8799"
"""A port that pages name; here it is one that nobody has."""

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Path]:
    """A folder that looks like a checkout where `make install` was done, and a home beside it.

    What was launched from there is stopped.
    """
    work, home = tmp_path / "ramp", tmp_path / "home"
    work.mkdir()
    home.mkdir()
    for entry in ROOT.iterdir():
        if entry.name not in {".git", ".venv", "build", "out"}:
            (work / entry.name).symlink_to(entry)
    _make_environment(work / ".venv")
    yield work
    subprocess.run([work / ".venv" / "bin" / "ramp", "down"], env=_environment(work), capture_output=True)


def _make_environment(folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    bin_folder, here = folder / "bin", sysconfig.get_path("purelib")
    (packages,) = (folder / "lib").glob("python*/site-packages")
    (packages / "all_of_it.pth").write_text(f"import site; site.addsitedir({here!r})\n")
    for name, module in (("ramp", "ramp.cli.main"), ("pytest", "pytest")):
        script = bin_folder / name
        body = f"import sys\nfrom {module} import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
        script.write_text(f"#!{bin_folder / 'python'}\n{body}")
        script.chmod(0o755)
    (folder / ".installed").touch()


def _environment(work: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("RAMP_", "XDG_", "PYTEST_"))}
    path = f"{work / '.venv' / 'bin'}:{os.environ['PATH']}"
    return kept | {"HOME": str(work.parent / "home"), "PATH": path, "COLUMNS": "120"}


class Commands:
    """Tests of a page's commands."""

    page: Path

    def test_each_works_in_its_turn(self, work: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            text = self.page.read_text("utf-8").replace(PORT, str(free.getsockname()[1]))
        findings = run(read_page(text).commands, work, _environment(work))
        assert not findings, "\n\n".join(findings)


# a class a page, for `--dist loadscope` runs what is not of one class wherever there is time
for _page in WITH_COMMANDS:
    _name = "Test_" + str(_page.relative_to(ROOT).with_suffix("")).replace("/", "_").replace("-", "_")
    globals()[_name] = type(_name, (Commands,), {"page": _page})
