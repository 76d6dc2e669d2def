"""The repairs of SPADE and slixmpp: what each does, and that the installed versions still need it."""

import hashlib
import json
import re
import subprocess
import sys

import pytest

from ramp.xmpp import behaviour

PLAIN = """
import asyncio, inspect, json, sys
import spade.agent
from slixmpp import ClientXMPP
from slixmpp.util.sasl import mechanisms

found = {
    "server imported": "pyjabber.server" in sys.modules,
    "pages imported": "aiohttp" in sys.modules,
    "keys derived in Python": "pbkdf2" not in inspect.getsource(mechanisms.SCRAM.Hi),
    "task per message": "submit" in inspect.getsource(spade.agent.Agent.dispatch),
}
agent = spade.agent.Agent("a@localhost", "secret")
found["delivery inside the process"] = agent.container.has_agent("a@localhost")
found["uvloop's policy"] = type(asyncio.get_event_loop_policy()).__module__.startswith("uvloop")
found["traces of messages"] = agent.traces.size > 0
asyncio.set_event_loop_policy(None)

async def later():
    other = spade.agent.Agent("b@localhost", "secret")
    first, second = (ClientXMPP(f"{name}@localhost", "secret") for name in "cd")
    return {
        "loop of the first agent": other.loop is not asyncio.get_running_loop(),
        "TLS context of each stream": first.ssl_context is not second.ssl_context,
        "texts not counted": "unacked_queue" not in inspect.getsource(ClientXMPP.send_raw),
        "stanza object of each message": "stanza" in inspect.getsource(ClientXMPP._spawn_event),
    }

print(json.dumps(found | asyncio.run(later())))
"""


REPAIRS = re.findall(r'"([^"]+)"(?:: |\] =)', PLAIN)


@pytest.fixture(scope="module")
def needed() -> dict[str, bool]:
    """By what SPADE and slixmpp do without the repairs, in a process of their own."""
    done = subprocess.run([sys.executable, "-c", PLAIN], capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, bool] = json.loads(done.stdout.splitlines()[-1])
    assert list(found) == REPAIRS
    return found


@pytest.mark.slow
@pytest.mark.parametrize("repair", REPAIRS)
def test_it_is_still_needed(repair: str, needed: dict[str, bool]) -> None:
    assert needed[repair], "it can be deleted"


def test_fast_key_derivation_is_that_of_rfc_6070():
    # RFC 6070, section 2: PBKDF2-HMAC-SHA1 test vectors
    class Mechanism:
        hash = hashlib.sha1

    derive = behaviour._derive_key
    assert derive(Mechanism, b"password", b"salt", 1).hex() == "0c60c80f961f0e71f3a9b524af6012062fe037a6"
    assert derive(Mechanism, b"password", b"salt", 4096).hex() == "4b007901b765489abead49d926f721d065a429c1"


@pytest.mark.slow
def test_spade_comes_without_its_server_and_pages_which_can_still_be_imported():
    program = (
        "import sys; from ramp.xmpp import behaviour; "
        "assert not {'sqlalchemy', 'alembic', 'aiohttp', 'jinja2', 'spade.web'} & sys.modules.keys(); "
        "import pyjabber.server; assert pyjabber.server.Server.__module__ == 'pyjabber.server'; "
        "from spade import web; assert web.WebApp.__module__ == 'spade.web' and web.aioweb.Application; print('good')"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=500, check=False)
    assert result.stdout == "good\n", result.stderr
