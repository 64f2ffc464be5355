import pytest

from layerconf import MissingKeyError


def test_section_looks_below_its_name(config):
    server = config.section("server")
    assert server.get("host") == "localhost"
    assert server.get_int("port", 1) == 9000
    assert server.section("tls").get_list("ciphers") == ["a", "b", "c"]


def test_section_with_missing_key(config):
    server = config.section("server")
    assert server.get("name", "x") == "x"
    assert server.get_bool("name", True) is True
    with pytest.raises(MissingKeyError, match="server.name"):
        server.get("name")


def test_section_keys(config):
    server = config.section("server")
    assert server.keys() == ["host", "port", "tls.ciphers"]
    assert "host" in server and "debug" not in server
