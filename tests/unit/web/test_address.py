"""What may be served where."""

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ramp.errors import ConfigurationError
from ramp.web.security.address import bound_socket, served_address


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "market.example.org")])
    now = datetime.datetime.now(datetime.UTC)
    built = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + datetime.timedelta(days=1))
    (folder / "cert.pem").write_bytes(built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder / "cert.pem", folder / "key.pem"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.0.0.53"])
def test_loopback_needs_nothing(host):
    address = served_address(host, 8765)
    assert not address.is_secure
    assert "localhost:8765" in address.hosts
    assert "http://127.0.0.1:8765" in address.origins
    assert address.cookie == "ramp-8765"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "market.example.org", "2001:db8::1"])
def test_beyond_loopback_is_refused_without_tls(host):
    with pytest.raises(ConfigurationError, match="--tls-certificate and --tls-key"):
        served_address(host, 8765)


def test_tls_needs_both_files_and_they_must_be_such(certificate, tmp_path):
    cert, key = certificate
    with pytest.raises(ConfigurationError, match="both"):
        served_address("192.0.2.7", 443, certificate=cert)
    with pytest.raises(ConfigurationError, match="PEM certificate and its key"):
        served_address("192.0.2.7", 443, certificate=cert, key=cert)
    with pytest.raises(ConfigurationError, match="PEM certificate and its key"):
        served_address("192.0.2.7", 443, certificate=tmp_path / "none.pem", key=key)
    with pytest.raises(ConfigurationError, match="--name"):
        served_address("0.0.0.0", 443, certificate=cert, key=key)
    address = served_address("0.0.0.0", 443, name="market.example.org", certificate=cert, key=key)
    assert address.url == "https://market.example.org:443"
    assert {"market.example.org", "market.example.org:443"} <= address.hosts
    assert address.cookie.startswith("__Host-")
    assert "localhost:443" not in address.hosts


def test_a_port_in_use_is_named():
    with pytest.raises(ConfigurationError, match="TCP port"):
        served_address("127.0.0.1", 70_000)
    import socket

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"cannot listen on 127.0.0.1:{port}"):
            bound_socket(served_address("127.0.0.1", port))
