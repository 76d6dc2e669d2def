"""Signing in by OpenID Connect at a small provider on this computer, and what is not believed of one."""

import base64
import hashlib
import json
import re
import secrets
import threading
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2 as httpx
import pytest
import uvicorn
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse
from starlette.routing import Route

from ramp.errors import ConfigurationError
from ramp.model.seal import Role
from ramp.web.security.openid import OpenId, read_openid
from tests.unit.web.test_gate import OWN, House, session_of

LED_BACK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
SECRET = "the client's secret"


class Provider:
    """A provider of one account, which signs whom it is told to.

    Attributes:
        claims: of the account; those of a sign-in besides unless they are here.
        sign: makes the token of a sign-in from its claims.
    """

    def __init__(self):
        self.key = RSAKey.generate_key(2048, {"kid": "first"})
        self.begun = {}
        self.reset()
        routes = [
            Route("/.well-known/openid-configuration", self.description),
            Route("/keys", lambda _: JSONResponse({"keys": [self.key.as_dict(private=False)]})),
            Route("/authorize", self.authorize),
            Route("/token", self.token, methods=["POST"]),
        ]
        self.server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), port=0, log_level="error"))
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        port = self.server.servers[0].sockets[0].getsockname()[1]
        self.issuer = f"http://127.0.0.1:{port}"

    def reset(self):
        self.claims = {"email": "ann@example.org", "email_verified": True}
        self.sign = lambda claims: jwt.encode({"alg": "RS256", "kid": "first"}, claims, self.key)

    def end(self):
        self.server.should_exit = True
        self.thread.join()

    async def description(self, _):
        return JSONResponse(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
                "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
            }
        )

    async def authorize(self, request):
        code = secrets.token_urlsafe()
        self.begun[code] = dict(request.query_params)
        answer = httpx.URL(
            request.query_params["redirect_uri"], params={"code": code, "state": request.query_params["state"]}
        )
        return RedirectResponse(str(answer))

    async def token(self, request):
        form = await request.form()
        begun = self.begun.pop(form["code"])
        shown = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        basic = base64.b64encode(f"{begun['client_id']}:{SECRET}".encode()).decode()
        assert (begun["code_challenge_method"], begun["code_challenge"]) == ("S256", shown)
        assert request.headers["authorization"] == f"Basic {basic}"
        assert form["redirect_uri"] == begun["redirect_uri"]
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "sub": "4711",
            "aud": "ramp",
            "exp": now + 60,
            "iat": now,
            "nonce": begun["nonce"],
        }
        signed = self.sign({key: value for key, value in (claims | self.claims).items() if value is not None})
        token = {"access_token": "unused", "token_type": "Bearer"}
        return JSONResponse(token if signed is None else token | {"id_token": signed})


@pytest.fixture(scope="module")
def running():
    found = Provider()
    yield found
    found.end()


@pytest.fixture
def provider(running):
    running.reset()
    return running


@pytest.fixture
def house(tmp_path, provider):
    accounts = {"users": {"ann@example.org": "alice"}, "keepers": {"kim@example.org": "keeper"}}
    found = House(tmp_path / "sessions.sqlite", OpenId(provider.issuer, "ramp", claim="email", **accounts))
    yield found
    found.sessions.close()


def led_to(browser):
    """The address at the provider that the browser is led to."""
    begun = browser.get("/login/openid/begin")
    assert begun.status_code == 302
    assert "samesite=lax" in begun.headers["set-cookie"].lower()
    return begun.headers["location"]


def led_back(browser):
    address = urlsplit(httpx.get(led_to(browser)).headers["location"])
    return browser.get(f"{address.path}?{address.query}", headers=LED_BACK)


@pytest.mark.parametrize(
    ("account", "name", "role"), [("ann@example.org", "alice", Role.USER), ("kim@example.org", "keeper", Role.KEEPER)]
)
def test_an_account_of_the_site_signs_in(house, provider, account, name, role):
    provider.claims["email"] = account
    browser = house.browser()
    assert "/login/openid/begin" in browser.get("/login").text
    page = led_back(browser)
    assert (page.status_code, f"Sign in as {name}" in page.text) == (200, True)
    token = page.text.partition('name="token" value="')[2].partition('"')[0]
    assert browser.post("/login", data={"token": token}, headers=OWN).status_code == 303
    assert (session_of(house, browser).name, session_of(house, browser).role) == (name, role)
    assert browser.get("/").text == name


