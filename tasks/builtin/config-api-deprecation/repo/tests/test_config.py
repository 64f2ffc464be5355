import pytest

from layerconf import ConversionError, MissingKeyError


def test_later_layers_win(config):
    assert config.get("server.port") == "9000"
    assert config.origin("server.port") == "file"
    assert config.origin("server.host") == "defaults"
    assert config.origin("nope") is None


def test_missing_key_raises(config):
    with pytest.raises(MissingKeyError, match="missing setting 'server.name'"):
        config.get("server.name")
    with pytest.raises(MissingKeyError):
        config.get_int("server.name")


def test_second_argument_is_for_missing_keys(config):
    assert config.get("server.name", "x") == "x"
    assert config.get("server.name", None) is None
    assert config.get("server.host", "x") == "localhost"
    assert config.get("empty", "x") is None


def test_typed_lookups(config):
    assert config.get_int("server.port") == 9000
    assert config.get_bool("debug") is False
    assert config.get_list("server.tls.ciphers") == ["a", "b", "c"]


def test_typed_lookups_return_the_second_argument_as_it_is(config):
    assert config.get_int("nope", "many") == "many"
    assert config.get_bool("nope", None) is None
    assert config.get_list("nope", ("a",)) == ("a",)


def test_conversion_error(config):
    with pytest.raises(ConversionError, match="setting 'server.host' is not a whole number: 'localhost'"):
        config.get_int("server.host", 1)


def test_keys(config):
    assert config.keys() == ["debug", "empty", "server.host", "server.port", "server.tls.ciphers"]
    assert "debug" in config and "server" not in config
