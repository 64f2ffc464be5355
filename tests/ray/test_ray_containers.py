"""Containers of a worker that is killed on a cluster."""

import os
import signal
import threading

import pytest
from ray_machine import until
from ray_policies import ByLength, Scripted

from gagar_env.engine import engine
from gagar_env.integrations.ray import RayRollouts
from gagar_env.jobs import GroupJob

pytestmark = [
    pytest.mark.slow,
    pytest.mark.ray,
    pytest.mark.docker,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # sockets and files of Ray's own processes
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]


def owned_by(pids):
    """Containers whose labels name one of these processes as their owner."""
    from gagar_env.sandbox.docker.owners import OWNER

    found = engine().containers(all=True, filters={"label": OWNER})
    return [entry["Id"] for entry in found if int(entry["Labels"][OWNER].split()[-2]) in pids]


def test_dist_1_containers_of_a_killed_worker_end_and_its_group_does_not_hang(machine, image_task):
    batches = []
    policy = Scripted(["sleep 300"])
    with RayRollouts(policy, ByLength(), group_size=4, sandbox="docker", retries=0) as rollouts:
        run = rollouts.run([GroupJob(0, image_task, seed=0)])
        thread = threading.Thread(target=lambda: batches.extend(run), daemon=True)
        thread.start()
        until(lambda: len(rollouts.workers) == 2, "the workers do not start", 240)
        pids = {up.ready.pid for up in rollouts._fleet.ready}
        until(lambda: len(owned_by(pids)) >= 4, "the containers do not start", 240)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        thread.join(120)
        until(lambda: not owned_by(pids), "a container outlived its worker")
    (batch,) = batches
    assert not any(episode.valid for episode in batch.episodes)
    assert all("worker died" in episode.error for episode in batch.episodes)
