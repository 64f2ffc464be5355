import pytest

from layerconf import ConfigError, from_environ, parse_ini


def test_parse_ini():
    text = "top = 1\n# comment\n[Server]\nPort = 80\n\nurl = a=b\n"
    assert parse_ini(text) == {"top": "1", "server.port": "80", "server.url": "a=b"}


def test_parse_ini_names_the_bad_line():
    with pytest.raises(ConfigError, match="line 2"):
        parse_ini("[a]\nnonsense\n")


def test_from_environ():
    environ = {"APP_DEBUG": "1", "APP_SERVER__PORT": "80", "HOME": "/root"}
    assert from_environ(environ, "APP_") == {"debug": "1", "server.port": "80"}
