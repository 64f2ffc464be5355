"""Where the base tree of a row is looked for."""

from pathlib import Path

import pytest

from gagar_env.tasks.sources import find_repo


def found(repo_dir: object, repo: str = "owner/name") -> dict:
    return find_repo(repo, commit="c" * 40, instance="owner__name-1", repo_dir=repo_dir)[0]


@pytest.mark.parametrize("name", ["name", "owner__name", "owner/name", "name.git", "owner__name.git"])
def test_clones_by_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name / ".git").mkdir(parents=True)
    assert found(tmp_path) == {"kind": "git", "path": tmp_path / name, "commit": "c" * 40}


@pytest.mark.parametrize("name", ["name.bundle", "owner__name.bundle", "owner/name.bundle"])
def test_bundles_by_name_and_alone(tmp_path: Path, name: str) -> None:
    bundle = tmp_path / name
    bundle.parent.mkdir(exist_ok=True)
    bundle.touch()
    for given in (tmp_path, bundle):
        assert found(given) == {"kind": "git", "path": bundle, "commit": "c" * 40}


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("https://git.example.org", "https://git.example.org/owner/name"),
        ("https://git.example.org/{repo}.git", "https://git.example.org/owner/name.git"),
        ("ssh://git@git.example.org/", "ssh://git@git.example.org/owner/name"),
        ("file:///srv/mirrors", "file:///srv/mirrors/owner/name"),
    ],
)
def test_urls_as_text_and_as_a_path(given: str, url: str) -> None:
    for repo_dir in (given, Path(given)):  # a path has lost the second slash
        assert found(repo_dir) == {"kind": "git", "url": url, "commit": "c" * 40}


def test_nothing_there_says_what_was_looked_for(tmp_path: Path) -> None:
    assert "looked for name, owner__name, owner/name, owner__name-1" in found(tmp_path)["missing"]
    assert "pass its folder" in found(None)["missing"]
    (tmp_path / "name.bundle").mkdir()  # a folder is no bundle
    assert "missing" in found(tmp_path)
