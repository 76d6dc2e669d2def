"""`python -m ramp.agents.process`: one process of a swarm, `ramp.agents.group`, begun without the garbage collector.

What a process is made of while it is imported stays until its end. The collector would walk through it again and again
as it comes, a fifth of the time that a start takes, and later at every collection of all that there is.
"""

import gc
import sys

gc.disable()

from ramp.agents.group import main  # noqa: E402 (after the collector has stopped)

gc.freeze()
gc.enable()

if __name__ == "__main__":
    sys.exit(main())
