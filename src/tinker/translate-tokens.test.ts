import { expect, it } from "vitest";
import { AutoTokenizer } from "../models/text/index.js";
import { translateTokens } from "./translate-tokens.js";

const embedded = await AutoTokenizer.fromPretrained("embedded");
const other = await AutoTokenizer.fromPretrained("test/fixtures/text/model");

it("keeps the tokens of an equal vocabulary", async () => {
  const tokens = embedded.encode("Your total is 12.");
  const copy = await AutoTokenizer.fromPretrained("embedded");
  const translated = translateTokens(tokens, embedded, copy);
  expect(translated.tokens).toEqual(tokens);
  expect(translated.lengthOf(3)).toBe(3);
});

it("counts the tokens within the text of a state", () => {
  const text = "Your current total is 12. The dealer shows 9 \u{1F0A1}é.";
  const tokens = other.encode(text);
  const { tokens: translated, lengthOf } = translateTokens(tokens, other, embedded);
  expect(embedded.decode(translated, { skipSpecialTokens: true })).toBe(text);
  const states = tokens.map((_, i) => ({
    own: other.decode(tokens.slice(0, i + 1)),
    translated: embedded.decode(translated.slice(0, lengthOf(i + 1)), { skipSpecialTokens: true }),
  }));
  // A token that ends later is not part of a state; a part of a character has no text.
  const later = states.filter((state) => !`${state.own}${state.translated}`.includes("\uFFFD"));
  expect(later.filter((state) => !state.own.startsWith(state.translated))).toEqual([]);
  expect(lengthOf(tokens.length)).toBe(translated.length);
});
