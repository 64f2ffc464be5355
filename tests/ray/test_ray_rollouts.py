"""`RayRollouts` on a real cluster: the results of one machine, whoever dies."""

import os
import random
import re
import signal
import time
import uuid

import pytest
from ray_machine import family, head, lives, processes, program, rooms, until
from ray_policies import FIX, ByLength, Locked, Scripted, Shared, broken_factory

from gagar_env.episode import EpisodeStatus
from gagar_env.errors import GagarError
from gagar_env.integrations.ray import RayRollouts, serve_policy
from gagar_env.integrations.ray_cluster import NAMESPACE
from gagar_env.jobs import GroupJob
from gagar_env.pipeline import Pipeline

pytestmark = [
    pytest.mark.slow,
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # sockets and files of Ray's own processes
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]
LONG = f"{FIX}; echo '# a longer one' >> calc.py"
SCRIPTS = ([FIX], [LONG], ["true"], [f"echo x > junk.txt; {FIX}"])
SIZE = 4


def jobs(task, count):
    return [GroupJob(n, task, seed=100 * n) for n in range(count)]


def facts(batch):
    """What must be the same wherever it ran."""
    r = batch.result
    episodes = [(e.seed, e.status, e.passed, e.valid, e.patch, e.policy, len(e.turns)) for e in batch.episodes]
    graded = (r.kept, r.reason, r.labels, r.ranks, r.weights, r.advantages_before, r.advantages, r.graded, r.fallback)
    return batch.attempt, batch.seed, batch.task.id, graded, episodes


def on_one_machine(policy, task, count, kind):
    with Pipeline(policy, ByLength(), group_size=SIZE, sandbox=kind) as pipeline:
        return sorted(facts(batch) for batch in pipeline.run(jobs(task, count)))


def whole(batches, count):
    """Every group is there, and every episode once."""
    assert sorted(batch.attempt for batch in batches) == list(range(count))
    ids = [episode.id for batch in batches for episode in batch.episodes]
    assert len(ids) == len(set(ids)) == count * SIZE
    for batch in batches:
        assert [e.seed for e in batch.episodes] == [batch.seed + n for n in range(SIZE)]
        assert {e.group_id for e in batch.episodes} == {batch.result.group_id}


def test_the_results_are_those_of_one_machine_and_the_cluster_is_left_as_it_was(machine, tiny_task, best_kind):
    import ray

    def free():
        return {name: n for name, n in ray.available_resources().items() if name in ("CPU", "gagar_sandboxes")}

    until(lambda: free() == {"CPU": 2.0, "gagar_sandboxes": 6.0}, "the cluster is not free")
    told = []
    policy = Scripted(*SCRIPTS)
    with RayRollouts(
        policy,
        ByLength(),
        group_size=SIZE,
        sandbox=best_kind,
        on_episode=lambda job, e: told.append((job.number, e.id)),
    ) as rollouts:
        batches = list(rollouts.run(jobs(tiny_task, 4)))
        assert free().get("CPU", 0.0) == 0.0
        rollouts.run(jobs(tiny_task, 1))  # nobody iterates: no run is under way
        again = list(rollouts.run(jobs(tiny_task, 1)))  # the same workers
        assert all(batch.task == tiny_task for batch in batches)
    whole(batches, 4)
    expected = on_one_machine(policy, tiny_task, 4, best_kind)
    assert sorted(map(facts, batches)) == expected
    assert [facts(batch) for batch in again] == expected[:1]
    assert sorted(told[: 4 * SIZE]) == sorted((b.attempt, e.id) for b in batches for e in b.episodes)
    assert ray.is_initialized()
    assert ray.get_runtime_context().namespace == "learner"
    assert ray.util.list_named_actors() == []  # what is named is in a namespace of its own
    until(lambda: free() == {"CPU": 2.0, "gagar_sandboxes": 6.0}, "a worker is still there")


def test_dist_1_killed_workers_and_a_killed_node_cost_nothing_but_time(machine, tiny_task, best_kind, tmp_path):
    policy = Scripted(*[["sleep 0.2", "wait 0.5", *script] for script in SCRIPTS], folder=tmp_path)
    count, seed = 8, random.randrange(10**6)
    print(f"kills drawn with {seed}")
    draw = random.Random(seed)
    batches, killed, families = [], 0, set()
    with RayRollouts(policy, ByLength(0.3), group_size=SIZE, sandbox=best_kind, retries=8) as rollouts:
        for batch in rollouts.run(jobs(tiny_task, count)):
            batches.append(batch)
            families |= {one for pid in worker_pids(rollouts) for one in family(pid)}
            if len(batches) == 4:
                machine.kill(draw.choice(machine.nodes))
            elif len(batches) < 7 and (pids := worker_pids(rollouts)):
                os.kill(draw.choice(pids), signal.SIGKILL)
                killed += 1
    machine.add()
    whole(batches, count)
    undisturbed = Scripted(*[["sleep 0.2", "true", *script] for script in SCRIPTS])
    assert sorted(map(facts, batches)) == on_one_machine(undisturbed, tiny_task, count, best_kind)
    assert killed
    assert len(list(tmp_path.iterdir())) > count * SIZE, "nothing was run again: nothing died in time"
    assert families
    until(lambda: not any(map(lives, families)), "something of a worker outlived it")
    reap_all()
    assert not rooms({pid for pid, _ in families})


def worker_pids(rollouts):
    return [up.ready.pid for up in rollouts._fleet.ready]


