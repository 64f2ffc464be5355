"""`.traj` files: SWE-agent's shape, and our own reader gets the same episodes back."""

import json

import pytest

from gagar_env.episode import EpisodeStatus
from gagar_env.exports import export_run
from gagar_env.exports.sweagent import file_name
from gagar_env.foreign import find_trajectories, read_trajectory
from gagar_env.foreign.trajectory import TrajectoryError

STEP = {"action", "observation", "response", "thought", "execution_time", "state", "query", "extra_info"}


@pytest.fixture
def out(run, tmp_path):
    export_run(run, tmp_path / "out", format="traj")
    return tmp_path / "out"


def test_the_folders_are_those_of_runs_of_swe_agent(out, instance):
    found = [path.relative_to(out).as_posix() for path in find_trajectories([out])]
    assert found == [f"attempt-{n:03d}/{instance}/{instance}.traj" for n in range(1, 9)]


def test_the_shape_is_that_of_swe_agent(out):
    data = json.loads(next(find_trajectories([out])).read_bytes())
    assert {"trajectory", "history", "info", "environment", "replay_config"} <= set(data)
    assert all(set(step) == STEP for step in data["trajectory"])
    first, last = data["trajectory"]
    assert (first["action"], first["thought"]) == ("cat calc.py\n", "I look.")
    assert first["response"] == "I look.\n```bash\ncat calc.py\n```"
    assert last["action"] == "submit"
    assert data["info"]["exit_status"] == "submitted"
    assert data["info"]["submission"].startswith("diff --git a/calc.py")
    assert data["info"]["model_stats"] == {
        "instance_cost": 0.0,
        "tokens_sent": 20,
        "tokens_received": 6,
        "api_calls": 2,
    }
    assert data["gagar"]["advantage"] > data["gagar"]["advantage_before"] > 0


def test_read_back_it_is_the_same_work(out, episodes):
    paths = {json.loads(path.read_bytes())["gagar"]["episode_id"]: path for path in find_trajectories([out])}
    assert set(paths) == set(episodes)
    with pytest.raises(TrajectoryError, match="it ended with exit_error: there is no work to judge"):
        read_trajectory(paths.pop("b/3"))
    found = {name: read_trajectory(path) for name, path in paths.items()}
    for name, trajectory in found.items():
        _, _, episode = episodes[name]
        assert trajectory.patch == episode.patch, name
        assert trajectory.names[0] == "our/calc"
        assert trajectory.first_observation == episode.first_observation
        assert [(t.action, t.observation) for t in trajectory.turns] == [
            (t.action, t.observation) for t in episode.turns
        ]
        assert trajectory.status is episode.status
    assert found["b/2"].status is EpisodeStatus.TURN_LIMIT


def test_every_id_is_a_folder_of_its_own():
    long = "a" * 300
    names = [
        file_name(text) for text in (".", "..", "", "%", f"{long}1", f"{long}2", "a/b", "a%2Fb", "django__django-1")
    ]
    assert len(set(names)) == len(names)
    assert names[-1] == "django__django-1"
    assert all(name.strip(".") and "/" not in name and len(name) <= 200 for name in names)
