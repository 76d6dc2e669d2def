"""Runs a swarm whose agents' processes heed traps (`armed_group`): `armed_swarm.py CONFIG --state-dir DIR`."""

import argparse
import os
import sys
from pathlib import Path

from ramp.agents import supervise, supervisor
from ramp.errors import RampError
from ramp.runtime.configuration.file import load_config
from ramp.runtime.state_folder import StateFolder
from ramp.servers.parent import end_with_parent

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("config", type=Path)
    parser.add_argument("--state-dir", type=Path, required=True)
    options = parser.parse_args()
    end_with_parent(os.getppid())  # a test run that is killed leaves no swarm behind
    supervisor.GROUP_COMMAND = (sys.executable, str(Path(__file__).with_name("armed_group.py")))
    try:
        sys.exit(supervise.run(load_config(options.config), StateFolder(options.state_dir)))
    except RampError as error:
        sys.exit(f"ramp: {error}")
