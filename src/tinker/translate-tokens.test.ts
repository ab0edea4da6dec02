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
  tokens.forEach((_, i) => {
    const state = embedded.decode(translated.slice(0, lengthOf(i + 1)), { skipSpecialTokens: true });
    const own = other.decode(tokens.slice(0, i + 1));
    // A token of the critic that ends later is not part of the state.
    if (!own.includes("\uFFFD") && !state.includes("\uFFFD")) expect(own.startsWith(state)).toBe(true);
  });
  expect(lengthOf(tokens.length)).toBe(translated.length);
});
