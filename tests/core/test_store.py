"""A run on disk: whole files, torn lines, no run over another."""

import logging

import pytest

from gagar_env.episode import Episode, EpisodeStatus, Outcome, TestReport
from gagar_env.errors import GagarError
from gagar_env.group import grade_group
from gagar_env.store import RunFolder


@pytest.fixture
def episodes():
    reports = [TestReport(outcome=Outcome.PASSED), TestReport(outcome=Outcome.FAILED, reason="no")]
    return [
        Episode(
            id=f"e/{number}",
            group_id="g",
            task_id="t",
            status=EpisodeStatus.SUBMITTED,
            patch=b"\xff\x00 not text",
            report=report,
        )
        for number, report in enumerate(reports)
    ]


def test_disk_1_round_trip_with_bytes_that_are_no_text(tmp_path, episodes):
    folder = RunFolder.create(tmp_path / "run")
    result = grade_group(episodes, None)
    folder.add(result, episodes)
    assert list(folder.groups()) == [result]
    assert [folder.episode(e.id) for e in episodes] == episodes
    assert not list((tmp_path / "run/episodes").glob("*.part"))


def test_disk_1_ids_that_look_alike_have_files_of_their_own(tmp_path, episodes):
    alike = [episodes[0].model_copy(update={"id": name}) for name in ("a/b", "a_b", "a%2Fb", "..", "\u00e9 b")]
    folder = RunFolder.create(tmp_path / "run")
    folder.add(grade_group(alike, None), alike)
    assert [folder.episode(episode.id) for episode in alike] == alike


def test_disk_2_a_torn_line_is_left_out_with_a_warning(tmp_path, episodes, caplog):
    folder = RunFolder.create(tmp_path / "run")
    result = grade_group(episodes, None)
    folder.add(result, episodes)
    with (folder.path / "groups.jsonl").open("ab") as stream:
        stream.write(result.model_dump_json().encode()[:50])
    with caplog.at_level(logging.WARNING):
        assert list(folder.groups()) == [result]
    assert "line 2 is torn" in caplog.text


def test_disk_2_no_run_overwrites_another(tmp_path):
    RunFolder.create(tmp_path / "run")
    with pytest.raises(GagarError, match="holds a run already"):
        RunFolder.create(tmp_path / "run")
