"""`ChatPolicy` against a real server that says what a script says, and `BatchedPolicy` with a plain function."""

import json
import pickle
import threading
import time

import gymnasium as gym
import numpy as np
import pytest
from chat_server import cut, drip, error, filtered, overflow, refusal, replies, reset, slow, text, tool_call, tool_calls
from gymnasium.vector import AutoresetMode

from gagar_env.actions import BadAction, RunCommand, Submit, get_format
from gagar_env.agents.policies import BatchedPolicy, ChatPolicy, Generated, get_policy
from gagar_env.envs.group_vector import GroupVectorEnv
from gagar_env.episode import EpisodeStatus
from gagar_env.errors import MissingDependencyError, ModelError, PolicyLimitError, UnknownNameError
from gagar_env.llm.budget import Budget
from gagar_env.registration import REPO_EDIT_ID
from gagar_env.rollout import Policy, run_group
from gagar_env.wrappers import GroupRewardWrapper

FIX = "sed -i 's/a - b/a + b/' calc.py"
KEY = "key-that-nobody-may-see"


def fenced(command):
    return text(f"I do it.\n```bash\n{command}\n```")


@pytest.fixture
def policy(chat_server):
    made = []

    def make(**options):
        options = {"base_url": chat_server.url, "api_key": KEY, "retries": 2, **options}
        made.append(ChatPolicy("scripted", **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def actor(policy, tiny_task):
    def start(form="bash", seed=0, **options):
        return policy(**options).start(task=tiny_task, actions=get_format(form), seed=seed)

    return start


def by_turn(*script):
    """A script that answers by how many answers the chat has already: fit for episodes side by side."""

    def answer(request, number):
        turn = sum(message["role"] == "assistant" for message in request["messages"])
        return script[min(turn, len(script) - 1)]

    return answer


def test_a_group_acts_by_bash_blocks(chat_server, policy, tiny_task, best_kind):
    chat_server.script = by_turn(fenced("cat calc.py"), fenced(FIX), fenced("submit"))
    episodes = run_group(tiny_task, policy(), group_size=3, seed=5, sandbox=best_kind)
    assert [(e.status, e.passed, len(e.turns)) for e in episodes] == [(EpisodeStatus.SUBMITTED, True, 3)] * 3
    assert episodes[0].policy == "chat:scripted"
    assert "return a - b" in episodes[0].turns[0].observation
    assert all(turn.prompt_tokens > 0 and turn.completion_tokens > 0 for e in episodes for turn in e.turns)
    seeds = [request["seed"] for request in chat_server.requests]
    assert len(set(seeds)) == 9
    assert {request["temperature"] for request in chat_server.requests} == {1.0}


def test_the_model_sees_observations_and_no_secrets(chat_server, policy, tiny_task, best_kind):
    task = tiny_task.model_copy(update={"extra": {"patch": "secret-solution"}})
    chat_server.script = by_turn(fenced("ls"), fenced("submit"))
    (episode,) = run_group(task, policy(system_prompt="You are S."), group_size=1, sandbox=best_kind)
    first, second = chat_server.requests
    assert first["messages"] == [
        {"role": "system", "content": "You are S."},
        {"role": "user", "content": episode.first_observation},
    ]
    assert second["messages"][3] == {"role": "user", "content": episode.turns[0].observation}
    sent = json.dumps(chat_server.requests)
    assert KEY not in sent
    assert "secret-solution" not in sent
    assert "test_add" not in sent
    assert KEY not in episode.model_dump_json()
    assert KEY not in repr(policy().client)
    assert all(headers["authorization"] == f"Bearer {KEY}" for headers in chat_server.headers)


def test_a_group_acts_by_tools_of_its_own(chat_server, policy, tiny_task, best_kind):
    edit = {"path": "calc.py", "old": "a - b", "new": "a + b"}
    chat_server.script = by_turn(
        tool_calls(("view", {"path": "calc.py"}), ("bash", {"command": "rm calc.py"})),
        tool_call("edit", edit),
        tool_call("submit", {}),
    )
    (episode,) = run_group(tiny_task, policy(native_tools=True), group_size=1, sandbox=best_kind, action_format="tools")
    assert episode.passed, episode
    assert json.loads(episode.turns[1].action) == {"tool": "edit", **edit}
    offered = [tool["function"]["name"] for tool in chat_server.requests[0]["tools"]]
    assert offered == ["bash", "view", "edit", "create", "submit"]
    said, first, second = chat_server.requests[1]["messages"][2:]
    assert [call["id"] for call in said["tool_calls"]] == [first["tool_call_id"], second["tool_call_id"]]
    assert "return a - b" in first["content"]
    assert "not run" in second["content"]


def test_native_calls_in_a_format_without_tools(chat_server, actor):
    chat_server.script = replies(tool_call("bash", {"command": "ls"}), tool_call("submit", {}), tool_call("fly", {}))
    bash, form = actor(native_tools=True), get_format("bash")
    assert form.parse(bash.act("issue")) == RunCommand(command="ls")
    assert form.parse(bash.act("files")) == Submit()
    assert isinstance(form.parse(bash.act("?")), BadAction)
    assert [tool["function"]["name"] for tool in chat_server.requests[0]["tools"]] == ["bash", "submit"]


@pytest.mark.parametrize("form", ["bash", "tools"])
@pytest.mark.parametrize(
    "reply",
    [
        tool_call("bash", '{"command": "l'),
        tool_call("bash", "[1]"),
        tool_call("bash", {"command": 3}),
        tool_call("bash", "[" * 100_000),
        tool_call("rm", {"tool": "bash"}),
    ],
)
def test_malformed_calls_are_bad_actions(chat_server, actor, form, reply):
    chat_server.script = replies(reply, text("submit"))
    one = actor(form, native_tools=True)
    assert isinstance(get_format(form).parse(one.act("issue")), BadAction)
    one.act("bad")
    said = chat_server.requests[1]["messages"][2]["tool_calls"][0]["function"]["arguments"]
    assert isinstance(json.loads(said), dict)  # servers read the history again


@pytest.mark.parametrize("form", ["bash", "tools"])
@pytest.mark.parametrize(
    ("reply", "counted"),
    [
        (text(""), "empty"),
        (text(None), "empty"),
        (text(" \n"), "empty"),
        (refusal(), "refused"),
        (filtered(), "refused"),
        (text("rm -rf /", finish="content_filter"), "refused"),
    ],
)
def test_no_answer_is_a_bad_action_and_counted(chat_server, policy, tiny_task, form, reply, counted):
    chat_server.script = replies(reply, text("submit"))
    made = policy()
    one = made.start(task=tiny_task, actions=get_format(form), seed=0)
    assert isinstance(get_format(form).parse(one.act("issue")), BadAction)
    assert made.counts[counted] == 1
    one.act("The action is empty.")
    assert chat_server.requests[1]["messages"][2]["content"]


def test_a_thought_is_no_part_of_the_action(chat_server, actor):
    chat_server.script = replies(text("<think>a ```bash\nrm x\n``` b</think>\n```bash\nls\n```"))
    assert actor().act("issue") == "```bash\nls\n```"


def test_a_cut_answer_is_counted_and_acted_on(chat_server, policy, tiny_task):
    chat_server.script = replies(text("ls", finish="length"))
    made = policy()
    assert made.start(task=tiny_task, actions=get_format("bash"), seed=0).act("issue") == "ls"
    assert made.counts["cut"] == 1


def test_busy_servers_are_asked_again(chat_server, policy, tiny_task):
    chat_server.script = replies(error(429, retry_after=0), error(503), text("submit"))
    made = policy()
    assert made.start(task=tiny_task, actions=get_format("bash"), seed=0).act("issue") == "submit"
    assert made.counts["retried"] == 2


@pytest.mark.parametrize("fault", [cut(), reset()])
def test_broken_connections_are_tried_again(chat_server, actor, fault):
    chat_server.script = replies(fault, text("submit"))
    assert actor().act("issue") == "submit"


@pytest.mark.parametrize(
    ("reply", "options", "asked", "words"),
    [
        (error(500, "broken"), {"retries": 1}, 2, "InternalServerError.*broken"),
        (error(429, retry_after=3000), {}, 1, "no answer in 300 seconds"),
        (error(429, "no money", code="insufficient_quota"), {}, 1, "no money"),
        (error(401, f"wrong key {KEY}"), {}, 1, r"wrong key \*\*\*"),
        (error(404, "no such model"), {}, 1, "no such model"),
        (slow(60), {"deadline_s": 1, "retries": 0}, 1, "no answer in 1 seconds"),
        (slow(60), {"deadline_s": 1}, 1, "no answer in 1 seconds"),
        (drip("body"), {"deadline_s": 1}, 1, "no answer in 1 seconds"),
        (drip("headers"), {"deadline_s": 1}, 1, "no answer in 1 seconds"),
    ],
)
def test_what_does_not_answer_is_one_line(chat_server, actor, reply, options, asked, words):
    chat_server.script = replies(reply)
    with pytest.raises(ModelError, match=words) as caught:
        actor(**options).act("issue")
    assert len(chat_server.requests) == asked
    assert "\n" not in str(caught.value)
    assert KEY not in str(caught.value)


def test_nobody_there_is_one_line(tiny_task):
    made = ChatPolicy("m", base_url="http://127.0.0.1:9/v1", retries=0)
    with made, pytest.raises(ModelError, match=r"127\.0\.0\.1:9.*APIConnectionError"):
        made.start(task=tiny_task, actions=get_format("bash"), seed=0).act("issue")


def test_close_ends_a_wait(chat_server, policy, tiny_task):
    chat_server.script = replies(error(429, retry_after=100))
    made, faults = policy(), []

    def act():
        try:
            made.start(task=tiny_task, actions=get_format("bash"), seed=0).act("issue")
        except ModelError as fault:
            faults.append(str(fault))

    thread = threading.Thread(target=act)
    thread.start()
    while not made.client.retried:
        time.sleep(0.01)
    made.close()
    thread.join(20)
    assert "closed" in faults[0]


def test_a_policy_without_a_model_to_ask_has_episodes_without_a_result(chat_server, policy, tiny_task, best_kind):
    chat_server.script = replies(error(401, "wrong key"))
    (episode,) = run_group(tiny_task, policy(), group_size=1, sandbox=best_kind)
    assert (episode.status, episode.valid) == (EpisodeStatus.ERROR, False)
    assert "wrong key" in episode.error


def small_context(limit):
    """A server that takes so many characters; its tokens have two."""

    def answer(request, number):
        size = len(json.dumps(request["messages"]))
        if size > limit:
            return overflow()
        return text(f"echo {number}", usage=(size // 2, 3))

    return answer


def test_history_keeps_the_task_and_the_newest_turns(chat_server, actor):
    chat_server.script = by_turn(*(text(f"echo {n}", usage=(0, 0)) for n in range(30)))
    one = actor(context_tokens=1000, max_tokens=200, system_prompt="S")
    one.act("THE ISSUE")
    for n in range(1, 12):
        one.act(f"seen {n} " + "x" * 500)
    messages = chat_server.requests[-1]["messages"]
    assert sum(len(m["content"]) for m in messages) <= 800 * 4 + 100
    assert [m["role"] for m in messages] == ["system", "user", *["assistant", "user"] * ((len(messages) - 2) // 2)]
    assert messages[1]["content"].startswith("THE ISSUE\n\n[")
    kept = (len(messages) - 2) // 2
    assert f"[{11 - kept} earlier answers and what came back are left out here]" in messages[1]["content"]
    assert [m["content"].split()[1] for m in messages[3::2]] == [str(n) for n in range(12 - kept, 12)]


def test_texts_that_do_not_fit_alone_are_cut_in_the_middle(chat_server, actor):
    chat_server.script = replies(text("ls"))
    one = actor(context_tokens=1000, max_tokens=200, system_prompt="")
    one.act("begin " + "i" * 100_000 + " end")
    one.act("first " + "o" * 100_000 + " last")
    issue, _, seen = [m["content"] for m in chat_server.requests[1]["messages"]]
    assert issue.startswith("begin")
    assert issue.endswith("end")
    assert seen.startswith("first")
    assert seen.endswith("last")
    assert "characters left out" in seen
    assert len(issue) + len(seen) < 3500


def test_tokens_are_learned_from_the_endpoint(chat_server, actor):
    chat_server.script = lambda request, number: text("ls", usage=(len(json.dumps(request["messages"])), 1))
    one = actor(context_tokens=2000, max_tokens=100, system_prompt="")
    for n in range(8):
        one.act(f"{n} " + "x" * 700)
    sizes = [sum(len(m["content"]) for m in r["messages"]) for r in chat_server.requests]
    assert max(sizes) < 2300  # one character is one token there


def test_too_long_prompts_are_halved_once(chat_server, policy, tiny_task):
    chat_server.script = small_context(4000)
    made = policy(system_prompt="")
    one = made.start(task=tiny_task, actions=get_format("bash"), seed=0)
    one.act("issue")
    for _ in range(6):
        assert one.act("x" * 1500).startswith("echo")
    assert made.counts["overflowed"] >= 1
    assert made.counts["shortened"] >= 1


def test_an_episode_whose_context_is_full_ends_and_is_verified(chat_server, policy, tiny_task, best_kind):
    chat_server.script = by_turn(fenced(FIX), overflow())
    made = policy()
    (episode,) = run_group(tiny_task, made, group_size=1, sandbox=best_kind)
    assert (episode.status, episode.passed, len(episode.turns)) == (EpisodeStatus.POLICY_LIMIT, True, 1)
    assert "the context is full" in episode.error
    assert made.counts["overflowed"] == 2
    assert len(chat_server.requests) == 3


def test_a_spent_budget_ends_the_episodes(chat_server, policy, tiny_task, best_kind):
    chat_server.script = by_turn(fenced(FIX))
    made = policy(budget=Budget(turns=2))
    episodes = run_group(tiny_task, made, group_size=2, sandbox=best_kind)
    assert {e.status for e in episodes} == {EpisodeStatus.POLICY_LIMIT}
    assert made.meter.usage.calls == 2
    assert made.counts["over_budget"] == 2
    assert "requests of the policy" in episodes[0].error


@pytest.mark.parametrize("reply", [slow(60), drip(), error(429, retry_after=60)])
def test_the_seconds_of_a_budget_end_a_request_in_flight(chat_server, actor, reply):
    chat_server.script = replies(reply)
    with pytest.raises(PolicyLimitError, match="no answer in"):
        actor(budget=Budget(seconds=1)).act("issue")
    assert len(chat_server.requests) == 1


def test_tries_that_fail_count_against_a_budget(chat_server, policy, tiny_task):
    chat_server.script = replies(error(500, retry_after=0))
    made = policy(budget=Budget(turns=3), retries=5)
    with pytest.raises(PolicyLimitError, match="3 requests of the policy"):
        made.start(task=tiny_task, actions=get_format("bash"), seed=0).act("issue")
    assert len(chat_server.requests) == 3
    assert (made.meter.usage.calls, made.meter.usage.failed_calls) == (3, 3)


def test_tokens_of_the_model_can_be_what_is_preserved(chat_server, policy, tiny_task, best_kind):
    def answer(request, number):
        turn = sum(message["role"] == "assistant" for message in request["messages"])
        mine = request["seed"] % 2
        script = [fenced(FIX if mine else "true"), fenced("submit")]
        return {**script[turn], "usage": (50, 10 + number)}

    chat_server.script = answer
    made = policy()
    env = GroupRewardWrapper(GroupVectorEnv(tiny_task, group_size=6, sandbox=best_kind), None, preserve="token", seed=3)
    try:
        (batch,) = env.collect(made, 1, max_attempts=3)
    finally:
        env.close()
    counts = np.array([sum(turn.completion_tokens for turn in e.turns) for e in batch.episodes])
    assert (counts >= 20).all()
    assert batch.result.tokens == tuple(map(float, counts))


class CountsTokens:
    """Fixes in its first answer; the second one is its last."""

    name = "counts"

    def start(self, *, task, actions, seed):
        return _Counting(actions, seed)


class _Counting:
    def __init__(self, actions, seed):
        self.script = iter([actions.bash(FIX), actions.submit()])
        self.usage = None
        self.seed = seed

    def act(self, observation):
        self.usage = (100, 10 + (self.usage or (0, 0))[1])
        if self.seed % 2 and self.usage[1] > 10:
            raise PolicyLimitError("full")
        return next(self.script)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_usage_and_limits_reach_vector_environments_of_gymnasium(tiny_task, best_kind, mode):
    vector = {"autoreset_mode": AutoresetMode.DISABLED, **({"shared_memory": False} if mode == "async" else {})}
    made = gym.make_vec(
        REPO_EDIT_ID, 2, vectorization_mode=mode, vector_kwargs=vector, task=tiny_task, sandbox=best_kind
    )
    env = GroupRewardWrapper(made, None, seed=0)
    records = []
    try:
        groups = env.collect(CountsTokens(), 1, max_attempts=1, on_group=lambda group: records.extend(group.episodes))
        assert list(groups) == []  # all passed
    finally:
        env.close()
    ends = {(e.status, tuple((t.prompt_tokens, t.completion_tokens) for t in e.turns)) for e in records}
    assert ends == {
        (EpisodeStatus.SUBMITTED, ((100, 10), (100, 20))),
        (EpisodeStatus.POLICY_LIMIT, ((100, 10),)),
    }


def test_the_policy_travels(policy):
    made = policy(budget=Budget(turns=3))
    copy = pickle.loads(pickle.dumps(made))
    assert isinstance(copy, Policy)
    assert (copy.name, copy.meter.budget.turns, copy.client.base_url) == (made.name, 3, made.client.base_url)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"context_tokens": 10, "max_tokens": 10}, "context_tokens"), ({"deadline_s": 0}, "deadline_s")],
)
def test_numbers_out_of_range(options, words):
    with pytest.raises(ValueError, match=words):
        ChatPolicy("m", **options)


def test_by_name():
    assert get_policy("chat", model="m", base_url="http://127.0.0.1:9/v1").name == "chat:m"
    with pytest.raises(UnknownNameError, match="needs the name of a model"):
        get_policy("chat")
    with pytest.raises(UnknownNameError, match="'noop' takes no model"):
        get_policy("noop", model="m")


def test_no_key_and_no_endpoint(monkeypatch, tiny_task):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ModelError, match="base URL"):
        ChatPolicy("m").start(task=tiny_task, actions=get_format("bash"), seed=0).act("issue")


class Batches:
    """A local model: notes the sizes of its batches."""

    def __init__(self, answer, takes_s=0.0):
        self.answer, self.takes_s = answer, takes_s
        self.sizes, self.at_work = [], 0

    def __call__(self, chats):
        self.at_work += 1
        assert self.at_work == 1, "one call at a time"
        self.sizes.append(len(chats))
        time.sleep(self.takes_s)
        self.at_work -= 1
        return self.answer(chats)


def turn_of(chat):
    return sum(message["role"] == "assistant" for message in chat)


def test_batched_episodes_share_calls(tiny_task, best_kind):
    before = set(threading.enumerate())  # a thread of another test may still wait for something
    script = [f"```bash\n{FIX}\n```", "submit"]
    model = Batches(lambda chats: [Generated(script[turn_of(chat)], 40, 7) for chat in chats])
    policy = BatchedPolicy(model, max_batch=4, max_wait_s=0.5, name="tiny")
    episodes = run_group(tiny_task, policy, group_size=8, sandbox=best_kind)
    assert all(e.passed for e in episodes)
    assert sum(model.sizes) == 16
    assert max(model.sizes) <= 4
    assert len(model.sizes) < 16
    assert {(t.prompt_tokens, t.completion_tokens) for e in episodes for t in e.turns} == {(40, 7)}
    assert episodes[0].policy == "tiny"
    assert not [t for t in set(threading.enumerate()) - before if t.name.startswith("gagar")]


def test_batched_answers_reach_who_asked(tiny_task):
    model = Batches(lambda chats: [f"echo {chat[-1]['content']}" for chat in chats], takes_s=0.01)
    policy = BatchedPolicy(model, max_batch=3, max_wait_s=0.01)
    said = {}

    def ask(n):
        actor = policy.start(task=tiny_task, actions=get_format("bash"), seed=n)
        said[n] = [actor.act(f"{n}.{turn}") for turn in range(5)]
        assert actor.usage is None

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert said == {n: [f"echo {n}.{turn}" for turn in range(5)] for n in range(7)}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda chats: 1 / 0, "ZeroDivisionError"),
        (lambda chats: [], "0 answers to"),
        (lambda chats: [None for _ in chats], "gave NoneType"),
    ],
)
def test_batched_faults_cost_the_episodes_of_the_batch(tiny_task, best_kind, answer, words):
    policy = BatchedPolicy(Batches(answer), max_batch=2, max_wait_s=0.2)
    episodes = run_group(tiny_task, policy, group_size=2, sandbox=best_kind)
    assert {e.status for e in episodes} == {EpisodeStatus.ERROR}
    assert all(words in e.error for e in episodes)


