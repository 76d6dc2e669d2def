"""Tells PSI/J of the executor `gridengine`."""

from packaging.version import Version
from psij.descriptor import Descriptor

__PSI_J_EXECUTORS__ = [
    Descriptor(
        name="gridengine",
        nice_name="Grid Engine",
        version=Version("0.1.0"),
        cls="ramp_psij_gridengine.executor.GridEngineJobExecutor",
    )
]
