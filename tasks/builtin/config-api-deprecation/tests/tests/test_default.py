"""The argument for missing keys, under its new and its old name."""

import inspect
import warnings

import pytest

from layerconf import Config, ConversionError, MissingKeyError

METHODS = ["get", "get_int", "get_bool", "get_list"]
PAIRS = [(1, 2), (1, 1), (None, None), (None, 1), (1, None)]
MARK = object()


@pytest.fixture(params=["config", "section", "subsection"])
def lookups(request, config):
    """All lookups of something that does not have the key 'nope'."""
    server = config.section("server")
    place = {"config": config, "section": server, "subsection": server.section("tls")}[request.param]
    return [getattr(place, method) for method in METHODS]


@pytest.fixture
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_default_as_keyword(lookups, no_warnings):
    for lookup in lookups:
        assert lookup("nope", default=MARK) is MARK
        assert lookup("nope", default=None) is None
        assert lookup(key="nope", default=0) == 0


def test_default_as_second_argument(lookups, no_warnings):
    for lookup in lookups:
        assert lookup("nope", MARK) is MARK
        assert lookup("nope", None) is None


def test_no_default(lookups, no_warnings):
    for lookup in lookups:
        with pytest.raises(MissingKeyError):
            lookup("nope")


def test_fallback_gives_the_same_result(lookups):
    for lookup in lookups:
        for value in (MARK, None, False, ""):
            with pytest.warns(DeprecationWarning):
                assert lookup("nope", fallback=value) is value


def test_fallback_warns_once_at_the_line_of_the_caller(lookups):
    for lookup in lookups:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            line = inspect.currentframe().f_lineno + 1
            lookup("nope", fallback=1)
        assert [warning.category for warning in caught] == [DeprecationWarning]
        assert (caught[0].filename, caught[0].lineno) == (__file__, line)
        assert "'fallback'" in str(caught[0].message)
        assert "'default'" in str(caught[0].message)


@pytest.mark.parametrize(
    "method, key, expected",
    [
        ("get", "server.port", "9000"),
        ("get_int", "server.port", 9000),
        ("get_bool", "debug", False),
        ("get_list", "server.tls.ciphers", ["a", "b", "c"]),
    ],
    ids=METHODS,
)
def test_fallback_warns_if_the_key_exists(config, method, key, expected):
    with pytest.warns(DeprecationWarning) as caught:
        assert getattr(config, method)(key, fallback=None) == expected
    assert [warning.filename for warning in caught] == [__file__]


def test_fallback_warns_in_a_section_if_the_key_exists(config):
    with pytest.warns(DeprecationWarning) as caught:
        assert config.section("server").get("port", fallback="1") == "9000"
        assert config.section("server").get_int("port", fallback=1) == 9000
    assert [warning.filename for warning in caught] == [__file__] * 2


def test_fallback_as_an_error(lookups, no_warnings):
    for lookup in lookups:
        with pytest.raises(DeprecationWarning):
            lookup("nope", fallback=1)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_both_names_are_an_error(lookups):
    for lookup in lookups:
        for new, old in PAIRS:
            with pytest.raises(TypeError, match="(?s)(?=.*fallback)(?=.*default)"):
                lookup("nope", default=new, fallback=old)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_second_argument_and_fallback_are_an_error(lookups):
    for lookup in lookups:
        for new, old in PAIRS:
            with pytest.raises(TypeError, match="(?s)(?=.*fallback)(?=.*default)"):
                lookup("nope", new, fallback=old)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_both_names_are_an_error_if_the_key_exists(config):
    for method in METHODS:
        with pytest.raises(TypeError):
            getattr(config, method)("debug", default=None, fallback=None)


def test_third_argument_is_not_accepted(lookups):
    for lookup in lookups:
        with pytest.raises(TypeError):
            lookup("nope", 1, 2)


def test_unknown_keyword_is_not_accepted(lookups):
    for lookup in lookups:
        with pytest.raises(TypeError):
            lookup("nope", standard=1)


def test_conversion_error_in_spite_of_default(config):
    with pytest.raises(ConversionError):
        config.get_int("server.host", 1)
    with pytest.raises(ConversionError):
        config.section("server").get_bool("host", False)


def test_docstring_uses_the_new_name():
    assert "default" in inspect.getdoc(Config.get)
