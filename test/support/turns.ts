import type { Turn } from "../../src/rollout/turn.js";

/** A turn of which only what a test speaks of matters. */
export function testTurn(given: Partial<Turn>): Turn {
  return {
    prompt: [1],
    tokens: [2],
    logProbs: (given.tokens ?? [2]).map(() => -1),
    allowed: undefined,
    text: "",
    finishReason: "stop",
    isValid: true,
    attempts: 1,
    penalty: 0,
    reward: 0,
    ...given,
  };
}
