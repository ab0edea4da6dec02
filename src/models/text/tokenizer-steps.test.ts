import * as fc from "fast-check";
import { describe, expect, it } from "vitest";

import { createTestTokenizer, pythonTokenizers, chatTemplates } from "../../../test/support/text.js";
import { runStepsWithPauses } from "../../core/steps.js";
import { WINDOW_LENGTH } from "./tokenization/text-windows.js";
import { Tokenizer } from "./tokenizer.js";

/** Parts of texts that tokenizers treat differently. */
const PARTS = [
  "word",
  " ",
  "  ",
  "\n",
  "é",
  "e\u0301",
  "中文",
  "😀",
  "12345",
  "!?",
  "<|im_end|>",
  "<s>",
  "<",
  "▁",
  "\t",
];

const longTexts = fc
  .array(fc.tuple(fc.constantFrom(...PARTS), fc.constantFrom(1, 1, 2, 3, 20, 2000)), { minLength: 1, maxLength: 40 })
  .map((parts) => parts.map(([part, times]) => part.repeat(times)).join(""));

const LOSSLESS = ["gpt2", "llama3"];

const kinds = Object.keys(pythonTokenizers);

describe.each(kinds)("a tokenizer of the kind %s", (kind) => {
  const tokenizer = createTestTokenizer(kind, chatTemplates.chatml);

  it("gives the same ids in slices as at once", async () => {
    await fc.assert(
      fc.asyncProperty(longTexts, async (text) => {
        expect(await runStepsWithPauses(tokenizer.encodeSteps(text))).toEqual(tokenizer.encode(text));
        const rendered = tokenizer.renderChat([{ role: "user", content: text }]);
        expect(await runStepsWithPauses(tokenizer.renderChatSteps([{ role: "user", content: text }]))).toEqual(
          rendered,
        );
        expect(await runStepsWithPauses(tokenizer.encodeContinuationSteps(rendered, 1))).toEqual(
          tokenizer.encodeContinuation(rendered, 1),
        );
      }),
      { numRuns: 4 },
    );
  });

  it("encodes a long text as the texts between its lines", () => {
    const lines = Array.from(
      { length: 300 },
      (_, i) => `Line ${i * 7919}: ${"some words, é and 😀; ".repeat((i % 13) + 5)}\n`,
    );
    const text = lines.join("");
    expect(text.length).toBeGreaterThan(2 * WINDOW_LENGTH);
    // A short text is encoded in one piece, and the parts of a line do not depend on those after
    // the next.
    const whole = tokenizer.encode(text, { addSpecialTokens: false });
    const half = lines.slice(0, 150).join("");
    const start = tokenizer.encode(half, { addSpecialTokens: false });
    const common = start.findIndex((id, i) => id !== whole[i]);
    expect(common === -1 ? start.length : common).toBeGreaterThan(start.length - 10);
  });

  it.each(["word", "a", "😀", " ", "\n", "<", "<|im_end|>", "中", "1", "!"])(
    "encodes a hundred thousand of %j",
    (part) => {
      const text = part.repeat(Math.ceil(100_000 / part.length));
      const ids = tokenizer.encode(text, { addSpecialTokens: false });
      const short = part.repeat(Math.ceil(3_000 / part.length));
      const ratio = tokenizer.encode(short, { addSpecialTokens: false }).length / short.length;
      expect(ids.length / text.length).toBeLessThanOrEqual(ratio * 1.1 + 0.01);
      expect(LOSSLESS.includes(kind) ? tokenizer.decode(ids) : text).toBe(text);
    },
  );

  it("ends early beyond the requested number of tokens", async () => {
    const text = "some words ".repeat(20_000);
    const ids = await runStepsWithPauses(tokenizer.encodeSteps(text, { addSpecialTokens: false }, 1000));
    expect(ids.length).toBeGreaterThan(1000);
    expect(ids.length).toBeLessThan(30_000);
    expect(ids).toEqual(tokenizer.encode(text, { addSpecialTokens: false }).slice(0, ids.length));
  });
});

describe("a long text", () => {
  it("is encoded between other work", async () => {
    const tokenizer = createTestTokenizer("llama3");
    const steps = tokenizer.encodeSteps("x".repeat(4_000_000));
    let isDone = false;
    let numTurns = 0;
    const count = () => {
      numTurns++;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    await runStepsWithPauses(steps);
    isDone = true;
    expect(numTurns).toBeGreaterThan(3);
  });

  it("is normalized as at once, wherever it is cut", () => {
    const { tokenizer: json } = pythonTokenizers.unigram;
    const forms = ["NFC", "NFD", "NFKC", "NFKD"] as const;
    for (const form of forms) {
      const tokenizer = new Tokenizer({ tokenizerJson: { ...json, normalizer: { type: form } } }, form);
      for (const part of ["e\u0301\u0323", "가각", "\u1112\u1161\u11ab", "ｶﾞ", "ﬁ", "ﷺ", "a"]) {
        const text = part.repeat(Math.ceil((3 * WINDOW_LENGTH) / part.length));
        expect(tokenizer.encode(text)).toEqual(tokenizer.encode(text.normalize(form)));
      }
    }
  });
});
