import type { Turn } from "../../src/rl/rollout/trajectory.js";

/** A turn of which only what a test speaks of matters. */
export function makeTurn(overrides: Partial<Turn>): Turn {
  return {
    prompt: [1],
    tokens: [2],
    logProbs: (overrides.tokens ?? [2]).map(() => -1),
    allowedTokens: undefined,
    text: "",
    finishReason: "stop",
    isValid: true,
    attempts: 1,
    penalty: 0,
    reward: 0,
    ...overrides,
  };
}