def reap_all():
    import ray

    for named in ray.util.list_named_actors(all_namespaces=True):
        if named["name"].startswith("gagar-reaper-"):
            assert named["namespace"] == NAMESPACE
            try:
                return ray.get(ray.get_actor(**named).reap.remote(), timeout=60)
            except ray.exceptions.RayError:
                continue  # of the node that died
    raise AssertionError("no reaper")


def test_dist_1_what_dies_again_and_again_is_masked_with_the_reason(machine, tiny_task, best_kind):
    killer = Scripted([FIX], [LONG], ["true"], ["kill me"])
    with RayRollouts(killer, ByLength(), group_size=SIZE, sandbox=best_kind, retries=1) as rollouts:
        (batch,) = rollouts.run(jobs(tiny_task, 1))
    last = batch.episodes[3]
    assert not last.valid
    assert last.status is EpisodeStatus.ERROR
    assert re.fullmatch(r"lost: its worker died.* \(2 attempts\)", last.error)


@pytest.mark.parametrize("how", ["kill the driver", "shutdown"])
def test_life_1_a_driver_that_ends_leaves_nothing_on_any_node(machine, tiny_task, best_kind, how):
    mark = f"sleep 7{uuid.uuid4().int % 10**9}"
    text = head(machine.cluster.address) + (
        "task = Task.model_validate_json(sys.argv[1])\n"
        f"policy = Scripted(['{mark}'])\n"
        f"rollouts = RayRollouts(policy, group_size=4, sandbox={best_kind!r})\n"
        "import threading\n"
        "threading.Timer(0, lambda: next(rollouts.run([GroupJob(0, task, seed=0)]))).start()\n"
        "input()\n"
        "ray.shutdown()\n"
        "import os; os._exit(0)\n"
    )
    with program(text, tiny_task.model_dump_json()) as driver:
        until(lambda: len(processes(mark)) >= 4, "the episodes do not start", 240)
        started = set(processes(mark))
        mine = {pid for pid in rooms() if started & {one for one, _ in family(pid)}}
        assert rooms(mine)
        if how == "shutdown":
            driver.stdin.write(b"\n")
            driver.stdin.close()
        else:
            driver.kill()
        driver.wait(60)
    until(lambda: not processes(mark), "a sandbox outlived its driver")
    until(lambda: reap_all() is not None and not rooms(mine), "a room is left")


def test_dist_3_one_bad_member_costs_only_itself(machine, tiny_task, best_kind):
    policy = Scripted([FIX], [LONG], ["raise no idea"], [FIX])
    with RayRollouts(policy, ByLength(), group_size=SIZE, sandbox=best_kind) as rollouts:
        (batch,) = rollouts.run(jobs(tiny_task, 1))
    assert [e.valid for e in batch.episodes] == [True, True, False, True]
    assert "ValueError: raise no idea" in batch.episodes[2].error


def test_a_broken_task_costs_only_its_own_job(machine, tiny_task, best_kind, tmp_path):
    broken = tiny_task.model_copy(
        update={"id": "broken", "repo": tiny_task.repo.model_copy(update={"path": tmp_path / "no"})}
    )
    failed = []
    with RayRollouts(
        Scripted([FIX], ["true"]), group_size=2, sandbox=best_kind, on_failed=failed.append, deadline_s=600
    ) as rollouts:
        given = [GroupJob(0, broken, seed=0), GroupJob(1, tiny_task, seed=2)]
        (batch,) = rollouts.run(given)
        assert batch.attempt == 1
    ((job, error),) = [(f.job, f.error) for f in failed]
    with Pipeline(Scripted([FIX]), group_size=1, sandbox=best_kind, on_failed=failed.append) as pipeline:
        assert list(pipeline.run([GroupJob(0, broken, seed=0)])) == []
    assert (job.number, type(error), str(error)) == (0, type(failed[1].error), str(failed[1].error))


def test_one_policy_for_all_workers(machine, tiny_task, best_kind):
    import ray

    policy = serve_policy(Shared, num_cpus=0)
    assert policy.name == "scripted"
    with RayRollouts(policy, ByLength(), group_size=SIZE, sandbox=best_kind) as rollouts:
        batches = list(rollouts.run(jobs(tiny_task, 2)))
    expected = on_one_machine(Scripted(*SCRIPTS), tiny_task, 2, best_kind)
    assert sorted(map(facts, batches)) == expected
    assert policy.call("started") == 2 * SIZE
    until(lambda: ray.get(policy.handle.episodes.remote()) == 0, "episodes are not forgotten")
    ray.kill(policy.handle)


def test_a_policy_that_cannot_be_made_ends_the_run_with_one_line(machine, tiny_task, best_kind):
    says = r"workers cannot be made: ValueError: there is no such model$"
    with (
        RayRollouts(policy_factory=broken_factory, group_size=2, sandbox=best_kind) as rollouts,
        pytest.raises(GagarError, match=says),
    ):
        next(rollouts.run(jobs(tiny_task, 1)))
    with pytest.raises(TypeError, match=r"policy cannot be sent .* give policy_factory"):
        RayRollouts(Locked())


def test_without_a_node_for_it_the_run_ends_with_one_line(machine, tiny_task):
    with RayRollouts(Scripted([FIX]), group_size=1, cpus=64, patience_s=3) as rollouts:
        began = time.monotonic()
        with pytest.raises(GagarError, match="no node of the cluster had room for a worker for 3 seconds"):
            next(rollouts.run(jobs(tiny_task, 1)))
        assert time.monotonic() - began < 60
