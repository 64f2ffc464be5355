import pytest

from layerconf import MissingKeyError, expand


def test_expand(config):
    assert expand("${server.host}:${server.port}", config) == "localhost:9000"


def test_expand_with_text_for_missing_key(config):
    assert expand("${nope|x y}${nope|}${server.host|z}", config) == "x ylocalhost"


def test_expand_missing_key(config):
    with pytest.raises(MissingKeyError):
        expand("${nope}", config)
