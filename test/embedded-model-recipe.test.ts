import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { trainBytePairs } from "../recipes/embedded-model/byte-pairs.js";
import { toMessages } from "../recipes/embedded-model/corpus/conversation.js";
import { Corpus } from "../recipes/embedded-model/corpus/corpus.js";
import { shortName } from "../recipes/embedded-model/corpus/quantities.js";
import { drawRule } from "../recipes/embedded-model/corpus/rules.js";
import { drawStatement } from "../recipes/embedded-model/corpus/statements.js";
import { trainTokenizer } from "../recipes/embedded-model/tokenizer.js";
import { Conversation, RandomStream, supportsSystemRole, Tokenizer } from "../src/index.js";

const corpus = new Corpus();

describe("the embedded model's corpus", () => {
  it("is the same for a seed", () => {
    const drawn = (seed: number) => {
      const random = new RandomStream(seed);
      return Array.from({ length: 50 }, (_, i) => corpus.draw(random, i / 50));
    };
    expect(drawn(3)).toEqual(drawn(3));
    expect(drawn(4)).not.toEqual(drawn(3));
  });

  it("makes statements that match their states", () => {
    const random = new RandomStream(1);
    let trueCount = 0;
    let count = 0;
    while (count < 2000) {
      const { quantities = [] } = corpus.drawScenario(random).observe(random);
      if (quantities.length === 0) continue;
      const { signs, holds } = drawStatement(quantities, random);
      // The statement in signs, with numbers for names: "3 pole angle + angular velocity > 0" is 3
      // * 0.1 + -0.2 > 0.
      const named = [...quantities].sort((a, b) => b.name.length - a.name.length);
      const [left, sign, right] = named
        .reduce((text, quantity) => text.replaceAll(shortName(quantity), `(${quantity.value})`), signs)
        .split(/ ([<>]) /);
      const sum = (text: string) =>
        [...text.matchAll(/([+-] )?(\d+ )?\(?([-+]?[\d.]+)\)?/g)].reduce(
          (total, [, minus, factor, value]) => total + (minus === "- " ? -1 : 1) * Number(factor ?? 1) * Number(value),
          0,
        );
      const difference = sum(left) - sum(right);
      const isTrue = sign === ">" ? difference > 1e-9 : difference < -1e-9;
      expect({ signs, holds: holds(quantities) }).toEqual({ signs, holds: isTrue });
      trueCount += holds(quantities) ? 1 : 0;
      count++;
    }
    expect(trueCount / count).toBeGreaterThan(0.45);
    expect(trueCount / count).toBeLessThan(0.55);
  });

  it("gives rules whose actions do not depend on what is shown", () => {
    const random = new RandomStream(2);
    const high = { hit: 0, stay: 0 };
    let count = 0;
    while (count < 1500) {
      const game = corpus.drawScenario(random);
      if (game.id !== "Blackjack-v1") continue;
      const moment = game.observe(random);
      const total = moment.quantities?.find(({ name }) => name === "your total")?.value ?? 0;
      const rule = total >= 17 && moment.validCompletions.join() === "stay,hit" ? drawRule(moment, random) : undefined;
      if (rule === undefined) continue;
      high[rule.answer(moment) as "hit" | "stay"]++;
      count++;
    }
    // Four standard errors of a fair coin.
    expect(Math.abs(high.hit / count - 0.5)).toBeLessThan(4 * Math.sqrt(0.25 / count));
  });
});

describe("the embedded model's tokenizer", () => {
  const random = new RandomStream(5);
  const texts = Array.from({ length: 2000 }, () => corpus.draw(random))
    .flat()
    .flatMap((conversation) => toMessages(conversation).map(({ content }) => content as string));
  const tokenizer = new Tokenizer(trainTokenizer(texts, { vocabSize: 900, merges: 120 }));

  it("keeps digits, signs and points apart and common words whole", () => {
    const pieces = (text: string) => tokenizer.encode(text).map((id) => tokenizer.decodeContinuation([id]));
    expect(pieces("Pole angle: +0.042 rad, velocity: -1.5")).toEqual([
      "Pole",
      " angle",
      ":",
      " +",
      "0",
      ".",
      "0",
      "4",
      "2",
      " rad",
      ",",
      " velocity",
      ":",
      " -",
      "1",
      ".",
      "5",
    ]);
  });

  it("takes any text and gives it back", () => {
    expect(tokenizer.vocabSize).toBe(900);
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 40 }), (text) => {
        fc.pre(!text.includes("<|"));
        expect(tokenizer.decode(tokenizer.encode(text))).toBe(text.replace(/\p{Surrogate}/gu, "\ufffd"));
      }),
    );
  });

  it("writes a conversation so that it grows at its end", () => {
    expect(supportsSystemRole(tokenizer)).toBe(true);
    for (const reply of ["yes", " yes \n", "<think>\nwhy\n</think>\n\nyes"]) {
      const conversation = new Conversation(tokenizer, { messages: [{ role: "user", content: "one" }] });
      const completion = tokenizer.encode(reply, { addSpecialTokens: false });
      const tokens = [...conversation.promptIds(), ...completion];
      conversation.appendCompletion(completion);
      conversation.add({ role: "user", content: "two" }, { role: "user", content: "three" });
      expect(conversation.promptIds().slice(0, tokens.length)).toEqual(tokens);
    }
    const messages = [
      { role: "user", content: "hit or stay?" },
      { role: "assistant", content: "stay" },
    ];
    const { assistantSpans, ids } = tokenizer.encodeChat(messages);
    expect(assistantSpans.map(([start, end]) => tokenizer.decode(ids.slice(start, end)))).toEqual(["stay<|end|>"]);
  });

  it("merges the pairs that Sennrich et al. merge in their example", () => {
    const counts = new Map(Object.entries({ low: 5, lower: 2, newest: 6, widest: 3 }));
    expect(trainBytePairs(counts, 4).symbols).toEqual(["es", "est", "lo", "low"]);
  });
});
