"""The script of a job in a queue: it runs the buyer's orders for the bought duration.

The job is submitted before its buyer orders anything. Its script keeps the cores and checks each second for orders,
which the worker leaves in a folder (`worker.py`). It runs each order once, as soon as it may begin, and ends
cancelled ones. It passes on the signals of the batch system before the end of the job.
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
    """Return the script of a job in a queue.

    Args:
        root: folder of the account's job folders, as a word of a shell.
        key: the machine's key of the job.
        seconds: its bought duration.
    """
    return _SCRIPT.format(root=root, key=shlex.quote(key), seconds=seconds)
