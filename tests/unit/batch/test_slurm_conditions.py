"""The conditions on which a Slurm cluster is sold: a right to reserve, and a wrapper that reaches the same cluster."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from ramp.batch.commands import Completed
from ramp.batch.inspecting import Remark
from ramp.batch.slurm import conditions as checked
from ramp.batch.slurm.conditions import conditions
from ramp.model.instant import SECOND, from_iso

CONFIG = (Path(__file__).parent / "slurm_22_05" / "config.txt").read_text()
"""`scontrol show config` of Slurm 22.05.8, of the cluster `alpha` at the port 21000."""

NOW = from_iso("2026-11-21T23:12:24Z")
WRAPPER = ("sudo", "-n", "/usr/local/sbin/ramp-slurm-reservations")


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of the wrapper as they should be: other tests look at those that are not."""
    monkeypatch.setattr(checked, "wrapper_remarks", lambda resource, wrapper: [Remark("wrapper", resource, "is safe")])
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(checked, "own_account", lambda: "ramp")


class Cluster:
    """Answers the plug-in, the wrapper and sudo."""

    def __init__(self, wrapped: str = CONFIG, said: str = "", listed: Sequence[str] = WRAPPER[2:]) -> None:
        self.wrapped, self.said, self.listed, self.state = wrapped, said, tuple(listed), "UP"

    def __call__(self, argv: tuple[str, ...], stdin: str = "", time_limit_s: float | None = None) -> Completed:
        if argv == ("scontrol", "show", "config"):
            return Completed(argv, 0, CONFIG, "")
        if argv == ("scontrol", "-o", "show", "partition", "debug"):
            return Completed(argv, 0, f"PartitionName=debug MaxTime=UNLIMITED State={self.state}\n", "")
        if argv[:3] == ("sudo", "-n", "-l"):
            return Completed(argv, 0 if argv[3] in self.listed else 1, "", "")
        assert argv == (*WRAPPER, "scontrol", "show", "config")
        return Completed(argv, 1 if self.said else 0, "" if self.said else self.wrapped, self.said)


def _found(cluster: Cluster, wrapper: Sequence[str] = WRAPPER, now: int = NOW) -> list[tuple[str, str]]:
    return [(each.says, each.do) for each in conditions("big1", wrapper, "debug", cluster, now) if each.is_finding]


def test_a_wrapper_that_reaches_the_plugins_cluster_is_well() -> None:
    assert _found(Cluster()) == []
    assert "alpha at node(127.0.0.1):21000" in conditions("big1", WRAPPER, "debug", Cluster(), NOW)[-1].says


@pytest.mark.parametrize(
    ("ours", "theirs", "named"),
    [
        ("= alpha", "= beta", "beta at node(127.0.0.1):21000"),
        ("= 21000", "= 6817", "alpha at node(127.0.0.1):6817"),
        ("= node(127.0.0.1)", "= head(10.0.0.1)", "alpha at head(10.0.0.1):21000"),
    ],
)
def test_a_wrapper_of_another_cluster_is_named_with_the_setting_that_chooses_one(
    ours: str, theirs: str, named: str
) -> None:
    """sudo drops SLURM_CONF, so the wrapper took the computer's usual cluster and the doctor said nothing."""
    ((says, do),) = _found(Cluster(CONFIG.replace(ours, theirs)))
    assert says == f"the plug-in uses the cluster alpha at node(127.0.0.1):21000, and the wrapper {named}"
    assert do.startswith("write `slurm_conf = PATH` into /etc/ramp/slurm-reservations.conf")


def test_a_wrapper_that_cannot_reach_its_cluster_is_named() -> None:
    ((says, do),) = _found(Cluster(said="slurm_load_ctl_conf error: Unable to contact slurm controller"))
    assert says.startswith("the wrapper reaches no cluster: ")
    assert "Unable to contact slurm controller" in says
    assert "slurm_conf" in do


def test_an_account_without_the_right_to_reserve_is_named() -> None:
    ((says, _),) = _found(Cluster(), wrapper=())
    assert says == "ramp is neither root nor SlurmUser (root), and the options name no wrapper"
    ((says, do),) = _found(Cluster(listed=()))
    assert says.startswith("sudo does not let ramp run ")
    assert "/etc/sudoers.d" in do


def test_a_controller_with_another_clock_is_named() -> None:
    assert _found(Cluster(), now=NOW + 5 * SECOND) == []
    ((says, _),) = _found(Cluster(), now=NOW + 6 * SECOND)
    assert says == "slurmctld's clock is 6 s behind this computer's"


def test_slurm_user_needs_no_wrapper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked, "own_account", lambda: "root")
    assert _found(Cluster(), wrapper=()) == []


@pytest.mark.parametrize("state", ["DOWN", "DRAIN", "INACTIVE"])
def test_a_partition_that_starts_no_jobs_is_named(state: str) -> None:
    cluster = Cluster()
    cluster.state = state
    assert _found(cluster) == [(f"partition debug is {state}", "scontrol update PartitionName=debug State=UP")]
