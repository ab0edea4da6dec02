import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { Tokenizer } from "../../../text/tokenizer.js";
import { FileSource } from "../../file-source.js";
import { readGgufHeader, type GgufMetadata } from "../gguf-header.js";
import { buildGgufTokenizer } from "./gguf-tokenizer.js";

const folder = new URL("../../../../../test/fixtures/files/gguf/", import.meta.url).pathname;

interface Examples {
  readonly texts: readonly string[];
  readonly ids: readonly (readonly number[])[];
}

async function readMetadata(name: string): Promise<GgufMetadata> {
  const source = await FileSource.open(`${folder}${name}.gguf`);
  try {
    return (await readGgufHeader(source)).metadata;
  } finally {
    await source.close();
  }
}

function examples(name: string): Examples {
  return JSON.parse(readFileSync(`${folder}${name}.json`, "utf8")) as Examples;
}

function load(path: string, metadata: GgufMetadata): Tokenizer {
  return new Tokenizer(buildGgufTokenizer(path, metadata), path);
}

describe("the tokenizer of a GGUF file", () => {
  it("matches Hugging Face's ids for a byte-level vocabulary", async () => {
    const tokenizer = load("llama", await readMetadata("llama"));
    const { texts, ids } = examples("tokens");
    expect(texts.map((text) => tokenizer.encode(text))).toEqual(ids);
    expect(ids.map((list) => tokenizer.decode(list))).toEqual(texts);
  });

  it.each(["spm-llama", "spm-gemma"])("matches SentencePiece's ids: %s", async (name) => {
    const tokenizer = load(name, await readMetadata(name));
    const { texts, ids } = examples(name);
    const ours = texts.map((text) => tokenizer.encode(text, { addSpecialTokens: false }));
    for (const [i, text] of texts.entries()) expect({ text, ids: ours[i] }).toEqual({ text, ids: ids[i] });
  });
});

describe("buildGgufTokenizer", () => {
  it("returns special tokens and the chat template", async () => {
    const files = buildGgufTokenizer("llama", await readMetadata("llama"));
    expect(files.tokenizerConfig).toMatchObject({
      eos_token: "<|im_end|>",
      pad_token: "<|endoftext|>",
      bos_token: null,
    });
    expect(files.chatTemplate).toContain("<|im_start|>");
    expect(files.tokenizerConfig.chat_template).toBe(files.chatTemplate);
  });

  it("returns several chat templates by name", async () => {
    const metadata = new Map(await readMetadata("llama"))
      .set("tokenizer.chat_template", "main")
      .set("tokenizer.chat_templates", ["tool_use"])
      .set("tokenizer.chat_template.tool_use", "tools");
    const { chatTemplate, tokenizerConfig } = buildGgufTokenizer("llama", metadata);
    expect(chatTemplate).toEqual({ default: "main", tool_use: "tools" });
    expect(tokenizerConfig.chat_template).toEqual([
      { name: "default", template: "main" },
      { name: "tool_use", template: "tools" },
    ]);
  });

  it("adds the beginning-of-text token where the file requires it", async () => {
    const metadata = new Map(await readMetadata("spm-llama"));
    const bare = load("spm", metadata).encode("hit", { addSpecialTokens: false });
    expect(load("spm", metadata).encode("hit")).toEqual([1, ...bare]);
    metadata.set("tokenizer.ggml.add_bos_token", false);
    metadata.set("tokenizer.ggml.add_eos_token", true);
    expect(load("spm", metadata).encode("hit")).toEqual([...bare, 2]);
  });

  it("does not split special tokens in a text", async () => {
    const tokenizer = load("llama", await readMetadata("llama"));
    expect(tokenizer.encode("<|im_end|>hi<|im_start|>")).toEqual([2, expect.any(Number), 1]);
  });

  it("splits numbers as Llama 3 does when the file names its pre-tokenizer", async () => {
    const metadata = new Map(await readMetadata("llama"));
    metadata.set("tokenizer.ggml.pre", "llama-bpe");
    const { pre_tokenizer: pre, model } = buildGgufTokenizer("llama", metadata).tokenizerJson;
    expect(JSON.stringify(pre)).toContain("\\\\p{N}{1,3}");
    expect(model).toMatchObject({ ignore_merges: true });
  });

  it.each([
    ["an unknown pre-tokenizer", "tokenizer.ggml.pre", "klingon", "TOKENIZER_UNSUPPORTED", /klingon.*smollm/u],
    ["an unknown kind", "tokenizer.ggml.model", "rwkv", "TOKENIZER_UNSUPPORTED", /rwkv/u],
    ["tokens that are not strings", "tokenizer.ggml.tokens", 7, "FILE_CORRUPT", /tokens/u],
    ["fewer types than tokens", "tokenizer.ggml.token_type", new Int32Array(3), "FILE_CORRUPT", /token_type/u],
    ["merges that are not strings", "tokenizer.ggml.merges", true, "FILE_CORRUPT", /merges/u],
  ])("refuses %s", async (_, key, value, code, message) => {
    const metadata = new Map(await readMetadata("llama")).set(key, value);
    expect(() => buildGgufTokenizer("model.gguf", metadata)).toThrowError(
      expect.objectContaining({ code, message: expect.stringMatching(message) }) as Error,
    );
  });

  it("refuses a file without a tokenizer", () => {
    const metadata = new Map([["general.architecture", "llama"]]);
    expect(() => buildGgufTokenizer("model.gguf", metadata)).toThrowError(/contains no tokenizer/u);
  });
});
