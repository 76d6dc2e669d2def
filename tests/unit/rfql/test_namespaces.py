"""The schemas are found in a checkout and in an installed package, and a package without them says so."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ramp
from ramp.rfql.xml.namespaces import schemas_dir

PACKAGE = Path(ramp.__file__).resolve().parent
ASK = "from ramp.rfql.xml.namespaces import schemas_dir; print(schemas_dir())"


def ask(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ASK],
        cwd=folder,
        env={"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The package as a wheel lays it out: pyproject.toml puts schemas/ into ramp/_data/schemas."""
    (tmp_path / "ramp" / "rfql" / "xml").mkdir(parents=True)
    packages = ("__init__.py", "rfql/__init__.py", "rfql/xml/__init__.py")
    for name in (*packages, "rfql/xml/namespaces.py", "shipped_files.py", "errors.py", "text.py"):
        shutil.copy(PACKAGE / name, tmp_path / "ramp" / name)
    return tmp_path


def test_checkout() -> None:
    assert (schemas_dir() / "market.xsd").is_file()


def test_installed_package(installed: Path) -> None:
    shutil.copytree(schemas_dir(), installed / "ramp" / "_data" / "schemas")
    assert ask(installed).stdout.strip() == str((installed / "ramp" / "_data" / "schemas").resolve())


def test_incomplete_installation_says_so(installed: Path) -> None:
    answer = ask(installed)
    assert answer.returncode == 1
    assert "the installation is incomplete" in answer.stderr
