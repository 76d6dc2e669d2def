"""Signing in through a site's own accounts (OpenID Connect Core 1.0, authorization code flow, with PKCE of RFC 7636).

Authlib speaks the protocol. What a provider says is believed if it is signed by one of its keys, for this client and
this sign-in. It then earns a login link, which the page redeems as any other link, so sessions begin in one way only.
"""

from __future__ import annotations

import logging
import secrets
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Annotated, Any, Final

from authlib.common.errors import AuthlibBaseError
from authlib.integrations.starlette_client import OAuth
from httpx2 import HTTPError
from joserfc.errors import JoseError
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from ramp.errors import ConfigurationError
from ramp.model.seal import Role
from ramp.options import Wanted, read_options
from ramp.runtime.configuration.sites import Text
from ramp.runtime.state_folder import read_private
from ramp.text import one_line
from ramp.web.security.address import LOOPBACK_NAMES, ServedAddress
from ramp.web.security.gate import OPENID_PATH
from ramp.web.security.sessions import Sessions
from ramp.web.security.sign_in import plain_page, sign_in_page

ALGORITHMS: Final = frozenset({"RS256", "PS256", "ES256", "EdDSA"})
"""Signatures of a provider that count; never `none`, nor one with the client's secret."""

BEGUN_S: Final = 600
"""Seconds that signing in at the provider may take."""

PROVIDER_S: Final = 10
"""Seconds that the provider may take to answer."""

_SCHEMES: Final = ("https://", *(f"http://{name}:" for name in LOOPBACK_NAMES))
_ADDRESS: Final = Wanted(
    "an https address without a slash at its end (http on this computer only)",
    lambda text: text.startswith(_SCHEMES) and not text.endswith("/"),
)


@dataclass(frozen=True, slots=True)
class OpenId:
    """A provider, and whom of its accounts the market knows.

    Attributes:
        issuer: its address; `/.well-known/openid-configuration` below it describes it.
        client_id: by which it knows these pages.
        secret_file: file with the client's secret, readable by its owner only; empty for a client without one.
        claim: what identifies an account: `sub`, `email` (only one that the provider has verified) and so on.
        users: the market's users by their accounts.
        keepers: the market's keepers by their accounts.
    """

    issuer: Annotated[str, _ADDRESS]
    client_id: Text
    secret_file: str = ""
    claim: Text = "sub"
    users: Mapping[str, Text] = field(default_factory=dict)
    keepers: Mapping[str, Text] = field(default_factory=dict)

    def owner_of(self, claims: Mapping[str, Any]) -> tuple[str, Role] | None:
        """Return name and role of an account of the provider; None if the market does not know it."""
        account = claims.get(self.claim)
        if not isinstance(account, str) or (self.claim == "email" and claims.get("email_verified") is not True):
            return None
        if account in self.users:
            return self.users[account], Role.USER
        return (self.keepers[account], Role.KEEPER) if account in self.keepers else None


def read_openid(path: Path) -> tuple[OpenId, str]:
    """Read the file of `ramp web --openid`, and the client's secret, whose path is relative to it.

    Raises:
        ConfigurationError: if it is invalid, or others may read the secret.
    """
    try:
        text = path.read_text("utf-8")
        found = read_options(tomllib.loads(text), OpenId, source=str(path), text=text)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot be read: {error}", path=path) from error
    if both := sorted({*found.users} & {*found.keepers}):
        raise ConfigurationError(f"{both[0]} is both a user and a keeper; name it once", path=path, key="keepers")
    return found, read_private(path.parent / found.secret_file, "client's secret") if found.secret_file else ""


def openid_routes(config: OpenId, secret: str, sessions: Sessions, address: ServedAddress) -> Mount:
    """Return the pages that lead to the provider and back; `secret` is the client's."""
    provider = OAuth().register(
        "provider",
        server_metadata_url=f"{config.issuer}/.well-known/openid-configuration",
        client_id=config.client_id,
        client_secret=secret,
        client_kwargs={"scope": "openid profile email", "code_challenge_method": "S256", "timeout": PROVIDER_S},
    )
    wanted = {
        "iss": {"essential": True, "value": config.issuer},
        "aud": {"essential": True, "value": config.client_id},
    }

    async def begin(request: Request) -> Response:
        scheme, host = ("https" if address.is_secure else "http"), request.headers["host"]  # checked by the gate
        try:
            return await provider.authorize_redirect(  # type: ignore[no-any-return]
                request, f"{scheme}://{host}{OPENID_PATH}/callback"
            )
        except FAILURES as error:
            return _failed(error, 502)

    async def callback(request: Request) -> Response:
        try:
            metadata = await provider.load_server_metadata()
            offered = metadata.get("id_token_signing_alg_values_supported") or ()
            metadata["id_token_signing_alg_values_supported"] = [each for each in offered if each in ALGORITHMS]
            # Authlib takes its hooks out of the options
            token = await provider.authorize_access_token(request, claims_options={**wanted})
            claims = token["userinfo"]
        except FAILURES as error:
            return _failed(error, 403)
        owner = config.owner_of(claims)
        if owner is None:
            account = one_line(str(claims.get(config.claim, "no such claim")))
            text = f"<p>The market knows no account with the {escape(config.claim)} {escape(account)}.</p>"
            return plain_page("Unknown account", text, 403)
        return sign_in_page(sessions.issue_link(*owner), *owner)

    return Mount(
        OPENID_PATH,
        routes=[Route("/begin", begin), Route("/callback", callback)],
        middleware=[
            Middleware(
                SessionMiddleware,
                secret_key=secrets.token_urlsafe(32),
                session_cookie=f"{address.cookie.removeprefix('__Host-')}-openid",
                max_age=BEGUN_S,
                path=OPENID_PATH,
                same_site="lax",  # the provider leads the browser back here from its own pages
                https_only=address.is_secure,
            )
        ],
    )


FAILURES: Final = (AuthlibBaseError, JoseError, HTTPError, ValueError, KeyError, TypeError, RuntimeError)
"""What Authlib raises at a provider that does not answer, or not as it should."""


def _failed(error: Exception, status: int) -> Response:
    logging.getLogger(__name__).warning("OpenID Connect: %s: %s", type(error).__name__, one_line(str(error)))
    return plain_page("Sign-in failed", "<p>The provider did not confirm the sign-in. Try again.</p>", status)
