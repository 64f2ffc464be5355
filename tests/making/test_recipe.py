from pathlib import Path

import pytest

from gagar_env._compat import tomllib
from gagar_env.errors import TaskError
from gagar_env.making.recipe import Settings, read_recipe

ROOT = Path(__file__).parents[2]


def test_sources_take_turns_and_a_folder_is_found_beside_the_recipe(tmp_path: Path) -> None:
    (tmp_path / "clone").mkdir()
    (tmp_path / "r.toml").write_text(
        '[[releases]]\nname = "a"\nversions = ["1", "2", "3"]\n[[releases]]\nname = "b"\nversions = ["1", "2"]\n'
        '[[inject]]\nrepo = "clone"\nlimit = 2\nseed = 7\n'
    )
    found = [source.id for source in read_recipe(tmp_path / "r.toml", Settings())]
    assert found == ["releases a 1 2", "releases b 1 2", f"inject {tmp_path}/clone seed=7 limit=2", "releases a 2 3"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[releases]\n", "not valid TOML"),
        ("", "there is nothing in it"),
        ("[[release]]\n", "release: unknown"),
        ("[releases]\n", "with two brackets"),
        ('[[releases]]\nname = "a"\n', "versions: must be two"),
        ('[[releases]]\nname = "a"\nversions = ["1", 2]\n', "versions: must be two"),
        ('[[inject]]\nrepo = "a"\nlimit = "x"\n', "inject 1: limit: must be a int"),
        ('[[inject]]\nrepo = "a"\nsead = 1\n', "inject 1: sead: unknown field"),
        ("[[history]]\nlimit = 1\n", "history 1: repo: is missing"),
    ],
)
def test_a_wrong_recipe_says_where(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "r.toml").write_text(text)
    with pytest.raises(TaskError, match=said) as caught:
        read_recipe(tmp_path / "r.toml", Settings())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks/recipes").glob("*.toml")), ids=lambda path: path.name)
def test_recipes_of_this_repository_can_be_read(path: Path) -> None:
    assert len(read_recipe(path, Settings())) >= len(tomllib.loads(path.read_text()))


def test_there_is_no_such_recipe(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="cannot be read"):
        read_recipe(tmp_path / "none.toml", Settings())
