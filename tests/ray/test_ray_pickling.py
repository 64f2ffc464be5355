"""What is sent between processes comes through; what does not arrives as one line. No cluster is needed."""

import inspect
import pickle

import pytest

from gagar_env import errors
from gagar_env.envs.repo_edit import RepoEditEnv
from gagar_env.errors import GagarError, PassthroughError, refusal

cloudpickle = pytest.importorskip("cloudpickle")
OURS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, GagarError)]
WAYS = pytest.mark.parametrize("way", [pickle, cloudpickle], ids=["pickle", "cloudpickle"])


class OwnConstructor(Exception):
    """Pickles into something that cannot be read: its arguments are not those of its constructor."""

    def __init__(self, code, reason):
        super().__init__(f"{code}: {reason}")


class ReadsAsAnother(Exception):
    def __reduce__(self):
        return ValueError, ("something else",)


class Unsent(Exception):
    def __reduce__(self):
        raise TypeError("cannot pickle '_thread.lock' object")


@WAYS
@pytest.mark.parametrize("kind", OURS)
def test_dist_2_our_exceptions_come_through_with_message_and_fields(way, kind):
    error = kind("the node\nis gone")
    error.settings = ("a", "b")
    copy = way.loads(way.dumps(error))
    assert (type(copy), str(copy), copy.args, copy.settings) == (kind, str(error), error.args, ("a", "b"))


@WAYS
def test_dist_2_fields_of_their_own_come_through(way):
    assert way.loads(way.dumps(refusal("no_tests", "it has none"))).reason == "no_tests"
    assert way.loads(way.dumps(PassthroughError("x"))).settings == ()


@WAYS
def test_dist_2_tasks_and_environments_come_through(way, tiny_task, best_kind):
    assert way.loads(way.dumps(tiny_task)) == tiny_task
    env = way.loads(way.dumps(RepoEditEnv(tiny_task, sandbox=best_kind, turns=3)))
    assert (env.task, env.limits.turns) == (tiny_task, 3)


@pytest.mark.parametrize("error", [OwnConstructor(7, "no\nroom"), ReadsAsAnother("as it was"), Unsent("held")])
def test_dist_2_what_does_not_pickle_arrives_as_one_line(error):
    from gagar_env.integrations.ray_worker import portable

    sent = portable(error)
    assert type(pickle.loads(pickle.dumps(sent))) is GagarError
    assert str(sent) == f"{type(error).__name__}: {' '.join(str(error).split())}"


def test_dist_2_ours_arrive_as_they_are():
    from gagar_env.integrations.ray_worker import portable

    error = errors.TaskError("no such commit")
    assert portable(error) is error


def test_dist_2_what_interrupts_arrives_as_an_error():
    from gagar_env.integrations.ray_worker import portable

    assert str(portable(SystemExit(3))) == "SystemExit: 3"
