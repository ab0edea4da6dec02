import { join } from "node:path";
import type { Bench, Part } from "./framework.js";
import { legacyFolderPath, ourModelPath, prepareWeights } from "./smollm2.js";

/**
 * At least 16 turns of Blackjack-v1 with free replies of at most 32 tokens, then one PPO update of 4 epochs on 16 turns.
 * Seconds: those of one batch of 16 turns, playing and update together; count: 16. Values: rollout and update, each in turns
 * a second. Peers: peers/blackjack.py.
 */
export type BlackjackWork = { work: "blackjack"; turns: number; epochs: number; new_tokens: number };

const batch: BlackjackWork = { work: "blackjack", turns: 16, epochs: 4, new_tokens: 32 };

function part(name: string): Part {
  return { name, unit: "turns/s", better: "higher" };
}

export const bench: Bench = {
  name: "blackjack",
  about:
    "SmolLM2-135M plays Blackjack-v1 and learns by PPO: batches of 16 turns, 4 epochs, 32 new tokens; LlamaGym beside it",
  ours: {
    module: join("ours", "blackjack.js"),
    arguments: (context) => ["--model", ourModelPath(context), "--threads", `${context.threads}`],
  },
  peers: {
    llamagym: {
      environment: ".venv-llamagym",
      script: "blackjack.py",
      arguments: (context) => ["--model", legacyFolderPath(context), "--threads", `${context.threads}`],
    },
  },
  prepare: async (context, peers) => prepareWeights(context, peers, true),
  cases: [
    {
      name: "turns_per_second",
      parameters: batch,
      metric: { kind: "rate", unit: "turns/s" },
      parts: [part("rollout"), part("update")],
      maxRuns: 3,
    },
  ],
};
