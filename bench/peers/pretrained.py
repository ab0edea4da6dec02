"""PyTorch + PEFT's side of `npm run bench -- pretrained`: PPO with replies held to choices, as a careful user would write it.

usage: pretrained.py [--model FOLDER] [--threads 2] [--bfloat16]      requests on standard input (protocol.py)

The choices differ in their first token, so a reply is one decision: one forward over left-padded prompts, logits of the choices'
first tokens at the last position only, no cache. --bfloat16 holds the model in bfloat16, with autocast and a float32 adapter.
"""

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import gymnasium
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from protocol import serve

MODEL = Path(__file__).resolve().parents[1] / ".cache" / "smollm2-135m"
GAMMA, LAM, CLIP, VALUE_CLIP = 0.99, 0.95, 0.2, 0.2


def cartpole_text(observation):
    position, velocity, angle, angular_velocity = observation
    return (
        f"Cart position: {position:+.3f}, velocity: {velocity:+.3f}\n"
        f"Pole angle: {angle:+.3f} rad, angular velocity: {angular_velocity:+.3f}"
    )


def blackjack_text(observation):
    total, dealer, ace = observation
    shows = "ace" if dealer == 1 else dealer
    return f"Your current total is {total}. The dealer shows {shows}. You have {'a' if ace else 'no'} usable ace. hit or stay?"


TASKS = {
    "CartPole-v1": (
        "Keep pole balanced on cart. You see the current state. Your action: LEFT or RIGHT", cartpole_text, ["LEFT", "RIGHT"]),
    "Blackjack-v1": (
        "You are an expert blackjack player. Come closer to 21 than the dealer without going over it. "
        "Answer hit to take another card or stay to stop.", blackjack_text, ["stay", "hit"]),
}


class Policy(torch.nn.Module):
    def __init__(self, folder, layers, bfloat16):
        super().__init__()
        dtype = torch.bfloat16 if bfloat16 else torch.float32
        base = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="sdpa")
        linear = sorted({name.rsplit(".", 1)[-1] for name, module in base.model.named_modules() if isinstance(module, torch.nn.Linear)})
        config = LoraConfig(
            r=16, lora_alpha=32, lora_dropout=0.0, target_modules=linear, layers_to_transform=layers or None, task_type="CAUSAL_LM")
        self.model = get_peft_model(base, config)
        self.value = torch.nn.Linear(base.config.hidden_size, 1)
        self.autocast = lambda: torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16)

    def forward(self, batch, choices):
        """Log-probabilities of the choices [rows, choices] and values [rows]."""
        with self.autocast():
            causal = self.model.get_base_model()
            hidden = causal.model(**batch, use_cache=False).last_hidden_state[:, -1].float()
        logits = hidden @ causal.lm_head.weight[choices].float().T
        return torch.log_softmax(logits, dim=-1), self.value(hidden).squeeze(-1)


