"""An account at somebody else's server: its owner's invitation (XEP-0401) makes it, not the market's keeper."""

import subprocess

import pytest

from ramp.cli.main import main
from ramp.runtime.configuration.file import load_config
from ramp.runtime.joining.invitations import Register
from ramp.servers.prosody import ProsodyServer, prosody_executable, store_accounts

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.full,
    pytest.mark.skipif(prosody_executable() is None, reason="Prosody is not installed"),
]


class StockProsody(ProsodyServer):
    """Somebody else's server: Prosody with its own modules for invitations, and none of ours."""

    def _command(self, certificate):
        command = super()._command(certificate)
        text = self._configuration.read_text("utf-8").replace('"ramp_registration"', '"invites_register"')
        text = text.replace('"register"; "register_ibr"', "").replace("allow_registration = false", "")
        self._configuration.write_text(text, "utf-8")
        return command

    def invitation(self):
        """The URI with which its owner invites to register there."""
        command = [prosody_executable("prosodyctl"), "--config", str(self._configuration), "mod_invites", "generate"]
        return subprocess.run([*command, self.domain], capture_output=True, text=True, check=True).stdout.split()[-1]


def test_a_server_that_somebody_else_keeps(new_market, tmp_path, site, at_site, capsys):
    """The owner's invitation makes the account; the keeper can give no token for a server that is not his."""
    with StockProsody(tmp_path / "theirs") as server:
        market = new_market(
            kind="external",
            users={"alice": 1_000_000},
            per_process=4,
            server={"addresses": [f"{server.host}:{server.port}"], "ca_file": str(server.ca_file)},
        )
        with market.config.open("a") as file:
            file.write("[enrolment]\n")
        market.state.prepare()
        agents = (
            "bank",
            "directory",
            "keeper",
            "enrolment",
            "alice",
            *(each.name for each in load_config(market.config).resources),
        )
        store_accounts(server.state_dir / "prosody.cfg.lua", server.domain, market.state.passwords(list(agents)))
        market.up()
        market.wait_ready()
        keeper = ("--state-dir", str(market.state.path))
        assert main(["invite", "--role", "user", "tina@localhost", "--deposit", "700", "--token", *keeper]) == 0
        line = capsys.readouterr().out.strip()
        for wrong in ("xmpp:other.example?register;preauth=x", "xmpp:bank@localhost?register;preauth=x", "x"):
            code, told = at_site("join", line, "--account-invitation", wrong)
            assert code == 2, told
        uri = server.invitation()
        assert uri.startswith("xmpp:localhost?register;preauth=")
        code, told = at_site("join", line, "--account-invitation", uri)
        assert code == 0, told
        assert "700" in at_site("balance")[1]
        assert Register(market.state.invitations).account_tokens(0) == {}