@pytest.mark.parametrize("options", [{"max_batch": 0}, {"max_wait_s": -1}, {"context_tokens": 0}])
def test_batched_numbers_out_of_range(options):
    with pytest.raises(ValueError, match="max_batch"):
        BatchedPolicy(list, **options)


def test_limits_of_a_policy_of_yours_end_the_episode(tiny_task, best_kind):
    class Stops:
        name = "stops"

        def start(self, *, task, actions, seed):
            return self

        def act(self, observation):
            raise PolicyLimitError("enough")

    (episode,) = run_group(tiny_task, Stops(), group_size=1, sandbox=best_kind)
    assert (episode.status, episode.valid, episode.error) == (
        EpisodeStatus.POLICY_LIMIT,
        True,
        "policy stops: enough",
    )


@pytest.mark.parametrize("usage", [(1,), ("a", 2), (-1, 2), 7])
def test_usage_that_is_none_is_a_fault_of_the_policy(tiny_task, best_kind, usage):
    class Odd:
        name = "odd"

        def start(self, **_):
            self.usage = usage
            return self

        def act(self, observation):
            return "submit"

    (episode,) = run_group(tiny_task, Odd(), group_size=1, sandbox=best_kind)
    assert "usage must be two counts" in episode.error


def test_without_the_extra_a_policy_is_refused_when_it_is_made(monkeypatch):
    """Not once in each of its episodes, which would only be invalid."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'gagar-env\[llm\]'"):
        ChatPolicy("m")
