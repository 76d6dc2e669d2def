"""Static terms that nobody wrote down: asked of the cluster once, kept, and never put over what the file says."""

from pathlib import Path

import pytest

from ramp.batch.commands import Completed
from ramp.batch.slurm import partition
from ramp.batch.slurm.partition import default_partition, found_conf, static_terms
from ramp.batch.slurm.plugin import SlurmOptions
from ramp.errors import BatchSystemError, ConfigurationError
from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration_changes.overlay import load_overlay, running_config, save_overlay, starting
from ramp.runtime.state_folder import StateFolder

NODES = "n1|idle|1|8|1|8|16000|(null)|(null)|none\nn2|idle|2|8|1|16|64000|(null)|(null)|none\n"
ANSWERS = {"%P": "short\ndebug*\n", "show": "NodeName=n1 Arch=aarch64 CoresPerSocket=8\n", "-N": NODES}
FILE = """
[[users]]
name = "alice"
[machines.big]
plugin = "slurm"
{more}
[[resources]]
name = "big1"
machine = "big"
start_price = 45
minimum_price = 20
"""


def _run(argv: tuple[str, ...], stdin: str = "", time_limit_s: float | None = None) -> Completed:
    return Completed(argv, 0, next(answer for word, answer in ANSWERS.items() if word in argv), "")


def test_a_cluster_tells_its_default_partition_and_its_terms() -> None:
    assert default_partition(_run) == "debug"
    terms = static_terms(_run, "debug")
    # the sockets, cores and memory of both nodes; JSDL's name of the architecture
    assert terms == {
        "cores": 24,
        "cores_per_node": 16,
        "operating_system": "LINUX",
        "ram_per_core_mb": 2000,
        "architecture": "arm",
    }


@pytest.mark.parametrize(
    ("one", "other", "terms"),
    [
        ("gpu:a100:4(S:0-1)", "gpu:a100:2", {"gpus_per_node": 2, "gpu_model": "a100"}),
        ("gpu", "fpga:1,gpu:3", {"gpus_per_node": 1}),
        ("gpu:a100:1", "gpu:v100:1", {}),
        ("gpu:a100:1", "(null)", {}),
    ],
)
def test_gpus_are_terms_where_all_nodes_have_the_same_ones(
    one: str, other: str, terms: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = NODES.splitlines()
    nodes = f"{first.replace('(null)', one, 1)}\n{second.replace('(null)', other, 1)}\n"
    monkeypatch.setitem(ANSWERS, "-N", nodes)
    found = static_terms(_run, "debug")
    assert {name: value for name, value in found.items() if name.startswith("gpu")} == terms


def test_without_a_default_partition_the_others_are_named() -> None:
    with pytest.raises(BatchSystemError, match="no default partition: expected one of a, b"):
        default_partition(lambda *_: Completed((), 0, "a\nb\n", ""))


def test_where_slurm_conf_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "slurm.conf"
    monkeypatch.delenv("SLURM_CONF", raising=False)
    monkeypatch.setattr(partition, "USUAL_CONFS", (str(path),))
    with pytest.raises(ConfigurationError, match="set SLURM_CONF in the environment or the option conf"):
        found_conf("")
    path.touch()
    assert found_conf("") == ""
    monkeypatch.setenv("SLURM_CONF", str(path))
    assert found_conf("") == str(path)
    with pytest.raises(ConfigurationError, match="/no/such is not a file"):
        found_conf("/no/such")
    monkeypatch.setenv("SLURM_CONF", "/nor/this")
    with pytest.raises(ConfigurationError, match="SLURM_CONF: /nor/this is not a file"):
        found_conf("")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which partitions were asked for their terms, and a cluster that says 24 cores."""
    names: list[str] = []

    def found_terms(options: SlurmOptions) -> dict[str, object]:
        names.append(options.partition)
        return {"cores": 24, "ram_per_core_mb": 2000}

    monkeypatch.setattr(SlurmOptions, "found_terms", found_terms)
    return names


def test_what_a_file_leaves_out_is_asked_once_and_kept(tmp_path: Path, asked: list[str]) -> None:
    path, state = tmp_path / "market.toml", StateFolder(tmp_path / "state")
    state.prepare()
    path.write_text(FILE.format(more='ram_per_core_mb = 4000\noptions.partition = "big"'))
    terms = load_config(path).resources[0].terms
    assert (terms.cores, terms.ram_per_core_mb) == (24, 4000)
    asked.clear()
    save_overlay(state, starting(path, state))
    assert asked == ["big"]
    kept = load_overlay(state)
    assert kept is not None
    assert running_config(path, state).resources[0].terms == terms
    assert asked == ["big"], "processes of agents ask nobody"


def test_what_a_file_states_is_not_asked_for(tmp_path: Path, asked: list[str]) -> None:
    path = tmp_path / "market.toml"
    path.write_text(FILE.format(more="cores = 8"))
    assert load_config(path).resources[0].terms.cores == 8
    assert asked == []


def test_a_cluster_that_cannot_be_asked_is_told_with_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_CONF", raising=False)
    path = tmp_path / "market.toml"
    path.write_text(FILE.format(more='options = { conf = "/no/such" }'))
    with pytest.raises(ConfigurationError, match=r"machines.big.cores: it is not stated.*/no/such is not a file"):
        load_config(path)