@pytest.mark.parametrize(
    "claims",
    [
        {"email": "mallory@example.org"},
        {"email": None},
        {"email": 7},
        {"email_verified": False},
        {"email_verified": None},
    ],
)
def test_an_account_that_the_market_does_not_know_does_not(house, provider, claims):
    provider.claims |= claims
    page = led_back(house.browser())
    assert (page.status_code, "Unknown account" in page.text, "token" in page.text) == (403, True, False)


def none_signed(claims):
    parts = ({"alg": "none"}, claims)
    return ".".join(base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode() for each in parts) + "."


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://other.example"},
        {"aud": "another client"},
        {"nonce": "of another sign-in"},
        {"nonce": None},
        {"exp": 1},
        {"sub": None},
    ],
)
def test_what_was_signed_for_something_else_is_not_believed(house, provider, claims):
    provider.claims |= claims
    assert_refused(led_back(house.browser()))


@pytest.mark.parametrize(
    "sign",
    [
        lambda claims: jwt.encode({"alg": "RS256", "kid": "first"}, claims, RSAKey.generate_key(2048)),
        lambda claims: jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(SECRET), algorithms=["HS256"]),
        none_signed,
        lambda _: "no token",
        lambda _: None,
    ],
    ids=["another key", "the client's secret", "no signature", "nonsense", "missing"],
)
def test_what_the_provider_has_not_signed_is_not_believed(house, provider, sign):
    provider.sign = sign
    assert_refused(led_back(house.browser()))


def assert_refused(page):
    assert (page.status_code, "Sign-in failed" in page.text, "token" in page.text) == (403, True, False)


def test_an_answer_belongs_to_the_browser_that_asked_and_counts_once(house):
    asked, other = house.browser(), house.browser()
    query = urlsplit(httpx.get(led_to(asked)).headers["location"]).query
    assert_refused(other.get(f"/login/openid/callback?{query}", headers=LED_BACK))
    assert asked.get(f"/login/openid/callback?{query}", headers=LED_BACK).status_code == 200
    assert_refused(asked.get(f"/login/openid/callback?{query}", headers=LED_BACK))
    state = parse_qs(urlsplit(led_to(asked)).query)["state"][0]
    denied = asked.get(f"/login/openid/callback?error=access_denied&state={state}", headers=LED_BACK)
    assert_refused(denied)


def test_a_provider_that_does_not_answer_ends_in_a_page(tmp_path):
    house = House(tmp_path / "sessions.sqlite", OpenId("http://127.0.0.1:9", "ramp"))
    page = house.browser().get("/login/openid/begin")
    assert (page.status_code, "Sign-in failed" in page.text) == (502, True)
    house.sessions.close()


def test_the_example_of_the_documentation_is_read(tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "operations.md").read_text("utf-8")
    (example,) = (each for each in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if "issuer" in each)
    path = tmp_path / "openid.toml"
    path.write_text(example)
    found, secret = read_openid(path)
    assert found.owner_of({"preferred_username": "ann"}) == ("alice", Role.USER)
    assert (found.owner_of({"preferred_username": "root"}), secret) == (("keeper", Role.KEEPER), "")


def test_its_file_is_checked(tmp_path):
    path, secret = tmp_path / "openid.toml", tmp_path / "secret"
    text = 'issuer = "https://login.example"\nclient_id = "ramp"\nsecret_file = "secret"\n[users]\n"4711" = "alice"\n'
    path.write_text(text)
    secret.write_text("hush\n")
    secret.chmod(0o644)
    with pytest.raises(ConfigurationError, match="other accounts may read the client's secret; run chmod 600"):
        read_openid(path)
    secret.chmod(0o600)
    found, hush = read_openid(path)
    assert (found.owner_of({"sub": "4711"}), hush) == (("alice", Role.USER), "hush")
    for old, new, said in [
        ("https:", "http:", "an https address"),
        ('"ramp"', "7", "client_id"),
        ("[users]", "[keepers]\n4711 = 'keeper'\n[users]", "4711 is both a user and a keeper"),
        ("issuer =", "issuer", "cannot be read"),
    ]:
        path.write_text(text.replace(old, new))
        with pytest.raises(ConfigurationError, match=said):
            read_openid(path)
