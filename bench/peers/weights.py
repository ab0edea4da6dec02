"""Writes a GGUF model as a Hugging Face folder: float32 safetensors, config, tokenizer. Done once; both sides open the folder.

usage: weights.py GGUF FOLDER            the folder that Transformers 5 and this project open
       weights.py --legacy FOLDER OLD    the same weights for Transformers 4.38 (LlamaGym's), chat template with [/INST] marks
"""

import json
import os
import shutil
import sys
from pathlib import Path

# LlamaGym finds the model's reply by splitting the text on "[/INST]", so its template has to hold that mark.
LEGACY_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}{{ message['content'] + '<|im_end|>\n' }}"
    "{% else %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% if message['role'] == 'user' %}{{ '<|im_start|>assistant\n[/INST] ' }}{% endif %}{% endif %}"
    "{% endfor %}"
)


def write_folder(gguf, folder):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    source = {"pretrained_model_name_or_path": gguf.parent, "gguf_file": gguf.name}
    read = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True))
    config = read.config.to_dict()
    config.pop("quantization_config", None)
    for name in ("_name_or_path", "_model_name_or_path"):
        config.pop(name, None)
    # A model made anew from the plain config carries no mark of its GGUF origin, so it can be saved.
    plain = AutoModelForCausalLM.from_config(type(read.config).from_dict(config), dtype=torch.float32)
    plain.load_state_dict(read.state_dict())
    plain.generation_config.eos_token_id = read.config.eos_token_id
    plain.save_pretrained(folder)
    AutoTokenizer.from_pretrained(**source).save_pretrained(folder)


def write_legacy(folder, old):
    config = json.loads((folder / "config.json").read_text())
    config["rope_theta"] = config.pop("rope_parameters")["rope_theta"]
    config["torch_dtype"] = config.pop("dtype")
    (old / "config.json").write_text(json.dumps(config, indent=2))

    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    merges = tokenizer["model"]["merges"]
    tokenizer["model"]["merges"] = [pair if isinstance(pair, str) else " ".join(pair) for pair in merges]
    (old / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False))

    settings = json.loads((folder / "tokenizer_config.json").read_text())
    names = ("bos_token", "eos_token", "unk_token", "pad_token", "model_max_length")
    kept = {name: settings[name] for name in names if name in settings}
    kept |= {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": LEGACY_TEMPLATE}
    (old / "tokenizer_config.json").write_text(json.dumps(kept, indent=2))
    (old / "model.safetensors").symlink_to((folder / "model.safetensors").resolve())


def main():
    legacy = sys.argv[1] == "--legacy"
    source, target = (Path(argument) for argument in sys.argv[-2:])
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    (write_legacy if legacy else write_folder)(source, partial)
    # The folder appears under its name only when it is whole.
    shutil.rmtree(target, ignore_errors=True)
    os.rename(partial, target)


if __name__ == "__main__":
    main()
