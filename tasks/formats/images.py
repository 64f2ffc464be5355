"""How the public sets name the images of their rows."""

from __future__ import annotations

from gagar_env.tasks.formats.row import Row

SWE_BENCH_PYTHON = frozenset(
    {
        *("astropy/astropy", "django/django", "marshmallow-code/marshmallow", "matplotlib/matplotlib"),
        *("mwaskom/seaborn", "pallets/flask", "psf/requests", "pvlib/pvlib-python", "pydata/xarray"),
        *("pydicom/pydicom", "pylint-dev/astroid", "pylint-dev/pylint", "pytest-dev/pytest", "pyvista/pyvista"),
        *("scikit-learn/scikit-learn", "sphinx-doc/sphinx", "sqlfluff/sqlfluff", "sympy/sympy"),
    }
)
"""Repositories of SWE-bench, its Lite and Verified subsets included."""

SWE_BENCH_MULTILINGUAL = frozenset(
    name.lower()
    for name in (
        *("apache/druid", "apache/lucene", "astral-sh/ruff", "axios/axios", "babel/babel", "briannesbitt/carbon"),
        *("burntsushi/ripgrep", "caddyserver/caddy", "facebook/docusaurus", "faker-ruby/faker", "fastlane/fastlane"),
        *("fluent/fluentd", "fmtlib/fmt", "gin-gonic/gin", "gohugoio/hugo", "google/gson", "hashicorp/terraform"),
        *("immutable-js/immutable-js", "javaparser/javaparser", "jekyll/jekyll", "jordansissel/fpm", "jqlang/jq"),
        *("laravel/framework", "micropython/micropython", "mrdoob/three.js", "nlohmann/json", "nushell/nushell"),
        *("php-cs-fixer/php-cs-fixer", "phpoffice/phpspreadsheet", "preactjs/preact", "projectlombok/lombok"),
        *("prometheus/prometheus", "reactivex/rxjava", "redis/redis", "rubocop/rubocop", "sharkdp/bat"),
        *("tokio-rs/axum", "tokio-rs/tokio", "uutils/coreutils", "valkey-io/valkey", "vuejs/core"),
    )
)

SWE_GYM = frozenset(
    name.lower()
    for name in (
        *("bokeh/bokeh", "conan-io/conan", "dask/dask", "facebookresearch/hydra", "getmoto/moto", "iterative/dvc"),
        *("modin-project/modin", "pandas-dev/pandas", "Project-MONAI/MONAI", "pydantic/pydantic", "python/mypy"),
    )
)

_RULES = {  # set -> (namespace, what stands for the two underscores of an id)
    "swe-bench": ("swebench", "_1776_"),
    "swe-gym": ("xingyaoww", "_s_"),
    "swe-rebench": ("swerebench", "_1776_"),
}


def image_by_rule(data_set: str, instance: str) -> str:
    """The image of a row of `swe-bench`, `swe-gym` or `swe-rebench`."""
    namespace, stands_for = _RULES[data_set]
    return f"{namespace}/sweb.eval.x86_64.{instance.lower().replace('__', stands_for)}:latest"


def named_image(row: Row, *more: str) -> str:
    """The image that a row names; empty if it names none."""
    return row.optional("image", "image_name", "docker_image", *more)


def platform_of(reference: str) -> str:
    """The platform that an image's name tells; empty if it tells none."""
    name = reference.rpartition("/")[2]
    if "x86_64" in name:
        return "linux/amd64"
    return "linux/arm64" if "arm64" in name or "aarch64" in name else ""
