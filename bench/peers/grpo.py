"""TRL's side of `npm run bench -- grpo`: GRPOTrainer steps in float32 on the CPU, LoRA r 16 on all linear layers.

usage: grpo.py [--model FOLDER] [--threads 2] [--checkpointing]      requests on standard input (protocol.py)

A request's step is sampling, rewards, forward, backward and update. Completions never end early, so that every step does the
same work. --checkpointing turns on gradient checkpointing: less memory, more time.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from datasets import Dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from protocol import answers, peak_rss, requests

MODEL = Path(__file__).resolve().parents[1] / ".cache" / "smollm2-135m"
UNLIMITED_STEPS = 1_000_000


class AnswerEachStep(TrainerCallback):
    """Holds training between steps until a request asks for more of them."""

    def __init__(self, first, write, waiting):
        self.request = first
        self.write = write
        self.waiting = waiting
        self.seconds = []
        self.start = None

    def on_step_begin(self, args, state, control, **kwargs):
        self.start = time.perf_counter()

    def on_step_end(self, args, state, control, **kwargs):
        self.seconds.append(time.perf_counter() - self.start)
        if len(self.seconds) < self.request["repeat"]:
            return
        self.write({"seconds": self.seconds, "count": 1, "peak_rss": peak_rss()})
        self.seconds = []
        self.request = next(self.waiting, None)
        if self.request is None:
            control.should_training_stop = True


def distinct_characters(completions, **kwargs):
    """A reward that differs between completions and costs nothing."""
    return [float(len(set(completion[0]["content"]))) for completion in completions]


def make_trainer(folder, request, checkpointing, output, callback):
    config = GRPOConfig(
        output_dir=output,
        max_steps=UNLIMITED_STEPS,
        per_device_train_batch_size=request["completions"],
        num_generations=request["group"],
        max_completion_length=request["new_tokens"],
        generation_kwargs={"min_new_tokens": request["new_tokens"]},
        temperature=1.0,
        learning_rate=1e-5,
        gradient_checkpointing=checkpointing,
        bf16=False,
        use_cpu=True,
        dataloader_pin_memory=False,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        logging_steps=UNLIMITED_STEPS,
    )
    return GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa"),
        processing_class=AutoTokenizer.from_pretrained(folder),
        reward_funcs=distinct_characters,
        train_dataset=Dataset.from_list([{"prompt": prompt} for prompt in request["prompts"]]),
        args=config,
        peft_config=LoraConfig(r=16, lora_alpha=32, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM"),
        callbacks=[callback],
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--checkpointing", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    write = answers()
    waiting = requests()
    first = next(waiting, None)
    if first is None:
        return
    try:
        with tempfile.TemporaryDirectory() as output:
            callback = AnswerEachStep(first, write, waiting)
            make_trainer(arguments.model, first, arguments.checkpointing, output, callback).train()
    except Exception as error:
        write({"error": f"{type(error).__name__}: {error}"})
        raise


if __name__ == "__main__":
    main()
