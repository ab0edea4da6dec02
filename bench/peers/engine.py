"""PyTorch + Transformers + PEFT's side of `npm run bench -- engine`: float32 or bfloat16 on the CPU, LoRA on all linear layers.

usage: engine.py [--model FOLDER] [--threads 2] [--dtype float32] [--compile]      requests on standard input (protocol.py)

Requests carry the work and its sizes (../engine-work.ts): {"work": "train", "rows": 8, "tokens": 128, "shared": 0, "last": 0}.
--compile puts the training step through torch.compile, which needs a C++ compiler and a minute or two for each shape.
"""

import argparse
import copy
import os
import time
from functools import cached_property
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import torch.nn.functional as F
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, DynamicCache, GenerationConfig, StaticCache

from protocol import serve, timed

MODEL = Path(__file__).resolve().parents[1] / ".cache" / "smollm2-135m"


def token_ids(rows, tokens, shared, vocabulary):
    """Ids that both sides make alike; the first `shared` positions of every row are the same."""
    row = torch.arange(rows)[:, None]
    position = torch.arange(tokens)[None, :]
    row = torch.where(position < shared, torch.zeros_like(row), row)
    return (row * 7919 + position * 31 + 17) % vocabulary


def load(folder, dtype):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="sdpa")


def add_lora(model):
    config = LoraConfig(r=16, lora_alpha=32, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM")
    return get_peft_model(model, config)


def sample(logits, temperature, top_p):
    """One token a row: temperature, then the smallest set of tokens that holds top_p, then a draw."""
    probabilities = torch.softmax(logits.float() / temperature, dim=-1)
    # A full sort of 49,152 values a row costs more than the model at 32 rows; it is needed only if the first 256 are not enough.
    largest, tokens = probabilities.topk(min(256, probabilities.shape[-1]), dim=-1)
    if not torch.all(largest.sum(dim=-1) >= top_p):
        largest, tokens = probabilities.sort(dim=-1, descending=True)
    before = largest.cumsum(dim=-1) - largest
    largest = largest.masked_fill(before >= top_p, 0.0)
    return tokens.gather(-1, torch.multinomial(largest, 1))


class Engine:
    def __init__(self, folder, compiled, dtype):
        self.folder = folder
        self.dtype = dtype
        self.compiled = compiled
        self.fastest_decode = {}

    @cached_property
    def base(self):
        return load(self.folder, self.dtype)

    @cached_property
    def trained(self):
        """The model with LoRA and its optimiser."""
        model = add_lora(copy.deepcopy(self.base) if "merged" in self.__dict__ else self.base)
        model.train()
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        optimiser = torch.optim.AdamW(parameters, lr=1e-4, fused=True)
        return torch.compile(model, dynamic=False) if self.compiled else model, optimiser

    @cached_property
    def merged(self):
        """The same model with an adapter merged into its weights, which is how PyTorch samples fastest."""
        model = add_lora(load(self.folder, self.dtype))
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if "lora_B" in name:
                    parameter.normal_(0, 1e-3)
        return model.merge_and_unload().eval()

    def train(self, rows, tokens, shared, last, repeat, backward=None, quantize=None):
        """Forward, mean cross-entropy of the next tokens, backward and AdamW; logits of the last `last` positions, 0 for all."""
        model, optimiser = self.trained
        ids = token_ids(rows, tokens + 1, shared, model.config.vocab_size)
        inputs, targets = ids[:, :-1].contiguous(), ids[:, 1:]
        targets = targets[:, -last:].flatten()

        def step():
            logits = model(input_ids=inputs, logits_to_keep=last, use_cache=False).logits
            loss = F.cross_entropy(logits.flatten(0, 1), targets)
            del logits
            loss.backward()
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)

        return {"seconds": timed(step, repeat), "count": rows * tokens}

    @torch.inference_mode()
    def prefill(self, rows, tokens, repeat):
        """One forward that fills a cache and gives the last position's logits."""
        ids = token_ids(rows, tokens, 0, self.merged.config.vocab_size)
        seconds = timed(lambda: self.merged(input_ids=ids, logits_to_keep=1, use_cache=True), repeat)
        return {"seconds": seconds, "count": rows * tokens}

    def prefix_cache(self, prompt, rows):
        """The keys and values of all of the prompt's tokens but the last, for each row."""
        cache = DynamicCache(config=self.merged.config)
        self.merged(input_ids=torch.tensor([prompt[:-1]]), past_key_values=cache, use_cache=True, logits_to_keep=1)
        cache.batch_repeat_interleave(rows)
        return cache

    def decode_loop(self, cache, prompt, rows, new_tokens, temperature, top_p):
        ids = torch.tensor([prompt[-1:]]).expand(rows, 1)
        for _ in range(new_tokens):
            logits = self.merged(input_ids=ids, past_key_values=cache, use_cache=True).logits
            ids = sample(logits[:, -1], temperature, top_p)

    def decode_static(self, cache, prompt, rows, new_tokens, temperature, top_p):
        """The same loop on buffers of their final size, into which the prompt's keys and values are copied first."""
        static = StaticCache(config=self.merged.config, max_cache_len=len(prompt) + new_tokens)
        for index, layer in enumerate(cache.layers):
            static.update(layer.keys, layer.values, index)
        self.decode_loop(static, prompt, rows, new_tokens, temperature, top_p)

    def decode_generate(self, cache, prompt, rows, new_tokens, temperature, top_p):
        config = GenerationConfig(
            max_new_tokens=new_tokens, min_new_tokens=new_tokens, do_sample=True, temperature=temperature, top_p=top_p, top_k=0,
            eos_token_id=self.merged.config.eos_token_id, pad_token_id=self.merged.config.pad_token_id)
        ids = torch.tensor([prompt]).expand(rows, -1).contiguous()
        out = self.merged.generate(
            ids, attention_mask=torch.ones_like(ids), past_key_values=cache, generation_config=config)
        assert out.shape[1] == len(prompt) + new_tokens

    @torch.inference_mode()
    def decode(self, rows, prompt, new_tokens, temperature, top_p, repeat, quantize=None):
        """New tokens after a prompt that is in the cache already. The fastest of three ways, chosen at the first request."""
        ways = {"loop": self.decode_loop, "static_cache": self.decode_static, "generate": self.decode_generate}

        def seconds(way):
            cache = self.prefix_cache(prompt, rows)
            start = time.perf_counter()
            way(cache, prompt, rows, new_tokens, temperature, top_p)
            return time.perf_counter() - start

        if rows not in self.fastest_decode:
            found = {name: min(seconds(way) for _ in range(2)) for name, way in ways.items()}
            self.fastest_decode[rows] = min(found, key=found.get), found
        fastest, found = self.fastest_decode[rows]
        rates = {f"{name}_tokens_per_second": rows * new_tokens / spent for name, spent in found.items()}
        return {"seconds": [seconds(ways[fastest]) for _ in range(repeat)], "count": rows * new_tokens, "values": rates}

    def start(self, prompt, source, repeat):
        """From the folder to the first token, Python's imports not counted."""
        assert source == "folder", "only the folder is compared"
        with torch.inference_mode():
            ids = torch.tensor([prompt])
            seconds = timed(lambda: load(self.folder, self.dtype).eval()(input_ids=ids, logits_to_keep=1).logits.argmax(-1).item(), repeat)
        return {"seconds": seconds, "count": 1}

    @torch.inference_mode()
    def sgemm(self, shapes, repeat):
        """The best rate of float32 matrix products over [rows, inner, columns] shapes."""
        best = None
        for rows, inner, columns in shapes:
            left, right = torch.randn(rows, inner), torch.randn(inner, columns)
            out = torch.empty(rows, columns)
            operations = 2 * rows * inner * columns
            calls = max(1, int(2e9 // operations))
            seconds = min(timed(lambda: [torch.mm(left, right, out=out) for _ in range(calls)], 8)) / calls
            if best is None or operations / seconds > best[0] / best[1]:
                best = operations, seconds
        return {"seconds": [best[1]] * repeat, "count": best[0]}

    def handle(self, request):
        parameters = {name: value for name, value in request.items() if name not in ("case", "work")}
        return getattr(self, request["work"])(**parameters)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--compile", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    serve(Engine(arguments.model, arguments.compile, getattr(torch, arguments.dtype)).handle)


if __name__ == "__main__":
    main()
