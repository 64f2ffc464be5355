"""A group that a model works on and another one, or the same, ranks: any OpenAI-compatible endpoint.

python examples/chat_models.py --url http://127.0.0.1:8000/v1 --model NAME [--grader-model NAME] [--native-tools]

A key, if the endpoint needs one, is taken from OPENAI_API_KEY. Where the judge fails, rules rank in its place.
"""

import argparse

from gagar_env import grade_group, run_group
from gagar_env.agents.graders import AgenticGrader, FallbackGrader, RuleGrader
from gagar_env.agents.policies import ChatPolicy


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="of the endpoint, with its /v1")
    parser.add_argument("--model", default="policy")
    parser.add_argument("--grader-model", default="judge")
    parser.add_argument("--native-tools", action="store_true", help="let the model call tools by the protocol")
    parser.add_argument("--task", default="ledger-rounding")
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--smoke", action="store_true", help="a group of four")
    arguments = parser.parse_args()
    size = 4 if arguments.smoke else arguments.group_size

    judge = AgenticGrader(arguments.grader_model, base_url=arguments.url)
    grader = FallbackGrader(judge, RuleGrader())
    with ChatPolicy(arguments.model, base_url=arguments.url, native_tools=arguments.native_tools) as policy:
        action_format = "tools" if arguments.native_tools else "bash"
        episodes = run_group(arguments.task, policy, group_size=size, action_format=action_format)
    result = grade_group(episodes, grader, preserve="token")

    for episode, rank, before, after in zip(
        episodes, result.ranks, result.advantages_before, result.advantages, strict=True
    ):
        tokens = sum(turn.completion_tokens for turn in episode.turns)
        print(f"passed={episode.passed!s:5} {tokens:6} tokens  rank={rank!s:4} {before:+.3f} -> {after:+.3f}")
    print(f"{policy.name}: {policy.counts}")
    if result.verdict is not None:
        verdict = result.verdict
        print(f"ranked by {verdict.record.get('ranked_by', 'nobody')}: {verdict.usage.calls} calls, {verdict.tiers}")
    for episode in episodes:
        if not episode.valid:
            print(f"no result: {episode.error}")


if __name__ == "__main__":
    main()
