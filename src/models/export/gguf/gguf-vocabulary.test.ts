import { expect, it } from "vitest";
import { Tokenizer } from "../../text/tokenizer.js";
import { describeGgufVocabulary } from "./gguf-vocabulary.js";

const NAMED = ["<pad>", "<eos>", "<bos>", "<unk>"];
const SPACES = ["\n", "\n\n", "▁▁", "▁▁▁"];
const BYTES = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
const PIECES = ["▁", "h", "i", "t", "hi", "hit", "▁hit"];
const MERGES = [
  ["\n", "\n"],
  ["▁▁", "▁"],
  ["▁", "▁▁"],
  ["▁", "▁"],
  ["h", "i"],
  ["hi", "t"],
  ["▁", "hit"],
];

/**
 * A small tokenizer.json of Gemma 3's form: runs of white space are tokens that are matched before
 * the text is normalized.
 */
function makeGemmaTokenizer(): Tokenizer {
  const tokens = [...NAMED, ...SPACES, ...BYTES, ...PIECES];
  const add = (content: string, id: number, special: boolean) => ({ id, content, special, normalized: false });
  return new Tokenizer({
    tokenizerJson: {
      added_tokens: [
        ...NAMED.map((content, i) => add(content, i, true)),
        ...SPACES.map((content, i) => add(content, NAMED.length + i, false)),
        add("<image_soft_token>", tokens.length, true),
      ],
      normalizer: { type: "Replace", pattern: { String: " " }, content: "▁" },
      pre_tokenizer: { type: "Split", pattern: { String: " " }, behavior: "MergedWithPrevious", invert: false },
      post_processor: null,
      decoder: {
        type: "Sequence",
        decoders: [
          { type: "Replace", pattern: { String: "▁" }, content: " " },
          { type: "ByteFallback" },
          { type: "Fuse" },
        ],
      },
      model: {
        type: "BPE",
        unk_token: "<unk>",
        fuse_unk: true,
        byte_fallback: true,
        vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
        merges: MERGES,
      },
    },
    tokenizerConfig: {
      bos_token: "<bos>",
      eos_token: "<eos>",
      unk_token: "<unk>",
      pad_token: "<pad>",
      add_bos_token: true,
    },
  });
}

it("describes a tokenizer of Gemma 3's form, without the image token that has no row", () => {
  const tokenizer = makeGemmaTokenizer();
  const warnings: string[] = [];
  const fields = describeGgufVocabulary({
    tokenizer,
    vocabSize: tokenizer.vocabSize - 1,
    eosTokenIds: [],
    architecture: "gemma3",
    onWarning: (message) => warnings.push(message),
  });
  expect(fields["tokenizer.ggml.model"]).toBe("llama");
  expect(fields["tokenizer.ggml.add_space_prefix"]).toBe(false);
  expect(warnings).toEqual(["The token <image_soft_token> is left out: the model's embedding has no row for it."]);
});
