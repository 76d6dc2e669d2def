"""Mutation testing: runs mutmut and compares the mutants that survive with those that are accounted for.

    python -m tests.mutation [PATTERN...]      e.g. "ramp.protocol.bank.*"; without a pattern all
    python -m tests.mutation --report          what is known so far, module by module

mutmut changes one thing at a time in the modules that `[tool.mutmut]` of pyproject.toml names, leaves out what mypy
refuses, and runs the tests that reach the changed function. A mutant that no test notices has to be in survivors.txt
with a reason, or this ends with exit code 1. Changes of nothing but words for people (a text with a blank in it, and
what a `check_` function calls a value in its message) are counted apart and not tried: no test should hold them to the
letter. Neither are survivors that are accounted for, as long as function and reason stand as they are; `--argued` tries
those as well, and tells which of them a test catches by now.

Verdicts stay in the folder `mutants`. What was caught is not tried again until its function changes; another survivor
is tried every time. `make clean` forgets all, as one has to after tests were taken away.
"""

import argparse
import ast
import os
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant, read_functions_from_index
from mutmut.stats import status_by_exit_code
from mutmut.utils.file_utils import walk_mutatable_files

from tests.mutation import quick_runs

SURVIVORS = Path(__file__).with_name("survivors.txt")
REFUSED = "caught by type check"
CAUGHT = ("killed", "timeout", "segfault", REFUSED)
REASONS = ("equivalent", "harmless", "open")


@dataclass(frozen=True)
class Mutant:
    """A change of one function, known by its text: running numbers change with every line that is added.

    Attributes:
        place: the module's path, and the function.
        change: the lines taken out and put in, each with its sign.
    """

    place: str
    change: tuple[str, ...]


def read_accounted(text: str) -> dict[Mutant, str]:
    """The mutants that are accounted for, each with its reason.

    Args:
        text: blocks of a line with the place, lines of the change, and a line `= reason`; `#` begins a comment.

    Raises:
        ValueError: for a block without a reason of the three kinds.
    """
    accounted: dict[Mutant, str] = {}
    for block in "\n".join(line for line in text.splitlines() if not line.startswith("#")).split("\n\n"):
        lines = [line for line in block.splitlines() if line.strip()]
        if not lines:
            continue
        reason = lines[-1].removeprefix("= ")
        if not lines[-1].startswith("= ") or not reason.startswith(REASONS):
            raise ValueError(f"{SURVIVORS.name}: {lines[0]!r} ends with {lines[-1]!r}; right is '= equivalent: why'")
        accounted[Mutant(lines[0], tuple(lines[1:-1]))] = reason
    return accounted


def verdicts() -> Iterator[tuple[str, Path, str]]:
    """Every mutant's name, its module's path, and what became of it."""
    for path in sorted(walk_mutatable_files()):
        data = SourceFileMutationData(path=path)
        data.load()
        for name, code in data.exit_code_by_key.items():
            yield name, path, status_by_exit_code[code]


def place_of(name: str, path: Path) -> str:
    """The module and the function that a mutant of mutmut changes."""
    _, _, function = name.rpartition("__mutmut_")[0].rpartition(".")
    _, *words = function.split("ǁ")
    return f"{path} {'.'.join(words) if words else function.removeprefix('x_')}"


def mutant_of(name: str, path: Path) -> Mutant:
    """What a mutant of mutmut changes, in a form that lasts."""
    signed = [
        line for line in get_diff_for_mutant(name, path=path).splitlines() if line[:1] in "-+" and line[1:].strip()
    ]
    change = [f"{line[0]} {line[1:].strip()}" for line in signed if not line.startswith(("---", "+++"))]
    return Mutant(place_of(name, path), tuple(change))


def changes_words_only(name: str, path: Path) -> bool:
    """Whether a mutant changes words for people and nothing else."""
    functions = read_functions_from_index(name, path)
    if functions is None:
        return False
    before, after = (ast.parse(ast_text.strip()) for ast_text in map(_text_of, functions))
    return _differ_in_words(before, after)


def needs_no_trial(name: str, path: Path, argued: Collection[Mutant]) -> bool:
    """Whether what would come of a trial is of no interest, or known.

    Args:
        name: the mutant, as mutmut calls it.
        path: its module.
        argued: mutants that survive for a reason that stands.
    """
    place = place_of(name, path)
    if any(each.place == place for each in argued) and mutant_of(name, path) in argued:
        return True
    return changes_words_only(name, path)


def _text_of(function: object) -> str:
    import libcst

    assert isinstance(function, libcst.FunctionDef)
    return libcst.Module([function.with_changes(leading_lines=[])]).code


