"""What tests of TRL share: a configuration for this machine's CPU, and a trainer that shows what reaches its loss."""

import pytest

FIX = "sed -i 's/a - b/a + b/' calc.py"
ACTIONS = [f"```bash\n{command}\n```" for command in (FIX, f"{FIX}; echo 'x = 1' > extra.py", "ls", "submit")]
GOOD, SLOPPY, LOOK, SUBMIT = ACTIONS
PLANS = ((GOOD, SUBMIT), (SLOPPY, LOOK, SUBMIT), (LOOK, SUBMIT), (SUBMIT,))

MARKS = [
    pytest.mark.slow,  # importing TRL takes seconds
    pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:You are using 'rollout_func':UserWarning"),
    pytest.mark.filterwarnings("ignore:You are importing from 'trl.experimental'"),
    pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning"),
]


def config(kind="GRPOConfig", **settings):
    """Groups of four, a few steps, nothing written or downloaded."""
    import trl

    common = {"output_dir": "unused", "use_cpu": True, "bf16": False, "report_to": [], "save_strategy": "no"}
    common |= {"disable_tqdm": True, "gradient_checkpointing": False, "max_steps": 1, "logging_steps": 1, "seed": 3}
    common |= {"per_device_train_batch_size": 4, "num_generations": 4, "learning_rate": 1e-3}
    return getattr(trl, kind)(**(common | settings))


def recording(trainer_class):
    """That trainer, with every batch that reached its loss in `seen`."""

    class Recording(trainer_class):
        def _compute_loss(self, model, inputs):
            self.seen = [*getattr(self, "seen", []), dict(inputs)]
            return super()._compute_loss(model, inputs)

    return Recording


class Scripted:
    """Generates for episodes of the task `tiny_task`: by a plan for each, told from the actions among its tokens."""

    def __init__(self, tokenizer):
        self.tokens = {action: tokenizer.convert_tokens_to_ids(action) for action in ACTIONS}
        self.end = tokenizer.eos_token_id
        self.started = 0
        self.prompts = []

    def __call__(self, prompts, max_new_tokens, trainer):
        self.prompts += prompts
        return [([self.tokens[self.next(prompt)], self.end], [-0.5, -0.25]) for prompt in prompts]

    def next(self, prompt):
        done = [token for token in prompt if token in self.tokens.values()]
        if not done:
            self.started += 1
            return PLANS[(self.started - 1) % len(PLANS)][0]
        plan = next(plan for plan in PLANS if self.tokens[plan[0]] == done[0])
        return plan[len(done)]
