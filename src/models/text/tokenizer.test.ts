import * as fc from "fast-check";
import { describe, expect, it } from "vitest";

import { pythonTokenizers, createTestTokenizer, readTextFixture } from "../../../test/support/text.js";
import { Tokenizer } from "./tokenizer.js";

const kinds = Object.keys(pythonTokenizers);
const tokenizers = new Map(kinds.map((kind) => [kind, createTestTokenizer(kind)]));
const tokenizer = (kind: string) => tokenizers.get(kind) ?? createTestTokenizer(kind);
/**
 * Byte-level vocabularies spell every text, and spell it in one way only, unless pieces are
 * dropped.
 */
const lossless = ["gpt2", "llama3", "digits", "merged with previous", "merged with next", "contiguous"];

/** Texts in which letters, spaces, marks, special tokens and halves of characters meet. */
const oddText = fc
  .array(
    fc.oneof(
      fc.constantFrom("<|im_end|>", "<r>", "word", " ", "\n", "\t", "'s", "e\u0301", "🎲", "日", "\u0085", "12", "▁"),
      fc.string({ unit: "binary", maxLength: 6 }),
      fc.string({ maxLength: 8 }),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(""));

describe.each(kinds)("a tokenizer of the kind %s", (kind) => {
  const expected = pythonTokenizers[kind];

  it("matches Python's ids", () => {
    for (const [text, ids, bare] of expected.rows) {
      expect([text, tokenizer(kind).encode(text)]).toEqual([text, ids]);
      expect([text, tokenizer(kind).encode(text, { addSpecialTokens: false })]).toEqual([text, bare]);
    }
    expect(tokenizer(kind).vocabSize).toBe(expected.size);
  });

  it("bounds the number of tokens from below", () => {
    fc.assert(
      fc.property(oddText, (text) => {
        const { length } = tokenizer(kind).encode(text, { addSpecialTokens: false });
        expect(tokenizer(kind).minTokenCount(text)).toBeLessThanOrEqual(length);
      }),
    );
    expect(
      lossless.slice(0, 3).includes(kind) ? tokenizer(kind).minTokenCount("word ".repeat(1e5)) : 1e4,
    ).toBeGreaterThan(1000);
  });

  it("matches Python's text for its ids and random ones", () => {
    for (const [, , bare, , decoded] of expected.rows) expect(tokenizer(kind).decode(bare)).toBe(decoded);
    for (const [ids, decoded, withoutSpecial] of expected.sequences) {
      expect(tokenizer(kind).decode(ids)).toBe(decoded);
      expect(tokenizer(kind).decode(ids, { skipSpecialTokens: true })).toBe(withoutSpecial);
    }
  });

  it("streams any ids to the text of decode", () => {
    const id = fc.nat({ max: expected.size + 3 });
    fc.assert(
      fc.property(fc.array(id, { maxLength: 30 }), fc.boolean(), (ids, skipSpecialTokens) => {
        const stream = tokenizer(kind).createStreamDecoder({ skipSpecialTokens });
        const pieces = ids.map((each) => stream.push(each));
        expect(pieces.join("") + stream.end()).toBe(tokenizer(kind).decode(ids, { skipSpecialTokens }));
      }),
      { numRuns: 60 },
    );
  });

  it("covers the text with its offsets, in order", () => {
    fc.assert(
      fc.property(oddText, (text) => {
        const { ids, offsets } = tokenizer(kind).encodeWithOffsets(text);
        expect(ids).toEqual(tokenizer(kind).encode(text, { addSpecialTokens: false }));
        expect(offsets.length).toBe(ids.length);
        for (const [start, end] of offsets) expect(0 <= start && start <= end && end <= text.length).toBe(true);
      }),
      { numRuns: 60 },
    );
  });
});

describe("byte-level tokenizers", () => {
  it.each(lossless)("are lossless: %s", (kind) => {
    // Whitespace next to <r> and <l> belongs to them by the tokenizer's own rule.
    const text = oddText.map((odd) => odd.replaceAll("<r>", "").replaceAll("<l>", "").replaceAll("çé", ""));
    fc.assert(
      fc.property(text, (whole) => {
        const ids = tokenizer(kind).encode(whole, { addSpecialTokens: false });
        expect(tokenizer(kind).decode(ids)).toBe(whole.replace(/\p{Surrogate}/gu, "\ufffd"));
        expect(Buffer.concat(ids.map((id) => tokenizer(kind).tokenBytes(id))).toString()).toBe(
          whole.replace(/\p{Surrogate}/gu, "\ufffd"),
        );
      }),
    );
  });

  it.each(["gpt2", "llama3", "digits", "metaspace", "gemma"])("match Python's offsets: %s", (kind) => {
    for (const [text, , , offsets] of pythonTokenizers[kind].rows) {
      const position = codePointPositions(text);
      const ours = tokenizer(kind).encodeWithOffsets(text).offsets;
      expect([text, ours.map(([start, end]) => [position[start], position[end]])]).toEqual([text, offsets]);
    }
  });

  it("buffer a character's bytes until it is complete", () => {
    const gpt2 = tokenizer("gpt2");
    const ids = gpt2.encode("a🎲");
    const stream = gpt2.createStreamDecoder();
    const pieces = ids.map((id) => stream.push(id));
    expect(pieces.at(-1)?.endsWith("🎲")).toBe(true);
    expect(pieces.slice(1, -1).every((piece) => piece === "")).toBe(true);
    expect(stream.end()).toBe("");
  });
});

describe("the tokenizer of the model fixtures", () => {
  interface Expected {
    vocab_size: number;
    texts: { text: string; ids: number[]; decoded_skip_special: string }[];
    chats: {
      messages: { role: string; content: string }[];
      add_generation_prompt: boolean;
      text: string;
      ids: number[];
    }[];
  }
  const expected = readTextFixture("model-expected.json") as Expected;
  const model = new Tokenizer({
    tokenizerJson: readTextFixture("model/tokenizer.json"),
    tokenizerConfig: readTextFixture("model/tokenizer_config.json"),
    generationConfig: { eos_token_id: [2, 0] },
  });

  it("encodes and decodes like Transformers", () => {
    expect(model.vocabSize).toBe(expected.vocab_size);
    for (const { text, ids, decoded_skip_special } of expected.texts) {
      expect(model.encode(text)).toEqual(ids);
      expect(model.decode(ids, { skipSpecialTokens: true })).toBe(decoded_skip_special);
    }
    for (const { messages, add_generation_prompt, text, ids } of expected.chats) {
      const chat = model.encodeChat(messages, { addGenerationPrompt: add_generation_prompt });
      expect([chat.text, chat.ids]).toEqual([text, ids]);
    }
  });

  it("returns its special tokens", () => {
    expect(model.eosToken).toBe("<|im_end|>");
    expect([model.eosTokenId, model.padTokenId, model.bosTokenId]).toEqual([2, 0, undefined]);
    expect(model.eosTokenIds).toEqual([2, 0]);
    expect(model.specialTokenIds).toEqual([0, 1, 2]);
    expect(model.isSpecial(1)).toBe(true);
    expect(model.tokenToId("<|im_start|>")).toBe(1);
    expect(model.idToToken(1)).toBe("<|im_start|>");
    expect(model.idToToken(999)).toBeUndefined();
    expect(model.tokenBytes(999)).toEqual(new Uint8Array());
  });

  it("rejects invalid ids", () => {
    expect(() => model.decode([-1])).toThrow(expect.objectContaining({ code: "INVALID_ARGUMENT" }));
    expect(() => model.decode([1.5])).toThrow(expect.objectContaining({ code: "INVALID_ARGUMENT" }));
  });
});

describe("a continuing text", () => {
  it.each(kinds)("is encoded as within the whole text after a special token: %s", (kind) => {
    const end = kind === "unigram" ? "</s>" : (tokenizer(kind).idToToken(2) ?? "");
    const endId = tokenizer(kind).tokenToId(end);
    for (const rest of ["\nnext", " next", "next one", `\n${end}more`, ""]) {
      const whole = tokenizer(kind).encode(end + rest, { addSpecialTokens: false });
      expect([endId, ...tokenizer(kind).encodeContinuation(rest, endId)]).toEqual(whole);
    }
  });

  it("gets no leading space", () => {
    const llama2 = tokenizer("llama2");
    const [previous] = llama2.encode("a", { addSpecialTokens: false }).slice(-1);
    expect(llama2.decodeContinuation(llama2.encodeContinuation("bc", previous))).toBe("bc");
    expect(llama2.decodeContinuation(llama2.encode("bc", { addSpecialTokens: false }))).toBe(" bc");
  });

  it("loses whitespace that belongs to the preceding token", () => {
    const llama2 = tokenizer("llama2");
    const end = llama2.tokenToId("<|end|>");
    const [, ...rest] = llama2.encode("<|end|>\nnext", { addSpecialTokens: false });
    expect(llama2.encodeContinuation("\nnext", end)).toEqual(rest);
  });
});

function codePointPositions(text: string): number[] {
  const positions: number[] = [];
  let count = 0;
  for (const character of text) {
    for (let unit = 0; unit < character.length; unit++) positions.push(count);
    count++;
  }
  return [...positions, count];
}
