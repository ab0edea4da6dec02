"""Adapters and merged models between this project and Python PEFT, both ways. Every command prints one JSON object.

usage: peft_interop.py logits MODEL --ids IDS [--adapter DIR] [--out FILE]
           logits of a model folder, with an adapter folder or without (a merged model)
       peft_interop.py make MODEL DIR --ids IDS [--r 8] [--alpha 16] [--rslora] [--targets all-linear | q_proj,v_proj]
                       [--rank-pattern JSON] [--alpha-pattern JSON] [--seed 0]
                       [--layers 1,2] [--exclude v_proj]
           an adapter with random lora_A and lora_B in DIR, its logits in DIR/expected.safetensors ("input_ids", "base_logits",
           "logits", "merged_logits")
       peft_interop.py check MODEL FILE [--adapter DIR]
           opens a model folder (and adapter) and compares its logits with FILE's "input_ids" [rows, tokens] and
           "logits" [rows, tokens, vocabulary]

IDS: JSON, one list of token ids or several of the same length; "-" reads it from standard input. Without --out, `logits` prints
the logits themselves. Exit status 1 when `check` finds an error above 1e-4 relative to max(1, |value|), or loading leaves
weights missing or unexpected.
"""

import argparse
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from protocol import answers

TOLERANCE = 1e-4


def load(folder, adapter=None):
    """The model, and the names of weights that the folder lacked or had too many of."""
    model, info = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    problems = sorted(str(name) for kind in ("missing_keys", "unexpected_keys", "mismatched_keys") for name in info[kind])
    if adapter is not None:
        model = PeftModel.from_pretrained(model, adapter)
        # PEFT fills missing adapter weights with fresh ones without an error, so names are compared here.
        # The base model's own embedding, which PEFT may put beside an adapter of it, is none of them.
        wanted = {name for name in model_adapter_state(model) if ".base_layer." not in name}
        found = {name for name in load_file(Path(adapter) / "adapter_model.safetensors") if ".base_layer." not in name}
        problems += sorted(wanted ^ found)
    return model.eval(), problems


def model_adapter_state(model):
    from peft import get_peft_model_state_dict

    return get_peft_model_state_dict(model)


@torch.inference_mode()
def logits_of(model, ids):
    return model(input_ids=ids, use_cache=False).logits.float().contiguous()


def read_ids(text):
    ids = json.loads(sys.stdin.read() if text == "-" else text)
    return torch.tensor(ids if isinstance(ids[0], list) else [ids])


def write_logits(arguments):
    ids = read_ids(arguments.ids)
    model, problems = load(arguments.model, arguments.adapter)
    logits = logits_of(model, ids)
    summary = {"shape": list(logits.shape), "problems": problems}
    if arguments.out is None:
        return summary | {"logits": logits.tolist()}
    save_file({"input_ids": ids.int(), "logits": logits}, arguments.out)
    return summary | {"file": str(arguments.out)}


def make(arguments):
    ids = read_ids(arguments.ids)
    torch.manual_seed(arguments.seed)
    targets = arguments.targets if arguments.targets == "all-linear" else arguments.targets.split(",")
    base, problems = load(arguments.model)
    expected = {"input_ids": ids.int(), "base_logits": logits_of(base, ids)}
    if arguments.layers is not None and targets == "all-linear":  # PEFT takes layers with a list of names only
        linear = (name for name, module in base.named_modules() if "Linear" in type(module).__name__ or "Conv1D" in type(module).__name__)
        targets = sorted({name.rsplit(".", 1)[-1] for name in linear} - {"lm_head"})
    config = LoraConfig(
        layers_to_transform=arguments.layers and [int(layer) for layer in arguments.layers.split(",")],
        exclude_modules=arguments.exclude and arguments.exclude.split(","),
        r=arguments.r, lora_alpha=arguments.alpha, use_rslora=arguments.rslora, target_modules=targets, task_type="CAUSAL_LM",
        rank_pattern=arguments.rank_pattern, alpha_pattern=arguments.alpha_pattern)
    model = get_peft_model(base, config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                parameter.normal_(0, 0.1 if "lora_B" in name else parameter.shape[-1] ** -0.5)
    model.save_pretrained(arguments.dir)
    expected["logits"] = logits_of(model, ids)
    expected["merged_logits"] = logits_of(model.merge_and_unload(), ids)
    save_file(expected, arguments.dir / "expected.safetensors")
    effect = (expected["logits"] - expected["base_logits"]).abs().max().item()
    return {"adapter": str(arguments.dir), "largest_effect": effect, "problems": problems}


def check(arguments):
    given = load_file(arguments.file)
    model, problems = load(arguments.model, arguments.adapter)
    logits = logits_of(model, given["input_ids"].long())
    wanted = given["logits"]
    if logits.shape != wanted.shape:
        problems.append(f"logits are {list(wanted.shape)} in the file and {list(logits.shape)} here")
        return {"passed": False, "problems": problems}
    absolute = (logits - wanted).abs()
    relative = (absolute / logits.abs().clamp(min=1)).max().item()
    passed = relative <= TOLERANCE and not problems
    return {"passed": passed, "largest_relative_error": relative, "largest_error": absolute.max().item(), "problems": problems}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("logits")
    one.add_argument("model", type=Path)
    one.add_argument("--ids", required=True)
    one.add_argument("--adapter", type=Path)
    one.add_argument("--out", type=Path)
    two = commands.add_parser("make")
    two.add_argument("model", type=Path)
    two.add_argument("dir", type=Path)
    two.add_argument("--ids", required=True)
    two.add_argument("--r", type=int, default=8)
    two.add_argument("--alpha", type=float, default=16)
    two.add_argument("--rslora", action="store_true")
    two.add_argument("--targets", default="all-linear")
    two.add_argument("--layers")
    two.add_argument("--exclude")
    two.add_argument("--rank-pattern", type=json.loads, default={})
    two.add_argument("--alpha-pattern", type=json.loads, default={})
    two.add_argument("--seed", type=int, default=0)
    three = commands.add_parser("check")
    three.add_argument("model", type=Path)
    three.add_argument("file", type=Path)
    three.add_argument("--adapter", type=Path)
    return parser.parse_args()


def main():
    arguments = parse()
    write = answers()
    result = {"logits": write_logits, "make": make, "check": check}[arguments.command](arguments)
    write(result)
    sys.exit(0 if result.get("passed", not result["problems"]) else 1)


if __name__ == "__main__":
    main()
