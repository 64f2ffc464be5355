import warnings

import pytest

from layerconf import MissingKeyError, expand


def test_expand(config):
    assert expand("${server.host}:${server.port}", config) == "localhost:9000"


def test_expand_with_text_for_missing_key(config):
    assert expand("${nope|x y}${nope|}${server.host|z}", config) == "x ylocalhost"


def test_expand_missing_key(config):
    with pytest.raises(MissingKeyError):
        expand("${nope}", config)


def test_expand_does_not_warn(config):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert expand("${host|x}:${tls.nope|}", config.section("server")) == "localhost:"


def test_expand_uses_the_new_name():
    class Recorder:
        def get(self, key, default):
            return f"<{key}, {default}>"

    assert expand("${a|b}", Recorder()) == "<a, b>"
