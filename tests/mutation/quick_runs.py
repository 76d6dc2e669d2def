"""mutmut's run, made quick: tests are collected once, and mypy looks again only after a mutant has changed.

mutmut starts pytest anew for each mutant, which takes some seconds where a mutant's tests take some hundredths. Here
all tests are collected once, and every mutant's process is forked from there. What is replaced are four places of
mutmut 3.8.1: the runner of tests (`PytestRunner.run_tests` and what is around it), the filter by mypy, which reads the
line index of the mutants that mutmut writes instead of parsing them again, the list of mutants to try, and the count of
verdicts, which is made now and then.
"""

import hashlib
import json
import math
import os
import resource
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import _pytest.config
import _pytest.main
import mutmut.__main__ as program
import mutmut.workers.isolation as isolation
import pytest
from mutmut.__main__ import collect_source_file_mutation_data
from mutmut.configuration import config
from mutmut.mutation.data import MutantLineSpans, SourceFileMutationData
from mutmut.mutation.file_mutation import FailedTypeCheckMutant, MutatedMethodLocation
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.runners.harness import ListAllTestsResult, PytestRunner
from mutmut.state import state
from mutmut.type_checking import TypeCheckingError, run_type_checker
from mutmut.utils.file_utils import change_cwd, walk_mutatable_files
from mutmut.utils.format_utils import get_mutant_name

#: seconds of processor time that a test may take with a mutant beyond what it takes without one by the clock
PROCESSOR_SECONDS_MORE = 5
#: bytes of address space that a mutant may take: an endless loop that collects must end
MEMORY_MAX = 4 << 30
REFUSED = Path("mutants/refused-by-mypy.json")
KILLERS = Path("mutants/killers")  # lines of a mutant, a tab, and the test that has noticed it
REACHED = Path("mutants/mutmut-stats.json")  # which tests reach which function, by mutmut
REACHED_IN = Path("mutants/reached-in")  # the code in which they do
SKIPPED, REFUSED_BY_MYPY = 34, 37  # mutmut's exit statuses of mutants that are not tried
SECONDS_BETWEEN_COUNTS = 2

Trial = tuple[SourceFileMutationData, str, int | None]


class CollectedTests(PytestRunner):
    """Runs the tests of a mutant in a process forked from one that has collected all of them."""

    def __init__(self) -> None:
        super().__init__()
        self._session: pytest.Session | None = None
        self._items: dict[str, pytest.Item] = {}

    def list_all_tests(self) -> ListAllTestsResult:
        """All tests of the selection, as mutmut calls them."""
        self._collect()
        return ListAllTestsResult(ids=set(self._items))

    def run_forced_fail(self) -> int:
        """Whether a test notices that all functions raise; in a process of its own."""
        self._collect()
        return isolation.run_in_fork(lambda: self.run_tests(mutant_name=None, tests=self._items))

    def run_tests(self, *, mutant_name: str | None, tests: Iterable[str]) -> int:
        """Run tests until one fails.

        Args:
            mutant_name: the mutant that is switched on, None for none; then the tests run in a process of their own.
            tests: their ids.

        Returns:
            Exit status as pytest's: 0 if all pass, 1 if one fails.
        """
        self._collect()
        if mutant_name is None and os.environ.get("MUTANT_UNDER_TEST") != "fail":
            return isolation.run_in_fork(lambda: self._run([self._items[each] for each in tests or self._items]))
        chosen = likely_first(tests, _killers_like(mutant_name or ""), state().duration_by_test)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
        return self._run([self._items[each] for each in chosen], mutant_name)

    def _collect(self) -> None:
        if self._session is not None:
            return
        set_mutant_under_test("")
        arguments = ["--rootdir=.", "--tb=no", "-q", "-s", *self._pytest_add_cli_args]
        with change_cwd("mutants"):
            prepared = _pytest.config._prepareconfig([*arguments, *self._pytest_add_cli_args_test_selection])
            session = _pytest.main.Session.from_config(prepared)
            prepared._do_configure()
            prepared.hook.pytest_sessionstart(session=session)
            session.perform_collect()
            prepared.pluginmanager.unregister(name="terminalreporter")  # nobody reads it
            prepared._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # one folder for all processes
        self._session = session
        self._items = {item.nodeid: item for item in session.items}

    def _run(self, items: list[pytest.Item], mutant_name: str | None = None) -> int:
        session = self._session
        assert session is not None

        with change_cwd("mutants"):
            for item, following in zip(items, [*items[1:], None], strict=False):  # none at all: nothing notices it
                if mutant_name is not None:
                    _limit_processor(state().duration_by_test.get(item.nodeid, 0.0) + PROCESSOR_SECONDS_MORE)
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if session.testsfailed:
                    break
            else:
                return 0
        if mutant_name is not None:
            with KILLERS.open("a") as told:
                told.write(f"{mutant_name}\t{item.nodeid}\n")
        return 1


def likely_first(tests: Iterable[str], killers: Sequence[str], seconds: Mapping[str, float]) -> list[str]:
    """Sort tests: those that have noticed mutants like this one, the most successful first, then the quickest."""
    first = {test: number for number, test in enumerate(killers)}
    return sorted(tests, key=lambda test: (first.get(test, len(first)), seconds.get(test, 0.0), test))


