"""Names of images by the rule of each set, as these sets publish them."""

import pytest
from set_rows import CLASSIC

from gagar_env.tasks.formats import task_from_row
from gagar_env.tasks.formats.images import image_by_rule, platform_of


@pytest.mark.parametrize(
    ("data_set", "instance", "image"),
    [
        ("swe-bench", "astropy__astropy-12907", "swebench/sweb.eval.x86_64.astropy_1776_astropy-12907:latest"),
        (
            "swe-bench",
            "scikit-learn__scikit-learn-1",
            "swebench/sweb.eval.x86_64.scikit-learn_1776_scikit-learn-1:latest",
        ),
        ("swe-bench", "Automattic__wp-calypso-1", "swebench/sweb.eval.x86_64.automattic_1776_wp-calypso-1:latest"),
        ("swe-gym", "Project-MONAI__MONAI-3157", "xingyaoww/sweb.eval.x86_64.project-monai_s_monai-3157:latest"),
        ("swe-gym", "getmoto__moto-7365", "xingyaoww/sweb.eval.x86_64.getmoto_s_moto-7365:latest"),
        ("swe-rebench", "tobymao__sqlglot-1177", "swerebench/sweb.eval.x86_64.tobymao_1776_sqlglot-1177:latest"),
    ],
)
def test_rule(data_set: str, instance: str, image: str) -> None:
    assert image_by_rule(data_set, instance) == image


@pytest.mark.parametrize(
    ("repo", "instance", "image"),
    [
        ("pydicom/pydicom", "pydicom__pydicom-1", "swebench/sweb.eval.x86_64.pydicom_1776_pydicom-1:latest"),
        ("python/mypy", "python__mypy-1", "xingyaoww/sweb.eval.x86_64.python_s_mypy-1:latest"),
        ("owner/unknown", "owner__unknown-1", None),
    ],
)
def test_only_rows_of_a_sets_own_repositories_are_named_by_its_rule(repo, instance, image) -> None:
    task = task_from_row(CLASSIC | {"repo": repo, "instance_id": instance})
    assert (task.image.reference if task.image else None) == image
    assert bool(task.environment.missing) is (image is None)


@pytest.mark.parametrize("column", ["image", "image_name", "docker_image"])
def test_a_row_that_names_an_image_runs_in_it(column: str) -> None:
    task = task_from_row(CLASSIC | {column: "org/own@sha256:" + "0" * 64})
    assert task.image.reference.startswith("org/own@")


@pytest.mark.parametrize(
    ("reference", "platform"),
    [
        ("swebench/sweb.eval.x86_64.a_1776_b-1:latest", "linux/amd64"),
        ("org/sweb.eval.arm64.a-1", "linux/arm64"),
        ("x86_64.example/python:3.12", ""),
        ("python:3.12", ""),
    ],
)
def test_platform_is_told_by_the_name(reference: str, platform: str) -> None:
    assert platform_of(reference) == platform
