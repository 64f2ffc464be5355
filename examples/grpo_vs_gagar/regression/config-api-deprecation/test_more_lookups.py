"""What the README and the docstrings of layerconf say beyond the issue's own tests."""

import inspect
import warnings

import pytest
from layerconf import Config, ConfigError, ConversionError, MissingKeyError, expand, from_environ, parse_ini

CONFIG = Config(
    ("defaults", {"server.port": "8000", "server.tls.on": "Yes", "empty": ""}),
    ("file", {"server.port": "9_000", "log.level": "debug", "paths": ("a", "b")}),
)


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_later_layers_win():
    assert CONFIG.get("server.port") == "9_000"
    assert CONFIG.origin("server.port") == "file"
    assert CONFIG.origin("server.tls.on") == "defaults"
    assert CONFIG.origin("nope") is None


def test_conversions():
    assert CONFIG.get_int("server.port") == 9000
    assert CONFIG.section("server.tls").get_bool("on") is True
    assert CONFIG.get_list("paths") == ["a", "b"]
    assert CONFIG.get_list("empty") == []


def test_default_is_returned_as_it_is():
    default = ["1"]
    assert CONFIG.get_list("nope", default) is default
    assert CONFIG.get_int("nope", default="many") == "many"


def test_empty_text_is_a_value():
    assert CONFIG.get("empty", default="x") == ""
    with pytest.raises(ConversionError, match="setting 'empty' is not a whole number: ''"):
        CONFIG.get_int("empty", default=1)


def test_errors_name_the_key():
    with pytest.raises(MissingKeyError) as caught:
        CONFIG.section("server").section("tls").get_bool("off")
    assert caught.value.key == "server.tls.off"
    with pytest.raises(ConversionError) as caught:
        CONFIG.get_bool("log.level")
    assert caught.value.key == "log.level"


def test_sections():
    section = CONFIG.section("server")
    assert section.keys() == ["port", "tls.on"]
    assert "port" in section
    assert "level" not in section
    assert section.name == "server"


def test_sources():
    assert parse_ini("; c\n[A.B]\nC = d = e\n") == {"a.b.c": "d = e"}
    with pytest.raises(ConfigError, match="line 2: expected 'name = value', found 'oops'"):
        parse_ini("[a]\noops")
    assert from_environ({"APP_LOG__LEVEL": "x", "OTHER": "y"}, prefix="APP_") == {"log.level": "x"}


def test_expand():
    assert expand("${log.level}/${nope|}/${nope|a b}", CONFIG) == "debug//a b"
    assert expand("${port|1}", CONFIG.section("server")) == "9_000"
    with pytest.raises(MissingKeyError):
        expand("${nope}", CONFIG)


def test_signature_shows_the_new_name_second():
    for owner in (Config, type(CONFIG.section("a"))):
        for method in ("get", "get_int", "get_bool", "get_list"):
            names = list(inspect.signature(getattr(owner, method)).parameters)
            assert names[:3] == ["self", "key", "default"]
