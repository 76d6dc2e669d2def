"""What a job runs that was bought in a queue: the buyer's orders, as they come, for as long as was bought.

The job is submitted before anybody has ordered anything. Its script keeps the cores and looks each second for orders,
which the worker leaves in a folder (`queue_jobs.py`); it runs each once, as soon as it may begin, and ends those whose
buyer has cancelled them. What the batch system sends before it ends the job is passed on.
"""

from __future__ import annotations

import shlex
from typing import Final

_SCRIPT: Final = """\
#!/bin/sh
# Keeps what was bought for as long as it was bought, and runs what its buyer orders meanwhile (RAMP).
umask 077
orders={root}/queued/{key}
mkdir -p "$orders"
end=$(( $(date +%s) + {seconds} ))
known=
below() {{  # what a process has begun, the eldest first
    for child in $(ps -o pid= --ppid "$1"); do
        echo "$child"
        below "$child"
    done
}}
trap 'end=0' TERM INT XCPU USR2
while [ "$(date +%s)" -lt "$end" ]; do
    for order in "$orders"/*; do
        [ -f "$order" ] || continue
        {{ read -r begin; read -r folder; }} < "$order"
        name=${{order##*/}}
        case " $known " in
        *" $name="*)
            if [ -e "$folder/cancelled" ] && [ ! -e "$folder/ended" ]; then
                of=${{known##*" $name="}}
                echo >> "$folder/ending"
                [ "$(wc -l < "$folder/ending")" -lt 5 ] && signal=TERM || signal=KILL
                kill -$signal $(below "${{of%% *}}") 2>/dev/null
            fi
            ;;
        *)
            [ "$(date +%s)" -ge "$begin" ] || continue
            "$folder/run" &
            known="$known $name=$!"
            ;;
        esac
    done
    sleep 1 &
    wait $!
done
for signal in TERM KILL; do
    for each in $known; do kill -$signal $(below "${{each#*=}}") 2>/dev/null; done
    [ $signal = TERM ] && sleep 3
done
exit 0
"""


def queue_script(root: str, key: str, seconds: int) -> str:
    """The script of a job in a queue.

    Args:
        root: folder of the account's job folders, as a word of a shell.
        key: under which the machine knows the job.
        seconds: for which it was bought.
    """
    return _SCRIPT.format(root=root, key=shlex.quote(key), seconds=seconds)
