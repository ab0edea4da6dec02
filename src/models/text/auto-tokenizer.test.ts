import { afterEach, expect, it, vi } from "vitest";
import { AutoTokenizer } from "./auto-tokenizer.js";

afterEach(() => void vi.unstubAllGlobals());

it("loads the embedded tokenizer without a network", async () => {
  vi.stubGlobal("fetch", () => {
    throw new Error("no network");
  });
  const tokenizer = await AutoTokenizer.fromPretrained("embedded");
  expect(tokenizer.decode(tokenizer.encode("hit or stay?"))).toBe("hit or stay?");
  expect(tokenizer.chatTemplates.size).toBeGreaterThan(0);
});
