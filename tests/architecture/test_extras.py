"""What a buyer installs: numba and matplotlib are optional, and light modules stay light."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import ramp
import simulation

OPTIONAL = {"numba", "matplotlib"}

PICTURES = {"plots/machine3d.py", "plots/one_run.py"}
"""Modules of `simulation` that may import matplotlib at their top: they are imported only where a picture is drawn."""

BLOCKED = f"import sys\nfor name in {sorted(OPTIONAL)}: sys.modules[name] = None\n"


def sources(package: str) -> dict[str, str]:
    root = Path(package).parent
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*.py")}


def imported(nodes: list[ast.stmt]) -> set[str]:
    """Top-level packages that statements import when they are run, those for type checkers apart."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(str(node.module).partition(".")[0])
    return found


def test_no_module_of_ramp_imports_what_is_optional() -> None:
    pattern = re.compile(rf"^\s*(import|from) ({'|'.join(OPTIONAL)})\b", re.MULTILINE)
    assert [path for path, text in sources(str(ramp.__file__)).items() if pattern.search(text)] == []


def test_simulation_imports_what_is_optional_where_it_is_used() -> None:
    texts = sources(str(simulation.__file__))
    mentioned = {path: text for path, text in texts.items() if any(name in text for name in OPTIONAL)}
    assert {path for path, text in mentioned.items() if imported(ast.parse(text).body) & OPTIONAL} == PICTURES
    numba = re.compile(r"^\s+(import|from) numba\b", re.MULTILINE)
    assert [path for path, text in texts.items() if numba.search(text)] == ["compiling.py"]


def test_every_verb_and_experiment_loads_without_what_is_optional() -> None:
    program = f"""{BLOCKED}
import importlib
from importlib import metadata
from ramp.cli.main import VERBS
foreign = [entry.value for entry in metadata.entry_points(group="ramp.commands")]
for place in [verb.place for verb in VERBS.values()] + foreign:
    importlib.import_module(place.partition(":")[0])
from simulation.experiments.discovery import all_experiments
assert all_experiments()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_banks_ledger_loads_no_machine_of_a_user() -> None:
    program = "import sys, ramp.runtime.ledger.bank_ledger; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in loaded if name.startswith("ramp.protocol.user")] == []