def _differ_in_words(before: object, after: object) -> bool:
    """Whether two trees that are not equal differ in one text for people."""
    if isinstance(before, ast.Constant | ast.JoinedStr) and _has_words(before):
        return True
    if type(before) is not type(after):
        return False
    if isinstance(before, list) and isinstance(after, list):
        differing = [pair for pair in zip(before, after, strict=False) if _dump(pair[0]) != _dump(pair[1])]
        return len(before) == len(after) and all(_differ_in_words(*pair) for pair in differing)
    if not isinstance(before, ast.AST):
        return False
    if isinstance(before, ast.Call) and isinstance(after, ast.Call) and _names_a_value(before):
        return _dump(before.args[1:]) == _dump(after.args[1:])
    fields = [(getattr(before, name, None), getattr(after, name, None)) for name in before._fields]
    return all(_differ_in_words(*pair) for pair in fields if _dump(pair[0]) != _dump(pair[1]))


def _dump(part: object) -> str:
    if isinstance(part, list):
        return ",".join(map(_dump, part))
    return ast.dump(part) if isinstance(part, ast.AST) else repr(part)


def _has_words(node: ast.AST) -> bool:
    texts = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
    return any(isinstance(text, str) and " " in text for text in texts)


def _names_a_value(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id.startswith("check_") and len(call.args) > 1


def forget_survivors() -> None:
    """Let mutmut try again what survived the last time: the tests may have grown since."""
    for path in walk_mutatable_files():
        data = SourceFileMutationData(path=path)
        data.load()
        if data.exit_code_by_key:
            again = {name for name, code in data.exit_code_by_key.items() if status_by_exit_code[code] not in CAUGHT}
            data.exit_code_by_key.update(dict.fromkeys(again))
            data.save()


def report(accounted: dict[Mutant, str]) -> int:
    """Say what became of all mutants, module by module, and which survive without a reason.

    Args:
        accounted: the mutants that may survive.

    Returns:
        Exit status: 0 if every survivor is accounted for, 1 if not.
    """
    counts: dict[str, Counter[str]] = {}
    new: list[Mutant] = []
    needed: set[Mutant] = set()
    for name, path, status in verdicts():
        if status not in (*CAUGHT, "not checked"):
            mutant = mutant_of(name, path)
            if mutant in accounted:
                needed.add(mutant)
                status = accounted[mutant].split(":")[0]
            elif changes_words_only(name, path):
                status = "words"
            else:
                status = "new"
                new.append(mutant)
        counts.setdefault(str(path), Counter())[status] += 1
    for module, of_module in sorted(counts.items()):
        print(f"{module}: {_score(of_module)}")
    print(f"all: {_score(sum(counts.values(), Counter()))}")
    for mutant in accounted.keys() - needed:
        module = mutant.place.split()[0]
        if not counts.get(module, Counter({"not checked": 1}))["not checked"]:
            print(f"\nno longer survives, or is no longer there:\n{mutant.place}\n" + "\n".join(mutant.change))
    for mutant in new:
        print(f"\n{mutant.place}\n" + "\n".join(mutant.change))
    if new:
        print(f"\n{len(new)} survivors above are not in {SURVIVORS.name}: kill them with a test, or say there why not")
    return 1 if new else 0


def _score(counted: Counter[str]) -> str:
    """What the tests have caught of what mypy lets pass."""
    caught = sum(counted[status] for status in CAUGHT if status != REFUSED)
    judged = counted.total() - counted["words"] - counted["not checked"] - counted[REFUSED]
    parts = ", ".join(f"{number} {status}" for status, number in counted.most_common())
    return f"{caught} of {judged} caught by a test, {caught / judged:.1%} ({parts})" if judged else f"({parts})"


def main() -> int:
    """Run mutmut unless only a report is wanted, and say what survives.

    Returns:
        Exit status: 0 if every survivor is accounted for, 1 if not, or if the tests fail without any mutant.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="names of mutants to try, with *")
    parser.add_argument("--processes", type=int, default=2, help="mutants tried at a time (2)")
    parser.add_argument("--report", action="store_true", help="try nothing, say what is known")
    parser.add_argument("--argued", action="store_true", help="try those too that survivors.txt accounts for")
    options = parser.parse_args()
    accounted = read_accounted(SURVIVORS.read_text())
    if not options.report:
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # where mypy is
        os.environ["RAMP_EXAMPLES"] = "1"
        forget_survivors()
        argued = {} if options.argued else accounted
        quick_runs.run(options.patterns, options.processes, lambda name, path: needs_no_trial(name, path, argued))
    return report(accounted)


if __name__ == "__main__":
    sys.exit(main())
