"""Markets that hypothesis makes up, under faults that it makes up: no invariant breaks."""

from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ramp.model.instant import MILLISECOND, SECOND
from simulation.market.faults.plan import FaultPlan
from simulation.market.network import FaultWindow, NetworkFaults
from tests.swarm.markets import run

PLANS = st.builds(
    FaultPlan,
    network=st.builds(
        NetworkFaults,
        loss=st.sampled_from((0.0, 0.05, 0.3, 0.6)),
        duplication=st.sampled_from((0.0, 0.2, 0.9)),
        delay_floor=st.integers(0, 200).map(lambda ms: ms * MILLISECOND),
        delay_mean=st.sampled_from((0, 20 * MILLISECOND, 3 * SECOND)),
    ),
    crash=st.sampled_from((0.0, 0.01, 0.08)),
    restart_mean=st.integers(1, 90).map(lambda s: s * SECOND),
    heal_after=st.integers(100, 200).map(lambda s: s * SECOND),
    isolations=st.lists(
        st.builds(
            lambda name, since, lasts: FaultWindow(name, since * SECOND, min(since + lasts, 100) * SECOND),
            st.sampled_from(("res0", "res1", "user0", "bank", "directory")),
            st.integers(0, 90),
            st.integers(1, 100),
        ),
        max_size=4,
    ).map(tuple),
)


@settings(max_examples=examples(60))
@given(st.integers(0, 10**6), PLANS)
def test_no_invariant_breaks(seed: int, plan: FaultPlan) -> None:
    report = run(seed, faults=plan)
    assert report.violation is None, f"{report.checker}: {report.violation}"
