import * as fc from "fast-check";
import { describe, expect, it } from "vitest";

import { pythonTokenizers, readTextFixture } from "../../../test/support/text.js";
import { LlamaGymError } from "../../core/errors.js";
import { Tokenizer } from "./tokenizer.js";

const tokenizerJson = readTextFixture("model/tokenizer.json") as Record<string, unknown>;
const template = "{% for m in messages %}{{ m.role + ': ' + m.content }}{% endfor %}";
const chat = [{ role: "user", content: "Hit?" }];

const deepList = () => Array.from({ length: 20_000 }).reduce((list) => [list], 1);

it("stops replacements that multiply a text", () => {
  const multiply = { type: "Replace", pattern: { String: "a" }, content: "a".repeat(1000) };
  const normalizer = { type: "Sequence", normalizers: [multiply, multiply, multiply] };
  const tokenizer = new Tokenizer({ tokenizerJson: { ...tokenizerJson, normalizer } });
  expect(() => tokenizer.encode("a")).toThrow(expect.objectContaining({ code: "FILE_CORRUPT" }));
});

it("rejects files with deep members", () => {
  for (const name of ["tokenizerConfig", "specialTokensMap", "generationConfig"]) {
    const load = () => new Tokenizer({ tokenizerJson, [name]: { extra: deepList() } });
    expect(load).toThrow(expect.objectContaining({ code: "FILE_CORRUPT" }));
  }
});

it.each([[3], [{ default: template }], [[template]], [[{ name: "default" }]]])(
  "rejects %j as templates",
  (templates) => {
    const load = () => new Tokenizer({ tokenizerJson, tokenizerConfig: { chat_template: templates } });
    expect(load).toThrow(
      expect.objectContaining({ code: "FILE_CORRUPT", message: expect.stringContaining("chat_template") }),
    );
  },
);

describe("a tokenizer that cannot be loaded", () => {
  const model = tokenizerJson.model as Record<string, unknown>;
  const load = (json: unknown, config?: unknown) => () =>
    new Tokenizer({ tokenizerJson: json, tokenizerConfig: config });

  it.each<[string, unknown, string, string]>([
    ["no object", [], "FILE_CORRUPT", "tokenizer.json must hold a JSON object"],
    ["no model", {}, "FILE_CORRUPT", 'there is no "model"'],
    ["no vocabulary", { model: { type: "BPE", merges: [] } }, "FILE_CORRUPT", 'no "vocab"'],
    ["a wrong id", { model: { type: "BPE", vocab: { a: -1 }, merges: [] } }, "FILE_CORRUPT", 'token "a" is -1'],
    ["no merges", { model: { ...model, merges: undefined } }, "FILE_CORRUPT", 'no list of "merges"'],
    ["a merge of unknown tokens", { model: { ...model, merges: [["zz", "q"]] } }, "FILE_CORRUPT", 'merge 0 uses "zz"'],
    ["a broken merge", { model: { ...model, merges: ["ab"] } }, "FILE_CORRUPT", 'merge 0 is "ab"'],
    ["a broken added token", { ...tokenizerJson, added_tokens: [{ id: 1 }] }, "FILE_CORRUPT", "the added token"],
    ["WordPiece", { model: { type: "WordPiece", vocab: {} } }, "TOKENIZER_UNSUPPORTED", '"WordPiece"'],
    [
      "an unknown pre-tokenizer",
      { ...tokenizerJson, pre_tokenizer: { type: "Odd" } },
      "TOKENIZER_UNSUPPORTED",
      '"Odd"',
    ],
    ["an unknown decoder", { ...tokenizerJson, decoder: { type: "CTC" } }, "TOKENIZER_UNSUPPORTED", '"CTC"'],
    ["an unknown normalizer", { ...tokenizerJson, normalizer: { type: "Odd" } }, "TOKENIZER_UNSUPPORTED", '"Odd"'],
    [
      "a pattern that cannot be read",
      { ...tokenizerJson, pre_tokenizer: { type: "Split", pattern: { Regex: "(" }, behavior: "Isolated" } },
      "TOKENIZER_UNSUPPORTED",
      "The pattern",
    ],
    ...["(a+)+$", "(a|aa)*b", "(?:a?)+b", "((a)*)*", "a*a*a*a*b", "(?:\\p{L}+\\s?){2,}!", "(a{1,9999}){1,9999}b"].map(
      (regex): [string, unknown, string, string] => [
        `the hostile pattern ${regex}`,
        { ...tokenizerJson, pre_tokenizer: { type: "Split", pattern: { Regex: regex }, behavior: "Isolated" } },
        "TOKENIZER_UNSUPPORTED",
        "exponential time",
      ],
    ),
    [
      "a pattern of a megabyte",
      { ...tokenizerJson, pre_tokenizer: { type: "Split", pattern: { Regex: "a".repeat(1e6) }, behavior: "Isolated" } },
      "TOKENIZER_UNSUPPORTED",
      "more than 10000 characters",
    ],
    [
      "a deep pre-tokenizer",
      {
        ...tokenizerJson,
        pre_tokenizer: Array.from({ length: 20_000 }).reduce(
          (part) => ({ type: "Sequence", pretokenizers: [part] }),
          {},
        ),
      },
      "FILE_CORRUPT",
      "nested more than 100 levels deep",
    ],
    ["deep members", { ...tokenizerJson, extra: deepList() }, "FILE_CORRUPT", "nested more than 100 levels deep"],
    [
      "a replacement of a megabyte",
      { ...tokenizerJson, normalizer: { type: "Replace", pattern: { String: "a" }, content: "b".repeat(1e6) } },
      "FILE_CORRUPT",
      "inserts more than 1000 characters",
    ],
    [
      "an empty strip",
      { ...tokenizerJson, decoder: { type: "Strip", content: "", start: 1e15, stop: 0 } },
      "FILE_CORRUPT",
      "needs a character",
    ],
    ["an empty Unigram vocabulary", { model: { type: "Unigram", vocab: [] } }, "FILE_CORRUPT", "Unigram"],
  ])("for %s", (_, json, code, message) => {
    expect(load(json)).toThrow(expect.objectContaining({ code, message: expect.stringContaining(message) }));
  });

  it("for invalid messages", () => {
    const tokenizer = load(tokenizerJson, { chat_template: template })();
    const wrong = (messages: unknown) => () => tokenizer.applyChatTemplate(messages as typeof chat);
    expect(wrong([])).toThrow(expect.objectContaining({ code: "TEMPLATE_FAILED" }));
    expect(wrong("Hit?")).toThrow(expect.objectContaining({ code: "INVALID_ARGUMENT" }));
    expect(wrong(["Hit?"])).toThrow(expect.objectContaining({ code: "INVALID_ARGUMENT" }));
    expect(wrong([{ content: "Hit?" }])).toThrow("Message 0 is");
  });
});