class Player:
    def __init__(self, folder, bfloat16):
        self.folder = folder
        self.bfloat16 = bfloat16
        self.key = None

    def open(self, request):
        key = (request["env"], tuple(request["layers"]))
        if key == self.key:
            return
        self.key = key
        self.system, self.text, names = TASKS[request["env"]]
        self.tokenizer = AutoTokenizer.from_pretrained(self.folder, padding_side="left")
        self.choices = [self.tokenizer(name, add_special_tokens=False).input_ids[0] for name in names]
        assert len(set(self.choices)) == len(names)
        self.policy = Policy(self.folder, request["layers"], self.bfloat16)
        trained = [parameter for parameter in self.policy.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.AdamW(trained, lr=1e-4, fused=True)
        self.trained = trained
        self.envs = [gymnasium.make(request["env"]) for _ in range(request["envs"])]
        self.observations = [env.reset(seed=i)[0] for i, env in enumerate(self.envs)]

    def encode(self, texts):
        prompts = [[{"role": "system", "content": self.system}, {"role": "user", "content": text}] for text in texts]
        rendered = [self.tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False) for prompt in prompts]
        batch = self.tokenizer(rendered, add_special_tokens=False, padding=True, return_tensors="pt")
        mask = batch["attention_mask"]
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        return {"input_ids": batch["input_ids"], "attention_mask": mask, "position_ids": positions}

    @torch.inference_mode()
    def play(self, turns):
        rows = []
        for _ in range(turns // len(self.envs)):
            texts = [self.text(observation) for observation in self.observations]
            log_probs, values = self.policy(self.encode(texts), self.choices)
            actions = torch.multinomial(log_probs.exp(), 1).squeeze(-1)
            rewards, ends = [], []
            for i, env in enumerate(self.envs):
                self.observations[i], reward, terminated, truncated, _ = env.step(int(actions[i]))
                rewards.append(float(reward))
                ends.append(terminated or truncated)
                if ends[-1]:
                    self.observations[i], _ = env.reset()
            chosen = log_probs.gather(-1, actions[:, None]).squeeze(-1)
            rows.append((texts, actions, chosen, values, torch.tensor(rewards), torch.tensor(ends).float()))
        _, last = self.policy(self.encode([self.text(observation) for observation in self.observations]), self.choices)
        return rows, last

    def prepare(self, rows, last):
        advantage, after = torch.zeros_like(last), last
        advantages = []
        for _, _, _, values, rewards, ends in reversed(rows):
            delta = rewards + GAMMA * after * (1 - ends) - values
            advantage = delta + GAMMA * LAM * (1 - ends) * advantage
            advantages.insert(0, advantage)
            after = values
        texts = [text for row in rows for text in row[0]]
        actions, old, values = (torch.cat([row[i] for row in rows]) for i in (1, 2, 3))
        advantages = torch.cat(advantages)
        return texts, actions, old, values, (advantages - advantages.mean()) / (advantages.std() + 1e-8), advantages + values

    def update(self, data, mini_batch, epochs):
        texts, actions, old, old_values, advantages, returns = data
        for _ in range(epochs):
            for indices in torch.randperm(len(texts)).split(mini_batch):
                log_probs, values = self.policy(self.encode([texts[i] for i in indices]), self.choices)
                ratio = (log_probs.gather(-1, actions[indices][:, None]).squeeze(-1) - old[indices]).exp()
                weights = advantages[indices]
                policy_loss = -torch.min(ratio * weights, ratio.clamp(1 - CLIP, 1 + CLIP) * weights).mean()
                clipped = old_values[indices] + (values - old_values[indices]).clamp(-VALUE_CLIP, VALUE_CLIP)
                errors = torch.max((values - returns[indices]) ** 2, (clipped - returns[indices]) ** 2)
                entropy = -(log_probs.exp() * log_probs).sum(-1).mean()
                self.optimizer.zero_grad(set_to_none=True)
                (policy_loss + 0.5 * 0.5 * errors.mean() - 0.01 * entropy).backward()
                torch.nn.utils.clip_grad_norm_(self.trained, 0.5)
                self.optimizer.step()

    def handle(self, request):
        self.open(request)
        turns = request["turns"]
        seconds, rollouts, updates = [], [], []
        for _ in range(request["repeat"]):
            start = time.perf_counter()
            played = self.play(turns)
            middle = time.perf_counter()
            self.update(tuple(value.clone() if torch.is_tensor(value) else value for value in self.prepare(*played)),
                        request["mini_batch"], request["epochs"])
            end = time.perf_counter()
            seconds.append(end - start)
            rollouts.append(turns / (middle - start))
            updates.append(turns / (end - middle))
        values = {"rollout": sum(rollouts) / len(rollouts), "update": sum(updates) / len(updates)}
        return {"seconds": seconds, "count": turns, "values": values}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--bfloat16", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    serve(Player(str(arguments.model), arguments.bfloat16).handle)


if __name__ == "__main__":
    main()
