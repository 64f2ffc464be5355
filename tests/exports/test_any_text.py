"""Whatever an agent printed or changed, every format takes it, and gives back what is text."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gagar_env.episode import Episode, EpisodeStatus, Flag, Outcome, TestReport, Turn
from gagar_env.exports.chat import chat_record
from gagar_env.exports.records import Exported
from gagar_env.exports.rows import episode_row
from gagar_env.exports.sweagent import traj_record
from gagar_env.exports.tables import schema
from gagar_env.foreign.sweagent import read_swe_agent
from gagar_env.group import grade_group

anything = st.text(st.characters(), max_size=12)
whole = st.integers(0, 2**70)


@st.composite
def exported(draw):
    turns = draw(
        st.lists(st.builds(Turn, action=anything, observation=anything, exit_code=st.none() | whole), max_size=3)
    )
    report = TestReport(
        outcome=draw(st.sampled_from([Outcome.PASSED, Outcome.FAILED])),
        reason=draw(anything),
        score=draw(st.none() | st.floats()),
        flags=draw(st.lists(st.builds(Flag, kind=anything, path=anything, detail=anything), max_size=1)),
    )
    episode = Episode(
        id=draw(anything),
        group_id="g",
        task_id="t",
        status=EpisodeStatus.SUBMITTED,
        turns=tuple(turns),
        patch=draw(st.binary(max_size=12)),
        report=report,
        first_observation=draw(anything),
        seed=draw(st.none() | whole),
        **{name: draw(anything) for name in ("policy", "sandbox", "image")},
    )
    return Exported(result=grade_group([episode], None), attempt=None, position=0, episode=episode, task=None)


@settings(max_examples=15, deadline=None)
@given(exported())
def test_disk_1_json_is_strict_and_its_text_valid(item):
    for record in (chat_record(item), traj_record(item)):
        text = json.dumps(record, ensure_ascii=False, allow_nan=False).encode()
        assert json.loads(text) == record


@settings(max_examples=15, deadline=None)
@given(exported())
def test_disk_1_a_traj_file_gives_the_patch_back(item):
    found = read_swe_agent(json.loads(json.dumps(traj_record(item))))
    patch = item.episode.patch
    try:
        text = patch.decode()
    except UnicodeDecodeError:
        assert found.patch == patch
        return
    if not text.strip():
        assert found.patch == b""
    elif "diff --git" not in text:
        assert found.patch is None  # no patch at all: some other text


@settings(max_examples=15, deadline=None)
@given(exported())
def test_disk_1_a_row_fits_its_columns(item):
    arrow = pytest.importorskip("pyarrow")
    row = episode_row(item)
    (back,) = arrow.RecordBatch.from_pylist([row], schema=schema()).to_pylist()
    assert set(row) == set(schema().names)
    assert {key: value for key, value in back.items() if key != "score"} == {
        key: value for key, value in row.items() if key != "score"
    }
    assert (back["patch_bytes"] or back["patch"].encode()) == item.episode.patch


def test_names_with_lone_surrogates_fit_their_columns():
    arrow = pytest.importorskip("pyarrow")
    odd = "odd\udcff"
    flag = Flag(kind=odd, path=odd, detail=odd)
    report = TestReport(outcome=Outcome.FAILED, reason=odd, flags=(flag,))
    names = dict.fromkeys(("id", "group_id", "task_id", "policy", "sandbox", "image", "error"), odd)
    episode = Episode(status=EpisodeStatus.SUBMITTED, report=report, **names)
    item = Exported(result=grade_group([episode], None), attempt=None, position=0, episode=episode, task=None)
    (back,) = arrow.RecordBatch.from_pylist([episode_row(item)], schema=schema()).to_pylist()
    assert back["sandbox"].startswith("odd\ufffd")
    assert back["flags"][0]["kind"] == back["sandbox"]
