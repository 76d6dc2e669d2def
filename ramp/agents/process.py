"""`python -m ramp.agents.process`: one process of agents (`ramp.agents.group`), imported without garbage collection.

Imported objects live until the process ends. The garbage collector would scan them repeatedly during the import, a
fifth of the start's time, and again at each later full collection.
"""

import gc
import os
import sys

gc.disable()
sys.modules["pygments"] = None  # type: ignore[assignment]  # slixmpp would load 3 MB of it to colour its debugging log

from ramp.agents import group  # noqa: E402 (with the collector off)

del sys.modules["pygments"]
gc.freeze()
gc.set_threshold(20_000, 50)  # little that agents make is a cycle
gc.enable()

if __name__ == "__main__":
    # calls and events have descriptors of their own: plug-ins and their programs print to the log, and read nothing
    group.events_fd, sys.stdin = os.dup(1), os.fdopen(os.dup(0))
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout = sys.stderr
    sys.exit(group.main())