def _limit_processor(seconds: float) -> None:
    """Let this process end by SIGXCPU once it has taken so much more processor time: a mutant may never come back."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = math.ceil(time.process_time() + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def _killers_like(mutant_name: str) -> list[str]:
    """The tests that have noticed mutants of the same function, or else module: the most successful first."""
    try:
        known = [line.split("\t") for line in KILLERS.read_text().splitlines()]
    except FileNotFoundError:
        return []
    function, module = mutant_name.rpartition("__mutmut_")[0], mutant_name.rpartition(".")[0]
    of_function = Counter(test for name, test in known if name.rpartition("__mutmut_")[0] == function)
    of_module = Counter(test for name, test in known if name.rpartition(".")[0] == module)
    return list(dict.fromkeys(test for test, _ in [*of_function.most_common(), *of_module.most_common(20)]))


def refused_by_mypy() -> dict[str, FailedTypeCheckMutant]:
    """The mutants that mypy refuses, by name; from the last time if no mutant has changed since."""
    paths = [path for path in sorted(walk_mutatable_files()) if MutantLineSpans.load(path) is not None]
    fingerprint = hashlib.sha256(repr(config().type_check_command).encode())
    for path in paths:
        fingerprint.update((Path("mutants") / path).read_bytes())
    try:
        known, found = json.loads(REFUSED.read_text())
    except FileNotFoundError:
        known, found = "", {}
    if known != fingerprint.hexdigest():
        found = _ask_mypy(paths)
        REFUSED.write_text(json.dumps([fingerprint.hexdigest(), found]))
    return {name: _refusal(name, *found[name]) for name in found}


def _ask_mypy(paths: list[Path]) -> dict[str, tuple[str, int, str]]:
    with change_cwd("mutants"):
        errors = run_type_checker(config().type_check_command)
    found: dict[str, tuple[str, int, str]] = {}
    for path in paths:
        spans = MutantLineSpans.load(path)
        of_file = [error for error in errors if error.file_path == (Path("mutants") / path).absolute()]
        for error in of_file:
            for function, span in spans.span_by_function_name.items() if spans is not None else ():
                if span.start <= error.line_number <= span.end and "__mutmut_" in function:
                    found[get_mutant_name(path, function)] = (str(path), error.line_number, error.error_description)
    return found


def _refusal(name: str, path: str, line: int, why: str) -> FailedTypeCheckMutant:
    place = MutatedMethodLocation(
        file=Path(path), function_name=name.rpartition(".")[2], line_number_start=line, line_number_end=line
    )
    return FailedTypeCheckMutant(method_location=place, name=name, error=TypeCheckingError(Path(path), line, why))


def left_to_try(
    mutant_names: Sequence[str], needs_none: Callable[[str, Path], bool]
) -> tuple[list[Trial], dict[str, SourceFileMutationData]]:
    """The mutants without a verdict that tests may have a say in; the others get theirs: refused by mypy, or skipped.

    Args:
        mutant_names: patterns of their names; none for all.
        needs_none: whether a mutant, known by its name and its module's path, need not be tried.
    """
    mutants, data_by_path = collect_source_file_mutation_data(mutant_names=list(mutant_names))
    refused = refused_by_mypy()
    left: list[Trial] = []
    for data, name, result in mutants:
        if result is None and name in refused:
            data.exit_code_by_key[name] = REFUSED_BY_MYPY
        elif result is None and needs_none(name, data.path):
            data.exit_code_by_key[name] = SKIPPED
        elif result is None:
            left.append((data, name, result))
    for data in data_by_path.values():
        data.save()
    return left, data_by_path


def _count_now_and_then(count: Callable[..., None]) -> Callable[..., None]:
    """mutmut's count of all verdicts, which it makes before every trial: 5 ms for 21 000 of them."""
    due = 0.0

    def count_if_due(*counted: object, force_output: bool = False) -> None:
        nonlocal due
        if force_output or time.monotonic() >= due:
            count(*counted, force_output=force_output)
            due = time.monotonic() + SECONDS_BETWEEN_COUNTS

    return count_if_due


def look_anew_where_code_has_changed() -> None:
    """Let mutmut see once more which tests reach which function, if any code has changed: it looks at new tests only.

    A function that is new would have no tests else, or these alone, and its mutants would survive.
    """
    code = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(walk_mutatable_files()))).hexdigest()
    if not REACHED_IN.exists() or REACHED_IN.read_text() != code:
        REACHED.unlink(missing_ok=True)
        REACHED_IN.parent.mkdir(exist_ok=True)
        REACHED_IN.write_text(code)


def run(patterns: list[str], processes: int, needs_none: Callable[[str, Path], bool]) -> None:
    """Try the mutants that have no verdict.

    Args:
        patterns: patterns of the mutants' names; none for all.
        processes: how many are tried at a time.
        needs_none: whether a mutant need not be tried; see `left_to_try`.

    Raises:
        SystemExit: if the tests fail without any mutant.
    """
    # mutmut copies tests and modules, and leaves there what was taken away
    shutil.rmtree("mutants/tests", ignore_errors=True)
    for copy in Path("mutants").glob("*/**/*.py"):
        if not copy.relative_to("mutants").exists():
            copy.unlink()
    look_anew_where_code_has_changed()
    isolation.PytestRunner = CollectedTests  # type: ignore[misc]
    program.print_stats = _count_now_and_then(program.print_stats)
    program.filter_mutants_with_type_checker = refused_by_mypy
    program.collect_source_file_mutation_data = lambda *, mutant_names: left_to_try(mutant_names, needs_none)
    program._run(patterns, processes)
