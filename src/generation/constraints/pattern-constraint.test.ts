import { describe, expect, it } from "vitest";
import {
  createPatternConstraint,
  cursorAfter,
  sampleRandomTokens,
  detokenize,
  createVocabulary,
} from "../../../test/support/constrained-sampling.js";
import { pythonTokenizers, createTestTokenizer } from "../../../test/support/text.js";
import { tokenProbabilities } from "../../../test/parity/token-probabilities.js";
import { sampleToken } from "../../engine/runtime/kernels/sampling.js";
import { RandomStream } from "../../core/random/random-stream.js";
import { Tokenizer } from "../../models/text/index.js";
import type { TextPattern } from "./output-constraint.js";
import type { PatternConstraint } from "./pattern-constraint.js";
import { Vocabulary } from "./vocabulary.js";

const PLAIN = { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 };

const regexes = [
  "yes|no|yes, please",
  "Action: (hit|stay)( [a-z]{1,4})?",
  "\\d{1,3}(\\.\\d+)?",
  "[^\\s]{1,3}",
  "( |the|a){0,4}!",
  " {2}x",
  ".*",
  "é?[日🎲]{1,2}( é)?",
  "\\w+ \\w+\\n?",
];

/** The regular expressions that the tokenizer without byte tokens can write. */
const writable = ["yes|no|yes, please", "[^\\s]{1,3}", ".*", "\\w+ \\w+\\n?"];

describe.each(Object.keys(pythonTokenizers))("PatternConstraint with a %s tokenizer", (kind) => {
  const tokenizer = createTestTokenizer(kind);
  const vocabulary = createVocabulary(tokenizer);

  it("allows only matches within the maximum length, at the start of a text and after a prompt", () => {
    const random = new RandomStream(3);
    const prompt = tokenizer.encode("go on", { addSpecialTokens: false });
    for (const regex of kind === "unigram" ? writable : regexes) {
      for (const start of ["start", "continuation"] as const) {
        const constraint = createPatternConstraint(vocabulary, { regex }, { start, maxNewTokens: 24 });
        for (let i = 0; i < 20; i++) {
          const tokens = sampleRandomTokens(constraint, random);
          const text = detokenize(tokenizer, tokens, start === "continuation" ? prompt.at(-1) : undefined);
          expect([tokens, text]).toEqual([tokens, expect.stringMatching(new RegExp(`^(?:${regex})$`, "u"))]);
          expect(tokens.length).toBeLessThanOrEqual(24);
          expect(cursorAfter(constraint, tokens).isComplete).toBe(true);
        }
      }
    }
  });
});

it("leaves tokens of a megabyte out", () => {
  const { tokenizer: json } = pythonTokenizers.gpt2;
  const model = json.model as { vocab: Record<string, number> };
  const id = Math.max(...Object.values(model.vocab), ...createTestTokenizer("gpt2").specialTokenIds) + 1;
  const vocab = { ...model.vocab, ["a".repeat(1_000_000)]: id };
  const tokenizer = new Tokenizer({ tokenizerJson: { ...json, model: { ...model, vocab } } });
  const vocabulary = new Vocabulary(tokenizer, { vocabSize: id + 1, endToken: undefined, endTokens: [] });
  const { allowedTokens } = createPatternConstraint(vocabulary, { regex: "a{3}b" }).cursor();
  expect(allowedTokens.length).toBeGreaterThan(0);
  expect(allowedTokens).not.toContain(id);
});