/** Paths of all members of a JSON value, without the many entries of vocabularies and merges. */
function memberPaths(value: unknown, path: string[] = []): string[][] {
  if (typeof value !== "object" || value === null) return [path];
  const members = Object.entries(value).slice(0, 12);
  return [path, ...members.flatMap(([key, member]) => memberPaths(member, [...path, key]))];
}

function replaced(value: unknown, path: readonly string[], content: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return content;
  if (Array.isArray(value))
    return value.map((member: unknown, i) => (String(i) === key ? replaced(member, rest, content) : member));
  const object = value as Record<string, unknown>;
  return { ...object, [key]: replaced(object[key], rest, content) };
}

/** What went wrong apart from the library's own errors. */
function failureOf(use: () => void): unknown {
  try {
    use();
    return null;
  } catch (error) {
    return error instanceof LlamaGymError ? null : error;
  }
}

it("reports every wrong member of a tokenizer file, or works without it", () => {
  const bases = Object.values(pythonTokenizers).map(({ tokenizer }) => tokenizer);
  const wrong = fc.constantFrom<unknown>(
    undefined,
    null,
    "",
    "text",
    -1,
    1e9,
    [],
    {},
    [null],
    { type: "Sequence" },
    true,
  );
  const place = fc
    .constantFrom(...bases)
    .chain((base) => fc.tuple(fc.constant(base), fc.constantFrom(...memberPaths(base))));
  fc.assert(
    fc.property(place, wrong, ([base, path], content) => {
      const use = () => {
        const tokenizer = new Tokenizer({ tokenizerJson: replaced(base, path, content) });
        const { ids } = tokenizer.encodeWithOffsets("naïve 🎲 <|im_end|> 12  x");
        tokenizer.decode([...tokenizer.encode("a b"), ...ids]);
      };
      expect(failureOf(use)).toBeNull();
    }),
    { numRuns: 400 },
  );
});

it("reports a wrong configuration, or works without it", () => {
  const config = {
    bos_token: "<|im_start|>",
    eos_token: { content: "<|im_end|>" },
    added_tokens_decoder: { "2": { content: "<|im_end|>", special: true } },
    extra_special_tokens: ["<x>"],
    chat_template: [{ name: "default", template }],
  };
  const anything = fc.oneof(fc.jsonValue(), fc.constantFrom<unknown>(null, "", -1, [], {}));
  fc.assert(
    fc.property(fc.constantFrom(...memberPaths(config)), anything, (path, content) => {
      const use = () => {
        const tokenizer = new Tokenizer({ tokenizerJson, tokenizerConfig: replaced(config, path, content) });
        tokenizer.decode(tokenizer.encode("a<|im_end|>"), { skipSpecialTokens: true });
        tokenizer.applyChatTemplate(chat);
      };
      expect(failureOf(use)).toBeNull();
    }),
  );
});

it("never breaks on a tokenizer file with parts exchanged", () => {
  const kinds = Object.values(pythonTokenizers).map(({ tokenizer }) => tokenizer);
  for (const base of kinds) {
    for (const other of kinds) {
      const mixed = {
        ...base,
        normalizer: other.normalizer,
        pre_tokenizer: other.pre_tokenizer,
        decoder: other.decoder,
      };
      const tokenizer = new Tokenizer({ tokenizerJson: mixed });
      const { ids } = tokenizer.encodeWithOffsets("naïve 🎲 <|im_end|> 12  x");
      expect(typeof tokenizer.decode(ids)).toBe("string");
    }
  }
});
