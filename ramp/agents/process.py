"""`python -m ramp.agents.process`: one process of agents (`ramp.agents.group`), imported without garbage collection.

Imported objects live until the process ends. The garbage collector would scan them repeatedly during the import, a
fifth of the start's time, and again at each later full collection.
"""

import gc
import sys

gc.disable()
sys.modules["pygments"] = None  # type: ignore[assignment]  # slixmpp would load 3 MB of it to colour its debugging log

from ramp.agents.group import main  # noqa: E402 (with the collector off)

del sys.modules["pygments"]
gc.freeze()
gc.enable()

if __name__ == "__main__":
    sys.exit(main())
