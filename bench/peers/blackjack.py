"""LlamaGym 0.1.1's side of `npm run bench -- blackjack`, with TRL 0.7 in float32 on the CPU: its Agent as its example uses it.

usage: blackjack.py [--model FOLDER] [--threads 2]      requests on standard input (protocol.py)

One repetition plays episodes until LlamaGym trains, which it does once 16 turns are gathered. Turns beyond those 16 stay for
its next batch, so playing counts at its rate: seconds = turns / (turns played a second) + seconds of the update.
"""

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("WANDB_MODE", "disabled")

import gymnasium
import torch
from llamagym import Agent
from peft import LoraConfig
from transformers import AutoTokenizer
from trl import AutoModelForCausalLMWithValueHead

from protocol import serve

MODEL = Path(__file__).resolve().parents[1] / ".cache" / "smollm2-135m-legacy"


class BlackjackAgent(Agent):
    def __init__(self, model, tokenizer, request):
        self.request = request
        tokens = request["new_tokens"]
        generation = {
            "max_new_tokens": tokens,
            # Replies never end early, so that every turn is the same work.
            "min_new_tokens": tokens,
            "do_sample": True,
            "top_p": request["top_p"],
            "top_k": 0,
            "temperature": request["temperature"],
            "pad_token_id": tokenizer.pad_token_id,
        }
        turns = request["turns"]
        ppo = {"batch_size": turns, "mini_batch_size": turns, "ppo_epochs": request["epochs"]}
        super().__init__(model, tokenizer, "cpu", generation, ppo)
        self.turns = 0
        self.play_seconds = 0.0
        self.update_seconds = []

    def get_system_prompt(self):
        return self.request["system"]

    def format_observation(self, observation):
        total, dealer, ace = observation
        words = {"{total}": str(total), "{dealer}": str(dealer), "{ace}": "a" if ace else "no"}
        text = self.request["observation"]
        for mark, word in words.items():
            text = text.replace(mark, word)
        return text

    def extract_action(self, response):
        return 0 if "stay" in response else 1

    def act(self, observation):
        start = time.perf_counter()
        action = super().act(observation)
        self.play_seconds += time.perf_counter() - start
        self.turns += 1
        return action

    def train_batch(self, *batch):
        start = time.perf_counter()
        statistics = super().train_batch(*batch)
        self.update_seconds.append(time.perf_counter() - start)
        return statistics


def make_agent(folder, request):
    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    targets = request["target_modules"]
    lora = LoraConfig(r=16, lora_alpha=32, lora_dropout=0.05, bias="none", task_type="CAUSAL_LM", target_modules=targets)
    model = AutoModelForCausalLMWithValueHead.from_pretrained(str(folder), peft_config=lora, torch_dtype=torch.float32)
    return BlackjackAgent(model, tokenizer, request)


class Player:
    def __init__(self, folder):
        self.folder = folder
        self.agent = None
        self.environment = gymnasium.make("Blackjack-v1")

    def play_until_trained(self):
        agent = self.agent
        agent.turns, agent.play_seconds, agent.update_seconds = 0, 0.0, []
        while not agent.update_seconds:
            observation, _ = self.environment.reset()
            done = False
            while not done:
                action = agent.act(observation)
                observation, reward, terminated, truncated, _ = self.environment.step(action)
                agent.assign_reward(reward)
                done = terminated or truncated
            agent.terminate_episode()
        return agent.turns / agent.play_seconds, agent.update_seconds[0]

    def handle(self, request):
        if self.agent is None:
            self.agent = make_agent(self.folder, request)
            self.environment.reset(seed=0)
        turns = request["turns"]
        seconds, rollouts, updates = [], [], []
        for _ in range(request["repeat"]):
            rate, update = self.play_until_trained()
            rollouts.append(rate)
            updates.append(turns / update)
            seconds.append(turns / rate + update)
        values = {"rollout": sum(rollouts) / len(rollouts), "update": sum(updates) / len(updates)}
        return {"seconds": seconds, "count": turns, "values": values}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    serve(Player(arguments.model).handle)


if __name__ == "__main__":
    main()
