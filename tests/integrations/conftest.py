"""What tests of learners share."""

import pytest


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(request, tmp_path, monkeypatch):
    """TRL makes its output folder even where nothing is saved."""
    if "tiny_trl" in vars(request.module):
        monkeypatch.chdir(tmp_path)
