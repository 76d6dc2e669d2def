"""The gate before a small application of its own: who gets in, whose pages, and what ends with a session."""

import sqlite3

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from ramp.model.seal import Role
from ramp.web.security.address import served_address
from ramp.web.security.gate import SESSION_KEY, Gate
from ramp.web.security.openid import openid_routes
from ramp.web.security.sessions import Sessions
from ramp.web.security.sign_in import routes

HOME = "http://127.0.0.1:8765"
SOCKET = "ws://127.0.0.1:8765/socket"
OWN = {"origin": HOME}


class House:
    """Pages that tell who is signed in, and a socket that says everything back."""

    def __init__(self, path, openid=None):
        self.sessions = Sessions(path)
        self.sessions.close()  # Starlette's client runs the pages in threads of its own
        self.sessions._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.address = served_address("127.0.0.1", 8765)
        self.owners = {}
        provider = openid and openid_routes(openid, "the client's secret", self.sessions, self.address)
        app = Starlette(
            routes=[
                Route("/", self.page, methods=["GET", "POST"]),
                Route("/_nicegui/client/{page}/upload/3", self.page, methods=["POST"]),
                WebSocketRoute("/socket", self.echo),
            ]
        )
        self.gate = Gate(app, self.sessions, self.address, self.owners.get)
        app.routes.extend(routes(self.sessions, self.address, self.gate, provider))

    async def page(self, request: Request):
        return PlainTextResponse(request.scope[SESSION_KEY].name)

    async def echo(self, socket):
        await socket.accept()
        async for text in socket.iter_text():
            await socket.send_text(text)

    def browser(self, **headers):
        return TestClient(self.gate, base_url=HOME, headers=headers, follow_redirects=False)

    def signed_in(self, name="alice", role=Role.USER):
        browser = self.browser()
        link = self.sessions.issue_link(name, role)
        assert browser.post("/login", data={"token": link}, headers=OWN).status_code == 303
        return browser


@pytest.fixture
def house(tmp_path):
    found = House(tmp_path / "sessions.sqlite")
    yield found
    found.sessions.close()


def session_of(house, browser):
    return house.sessions.find(browser.cookies[house.address.cookie])


def test_nobody_is_led_to_the_door(house):
    browser = house.browser()
    answer = browser.get("/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert browser.post("/", headers=OWN).status_code == 401
    assert browser.get("/_nicegui/client/x/upload/3").status_code == 401
    assert browser.get("/login").status_code == 401
    browser.cookies.set(house.address.cookie, "guessed")
    assert browser.get("/").status_code == 303


def test_looking_at_a_link_uses_nothing_up(house):
    browser = house.browser()
    link = house.sessions.issue_link("alice", Role.USER)
    for _ in range(2):
        shown = browser.get("/login", params={"token": link})
        assert shown.status_code == 200
        assert "Sign in as alice" in shown.text
        assert "set-cookie" not in shown.headers
    answer = browser.post("/login", data={"token": link}, headers=OWN)
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert browser.get("/").text == "alice"
    again = house.browser().post("/login", data={"token": link}, headers=OWN)
    assert again.status_code == 403
    assert "has been used" in again.text
    assert "set-cookie" not in again.headers


@pytest.mark.parametrize("host", ["evil.example.org:8765", "127.0.0.1", "127.0.0.1:80", "127.0.0.1.nip.io:8765", ""])
def test_a_rebound_name_is_refused(house, host):
    browser = house.signed_in()
    assert browser.get("/", headers={"host": host}).status_code == 421
    with pytest.raises(WebSocketDisconnect), browser.websocket_connect(SOCKET, headers={"host": host, **OWN}):
        pass


@pytest.mark.parametrize(
    "origin", ["https://evil.example.org", "null", "http://127.0.0.1:8766", "https://127.0.0.1:8765"]
)
def test_foreign_origins_change_nothing_and_open_no_socket(house, origin):
    browser = house.signed_in()
    assert browser.post("/", headers={"origin": origin}).status_code == 403
    assert browser.post("/logout", headers={"origin": origin}).status_code == 403
    with pytest.raises(WebSocketDisconnect), browser.websocket_connect(SOCKET, headers={"origin": origin}):
        pass
    assert browser.get("/").text == "alice"


def test_no_origin_at_all_changes_nothing(house):
    browser = house.signed_in()
    assert browser.post("/").status_code == 403
    with pytest.raises(WebSocketDisconnect), browser.websocket_connect(SOCKET):
        pass


def test_frames_and_embedding_by_other_sites_are_refused(house):
    browser = house.signed_in()
    framed = {"sec-fetch-dest": "iframe", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert browser.get("/", headers=framed).status_code == 403
    embedded = {"sec-fetch-dest": "script", "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    assert browser.get("/", headers=embedded).status_code == 403
    shown = browser.get("/")
    assert shown.headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in shown.headers["content-security-policy"]
    assert shown.headers["cache-control"] == "no-store"
    assert shown.headers["referrer-policy"] == "same-origin"


def test_only_sockets_and_no_polling(house):
    browser = house.signed_in()
    assert browser.get("/?EIO=4&transport=polling").status_code == 403


def test_pages_of_another_session_are_not_there(house):
    alice, bob = house.signed_in("alice"), house.signed_in("bob")
    house.owners["p1"] = session_of(house, alice).key
    assert alice.post("/_nicegui/client/p1/upload/3", headers=OWN).text == "alice"
    assert bob.post("/_nicegui/client/p1/upload/3", headers=OWN).status_code == 404
    with alice.websocket_connect(f"{SOCKET}?client_id=p1", headers=OWN) as socket:
        socket.send_text("mine")
        assert socket.receive_text() == "mine"
    with pytest.raises(WebSocketDisconnect), bob.websocket_connect(f"{SOCKET}?client_id=p1", headers=OWN):
        pass


def test_signing_out_ends_the_session_and_its_sockets(house):
    browser = house.signed_in()
    token = browser.cookies[house.address.cookie]
    other = house.signed_in()
    with (
        browser.websocket_connect(SOCKET, headers=OWN) as socket,
        other.websocket_connect(SOCKET, headers=OWN) as untouched,
    ):
        socket.send_text("before")
        assert socket.receive_text() == "before"
        assert browser.post("/logout", headers=OWN).status_code == 200
        with pytest.raises(WebSocketDisconnect) as closed:
            socket.receive_text()
        assert closed.value.code == 4401
        untouched.send_text("still here")
        assert untouched.receive_text() == "still here"
    thief = house.browser()
    thief.cookies.set(house.address.cookie, token)
    assert thief.get("/").status_code == 303


def test_a_second_user_in_one_browser_ends_the_first_ones_session(house):
    browser = house.signed_in("alice")
    before = browser.cookies[house.address.cookie]
    link = house.sessions.issue_link("bob", Role.USER)
    assert "alice is signed in here and will be signed out" in browser.get("/login", params={"token": link}).text
    assert browser.get("/").text == "alice"
    with browser.websocket_connect(SOCKET, headers=OWN) as socket:
        assert browser.post("/login", data={"token": link}, headers=OWN).status_code == 303
        with pytest.raises(WebSocketDisconnect):
            socket.receive_text()
    assert browser.get("/").text == "bob"
    assert house.sessions.find(before) is None


def test_a_link_cannot_be_forced_on_somebody(house):
    browser = house.signed_in("alice")
    link = house.sessions.issue_link("mallory", Role.USER)
    forced = browser.post("/login", data={"token": link}, headers={"origin": "https://evil.example.org"})
    assert forced.status_code == 403
    assert browser.get("/").text == "alice"
