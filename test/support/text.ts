import { readFileSync } from "node:fs";

import { Tokenizer } from "../../src/models/text/tokenizer.js";

/** A parsed JSON file of test/fixtures/text. */
export function readTextFixture(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`../fixtures/text/${name}`, import.meta.url), "utf8"));
}

/**
 * What Python makes of a tokenizer: rows of text, ids, ids without special tokens, their offsets,
 * decoded text.
 */
export interface PythonTokenizer {
  readonly tokenizer: Record<string, unknown>;
  readonly size: number;
  readonly rows: [text: string, ids: number[], bare: number[], offsets: [number, number][], decoded: string][];
  readonly sequences: [ids: number[], decoded: string, decodedWithoutSpecial: string][];
}

/** The tokenizers that generate.py trained, by kind. */
export const pythonTokenizers = readTextFixture("tokenizers.json") as Record<string, PythonTokenizer>;

/** Chat templates of different habits, written for the special tokens of the trained tokenizers. */
export const chatTemplates = {
  chatml:
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}" +
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
  trimming:
    "{{ bos_token }}{% for m in messages %}{{ '<|im_start|>' + m.role + '\n\n' + m.content | trim + '<|im_end|>' }}{% endfor %}" +
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n\n' }}{% endif %}",
  dropsReasoning:
    "{% for m in messages %}{% set c = m.content %}{% if m.role == 'assistant' and not loop.last and '</think>' in c %}" +
    "{% set c = c.split('</think>')[-1].lstrip('\n') %}{% endif %}{{ '<|im_start|>' + m.role + '\n' + c + '<|im_end|>\n' }}" +
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
  systemLast:
    "{% for m in messages if m.role != 'system' %}{% if loop.last and messages[0].role == 'system' %}{{ messages[0].content + '\n' }}" +
    "{% endif %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}" +
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
  alternating:
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate') }}{% endif %}" +
    "{% if m.role == 'user' %}{{ '[INST] ' + m.content.strip() + ' [/INST]' }}{% else %}{{ ' ' + m.content.strip() + ' <|im_end|>' }}{% endif %}{% endfor %}",
  closing:
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}" +
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% else %}{{ '<|endoftext|>' }}{% endif %}",
} as const;

/** A trained tokenizer with a chat template. */
export function createTestTokenizer(kind: string, chatTemplate?: string): Tokenizer {
  const { tokenizer } = pythonTokenizers[kind];
  const byteLevel = JSON.stringify(tokenizer.added_tokens).includes("<|im_end|>");
  const tokenizerConfig = byteLevel
    ? { bos_token: "<|endoftext|>", eos_token: "<|im_end|>", pad_token: "<|endoftext|>" }
    : { bos_token: "<s>", eos_token: "</s>", unk_token: "<unk>" };
  return new Tokenizer({ tokenizerJson: tokenizer, tokenizerConfig, chatTemplate }, kind);
}
