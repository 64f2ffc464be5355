import pytest

from layerconf import Config


@pytest.fixture
def config():
    return Config(
        ("defaults", {"server.host": "localhost", "server.port": "80", "debug": "no", "empty": None}),
        ("file", {"server.port": "9000", "server.tls.ciphers": "a, b,,c"}),
    )
