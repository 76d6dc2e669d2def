"""A seller's catalogue: whose words start what, and who is refused."""

import subprocess
from dataclasses import replace
from typing import Any

import pytest

from ramp.errors import ConfigurationError
from ramp.launching.configuration import LaunchingConfig, launch_terms
from ramp.model.offer import RefusalCode
from ramp.model.request import RequestUnit, TotalCores
from ramp.protocol.resource.jobs.launching import Application, application_refusal, found

HOSTILE = ("two words", "; touch broken", "$(touch broken)", "`touch broken`", "{cores}", "{input}", "\n", "-x", "")
CATALOGUE = (Application("NAMD", ("namd2",), "2.12"), Application("NAMD", ("namd1",), "2.9"), Application("R", ("R",)))
UNIT = RequestUnit(1, 70, 10, TotalCores(4))


@pytest.mark.parametrize(
    ("template", "words"),
    [
        (("namd2", "+p{cores}", "{input}", "--gpus={gpus}"), ["namd2", "+p16", *HOSTILE, "--gpus=4"]),
        (("namd2", "x{input}"), ["namd2", "x{input}", *HOSTILE]),
    ],
)
def test_a_template_takes_the_buyers_words_as_they_are(template: tuple[str, ...], words: list[str]) -> None:
    application = Application("NAMD", template)
    assert list(application.command_for(HOSTILE, 16, 4)) == words
    contained = replace(application, container="/apps/a b.sif").command_for(HOSTILE, 16, 4)
    assert list(contained) == ["apptainer", "exec", "/apps/a b.sif", *words]


def test_a_shell_that_loads_modules_reads_none_of_the_buyers_words(tmp_path: Any) -> None:
    """A real one; its `module` is this test's."""
    command = Application("NAMD", ("printf", "%s\\0"), modules=("gcc/12", "namd/2.12")).command_for(HOSTILE, 1, 0)
    environment = {"BASH_FUNC_module%%": '() { echo "$@" > loaded; }', "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert tuple(done.stdout.split("\0")[:-1]) == HOSTILE
    assert (tmp_path / "loaded").read_text() == "load gcc/12 namd/2.12\n"
    assert not (tmp_path / "broken").exists()


@pytest.mark.parametrize(
    ("name", "version", "nearest"),
    [
        ("NAMD", None, None),
        ("NAMD", "2.9", None),
        ("NAMD", "3.0", "NAMD 2.12, NAMD 2.9"),
        ("namd", None, "NAMD 2.12, NAMD 2.9, R"),
        (None, None, None),
    ],
)
def test_a_seller_without_the_application_says_what_it_has(name: Any, version: Any, nearest: str | None) -> None:
    refusal = application_refusal(replace(UNIT, application=name, application_version=version), CATALOGUE)
    assert (refusal and (refusal.code, refusal.nearest)) == (nearest and (RefusalCode.APPLICATION, nearest))
    assert refusal is None or "the request needs" in refusal.detail
    assert found(CATALOGUE, "NAMD", "") is CATALOGUE[0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "a b"},
        {"version": "1;2"},
        {"command": ()},
        {"command": ("",)},
        {"command": ("{input}",)},
        {"modules": ("a;b",)},
    ],
)
def test_an_entry_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Application(**{"name": "NAMD", "command": ("namd2",), **wrong})
    assert [caught.value.key] == list(wrong)


@pytest.mark.parametrize("executor", ["none", "handover"])
def test_applications_need_an_executor_that_launches(executor: Any) -> None:
    with pytest.raises(ConfigurationError, match="applications need it"):
        launch_terms(LaunchingConfig(), executor, {}, CATALOGUE)