describe("PatternConstraint", () => {
  const tokenizer = createTestTokenizer("gpt2");
  const vocabulary = createVocabulary(tokenizer);
  const end = tokenizer.eosTokenId!;
  const encode = (text: string) => tokenizer.encode(text, { addSpecialTokens: false });
  const allowedTexts = (constraint: PatternConstraint, tokens: readonly number[]) =>
    Array.from(cursorAfter(constraint, tokens).allowedTokens, (token) => tokenizer.decode([token])).sort();

  it("allows exactly the tokens after which the text can be completed to a match", () => {
    const regex = "[at][hi ]{2} ?[d-f]{2}";
    const constraint = createPatternConstraint(vocabulary, { regex });
    // A text can be completed to a match if a match starts with it.
    const combine = (...parts: readonly (readonly string[])[]): readonly string[] =>
      parts.reduce((texts, part) => texts.flatMap((text) => part.map((next) => text + next)));
    const [middle, letters] = [
      ["h", "i", " "],
      ["d", "e", "f"],
    ];
    const matches = combine(["a", "t"], middle, middle, ["", " "], letters, letters);
    for (const text of ["", "t", "th", "thi", "a  ", "a i ", "thi d"]) {
      const tokens = encode(text);
      const expected = vocabulary.tokenBytes.trie.tokens.filter((token) => {
        const longer = tokenizer.decode([...tokens, token]);
        return matches.some((match) => match.startsWith(longer));
      });
      expect([...cursorAfter(constraint, tokens).allowedTokens]).toEqual([...expected].sort((a, b) => a - b));
    }
  });

  const call = {
    type: "object",
    properties: { name: { enum: ["lookup", "look", "refund"] }, order: { type: "integer", minimum: 1, maximum: 9999 } },
    required: ["name", "order"],
  };

  it.each<[TextPattern, string[]]>([
    [{ jsonSchema: call }, ['{"name": "', '", "order": ']],
    [{ regex: "Action: (hit|stay) now, please[.!]" }, ["Action: ", "hit now, please"]],
    [{ regex: "é日本語🎲 ends(é日本語🎲|z)" }, ["é日本語🎲 ends"]],
  ])("has the tokenizer's tokens alone where %j forces text", (pattern, forced) => {
    const constraint = createPatternConstraint(vocabulary, pattern);
    const random = new RandomStream(4);
    for (let i = 0; i < 50; i++) {
      const tokens = sampleRandomTokens(constraint, random);
      const choices = tokens.map((_, at) => cursorAfter(constraint, tokens.slice(0, at)).allowedTokens.length);
      const text = tokenizer.decode(tokens);
      // The tokens inside of a forced text are the only ones allowed.
      for (const part of forced) {
        const at = text.indexOf(part);
        if (at < 0) continue;
        const ends = tokens.map((_, j) => tokenizer.decode(tokens.slice(0, j + 1)).length);
        const inside = tokens.flatMap((_, j) =>
          (ends[j - 1] ?? 0) > at && ends[j] < at + part.length && !tokenizer.decode(tokens.slice(0, j)).includes("�")
            ? [choices[j]]
            : [],
        );
        expect([text, inside]).toEqual([text, inside.map(() => 1)]);
      }
    }
  });

  it.each<[TextPattern, string[]]>([
    [{ jsonSchema: call }, ['{"name": "look", "order": 7}', '{"name": "lookup", "order": 1204}']],
    [{ regex: "north|northeast|no{1,3}" }, ["north", "northeast", "noo"]],
    [{ regex: "(quick|quiet)(er)?" }, ["quick", "quieter"]],
    [{ regex: "é日本語🎲(é日本語🎲|z)?" }, ["é日本語🎲é日本語🎲", "é日本語🎲z"]],
  ])("tokenizes texts of %j as tokens that it allows", (pattern, texts) => {
    const constraint = createPatternConstraint(vocabulary, pattern);
    for (const text of texts) {
      const tokens = constraint.encode(text)!;
      tokens.forEach((token, at) =>
        expect(cursorAfter(constraint, tokens.slice(0, at)).allowedTokens).toContain(token),
      );
      expect(cursorAfter(constraint, tokens).isComplete).toBe(true);
      expect(tokenizer.decode(tokens, { skipSpecialTokens: true })).toBe(text);
    }
    expect(constraint.encode(`${texts[0]}?`)).toBeUndefined();
    expect(constraint.encode(texts[0].slice(0, -1))).toBeUndefined();
  });

  it("allows the end token after a match that could continue", () => {
    const constraint = createPatternConstraint(vocabulary, { regex: "ab?c?" });
    const [a, b, c] = ["a", "b", "c"].map((text) => encode(text)[0]);
    expect([...cursorAfter(constraint, [a]).allowedTokens]).toContain(end);
    expect([...cursorAfter(constraint, [a, b]).allowedTokens].sort((x, y) => x - y)).toEqual(
      [end, c].sort((x, y) => x - y),
    );
    expect([...cursorAfter(constraint, []).allowedTokens]).not.toContain(end);
    for (const over of [
      [a, end],
      [a, c],
      [a, b, c],
    ]) {
      expect([...cursorAfter(constraint, over).allowedTokens]).toEqual([]);
      expect(cursorAfter(constraint, over).isComplete).toBe(true);
    }
    for (const none of [[end], [b], [a, a], [a, c, end], [a, end, end], [tokenizer.bosTokenId!]]) {
      expect([...cursorAfter(constraint, none).allowedTokens]).toEqual([]);
      expect(cursorAfter(constraint, none).isComplete).toBe(false);
    }
    expect(cursorAfter(constraint, [a]).isComplete).toBe(false);
  });

  it("allows tokens after which the completion can still end within its maximum length", () => {
    const at = (maxNewTokens: number) => createPatternConstraint(vocabulary, { regex: "x*\\(x*\\)" }, { maxNewTokens });
    expect(allowedTexts(at(2), [])).toEqual(["("]);
    expect(allowedTexts(at(3), [])).toEqual(["(", "x"]);
    expect(allowedTexts(at(3), encode("x"))).toEqual(["("]);
    expect(allowedTexts(at(3), encode("("))).toEqual([")", "x"]);
    expect(() => at(1)).toThrowError(/needs up to 2 tokens, but the completion is limited to 1/);
  });

  /** Random logits, independent of the context. */
  const logitsOf = (random: RandomStream) => Float32Array.from({ length: vocabulary.size }, () => random.normal(0, 3));

  /** Samples a token among those allowed. */
  const draw = (logits: Float32Array, random: RandomStream, allowed: Int32Array) =>
    sampleToken({ logits, probabilities: new Float32Array() }, PLAIN, [], random.random(), allowed);

  it.each<[TextPattern, (text: string) => boolean]>([
    [
      { regex: "(left|right|up|down)( \\d{1,2})?[.!]?" },
      (text) => /^(left|right|up|down)( \d{1,2})?[.!]?$/u.test(text),
    ],
    [
      {
        jsonSchema: {
          type: "object",
          properties: { action: { enum: ["hit", "stay"] }, why: { type: "string", maxLength: 6 } },
          required: ["action"],
        },
      },
      (text) => {
        const { action, why = "" } = JSON.parse(text) as { action: string; why?: string };
        return ["hit", "stay"].includes(action) && typeof why === "string" && Array.from(why).length <= 6;
      },
    ],
  ])("samples 10,000 completions, all valid, for %j", (pattern, isValid) => {
    const random = new RandomStream(5);
    const models = Array.from({ length: 40 }, () => logitsOf(random));
    const constraint = createPatternConstraint(vocabulary, pattern, { maxNewTokens: 40 });
    const invalid: string[] = [];
    for (let i = 0; i < 10_000; i++) {
      const tokens: number[] = [];
      const cursor = constraint.cursor();
      while (cursor.allowedTokens.length > 0) {
        const { token } = draw(models[random.integers(0, 40)], random, cursor.allowedTokens);
        tokens.push(token);
        cursor.advance(token);
      }
      const text = tokenizer.decode(tokens, { skipSpecialTokens: true });
      if (!cursor.isComplete || !isValid(text)) invalid.push(text);
    }
    expect(invalid).toEqual([]);
  });

  it("gives tokens the log-probability log(p / sum of p over the allowed tokens)", () => {
    const constraint = createPatternConstraint(vocabulary, { regex: "[a-z ]{1,20}\\." });
    const random = new RandomStream(6);
    const tokens: number[] = [];
    const cursor = constraint.cursor();
    while (!cursor.isComplete) {
      const allowed = cursor.allowedTokens;
      const logits = logitsOf(random);
      const { token, logProb } = draw(logits, random, allowed);
      const mass = allowed.reduce((sum, id) => sum + Math.exp(logits[id]), 0);
      expect(logProb).toBeCloseTo(logits[token] - Math.log(mass), 5);
      tokens.push(token);
      cursor.advance(token);
    }
    expect(tokens.length).toBeGreaterThan(2);
  });

  it.each<[TextPattern, number | undefined]>([
    [{ regex: "(yes|no)!?|maybe" }, undefined],
    [{ regex: "a{1,4}b?" }, 4],
    [{ jsonSchema: { enum: ["the", "then", 3, null] } }, undefined],
    [{ jsonSchema: { type: "array", items: { type: "boolean" }, maxItems: 1 } }, 6],
  ])("gives all completions of %j within %s tokens probabilities that sum to one", (pattern, maxNewTokens) => {
    const constraint = createPatternConstraint(vocabulary, pattern, { maxNewTokens });
    const random = new RandomStream(9);
    const completions: (readonly number[])[] = [];
    const total = (tokens: readonly number[]): number => {
      const allowed = cursorAfter(constraint, tokens).allowedTokens;
      if (allowed.length === 0) {
        completions.push(tokens);
        return 1;
      }
      const probabilities = tokenProbabilities(
        { logits: logitsOf(random), probabilities: new Float32Array() },
        PLAIN,
        [],
        allowed,
      );
      return allowed.reduce((sum, token) => sum + probabilities[token] * total([...tokens, token]), 0);
    };
    expect(total([])).toBeCloseTo(1, 5);
    expect(completions.length).toBeGreaterThanOrEqual(3);
    expect(completions.filter((tokens) => !cursorAfter(constraint, tokens).isComplete)).toEqual([]);
  });

  it("never leads to a dead end, also without byte tokens", () => {
    const words = { a: 0, b: 1, ab: 2, "▁c": 3, "</s>": 4, é: 5, abba: 6 };
    const json = {
      model: { type: "BPE", vocab: words, merges: [] },
      decoder: { type: "Metaspace", replacement: "▁", prepend_scheme: "always" },
      added_tokens: [
        { id: 4, content: "</s>", special: true, normalized: false, lstrip: false, rstrip: false, single_word: false },
      ],
    };
    const tokenizer = new Tokenizer({ tokenizerJson: json, tokenizerConfig: { eos_token: "</s>" } }, "words");
    const own = createVocabulary(tokenizer);
    const allowed = (regex: string, tokens: number[], options = {}) => [
      ...cursorAfter(createPatternConstraint(own, { regex }, { start: "continuation", ...options }), tokens)
        .allowedTokens,
    ];
    // No token contains a "d", so "ad" and "bd" cannot be completed.
    expect(allowed("ad|ab|bd", [])).toEqual([0, 2]);
    expect(allowed("(a|é)+", [])).toEqual([0, 5]);
    expect(allowed("abba|b{3}|éé", [], { maxNewTokens: 3 })).toEqual([1, 2, 5, 6]);
    expect(allowed("abba|b{3}|éé", [], { maxNewTokens: 1 })).toEqual([6]);
    expect(() => allowed("d|bd", [])).toThrowError(/matches no text that this model's tokens can write/);
    // At the start of a text the token drops its space.
    expect(allowed("cc?", [], { start: "start" })).toEqual([3]);
    expect(() => allowed("cc", [], { start: "start" })).toThrowError(/no text that this model's tokens can write/);
    expect(() => allowed("c", [])).toThrowError(/no text that this model's tokens can write/);
  });

  it("requires an end token if a match is a prefix of another", () => {
    const endless = new Vocabulary(tokenizer, { vocabSize: tokenizer.vocabSize, endToken: undefined, endTokens: [] });
    expect(() => createPatternConstraint(endless, { regex: "ab?" })).toThrowError(
      /matches texts that begin with another match, and this model has no end token/,
    );
    const constraint = createPatternConstraint(endless, { regex: "a(b|c)" });
    expect(cursorAfter(constraint, encode("a").concat(encode("b"))).isComplete).toBe(true);
  });

  it("rejects a tokenizer that inserts text between tokens", () => {
    const json = { model: { type: "BPE", vocab: { a: 0, b: 1 }, merges: [] } };
    const spaced = new Tokenizer({ tokenizerJson: json }, "words");
    expect(() => createVocabulary(spaced)).toThrowError(
      expect.objectContaining({ code: "TOKENIZER_UNSUPPORTED", message: expect.stringContaining("words") as string }),
    );
  });
});
