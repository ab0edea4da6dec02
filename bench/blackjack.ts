import { join } from "node:path";
import type { Bench, Part } from "./framework.js";
import { legacyFolderPath, ourModelPath, prepareWeights } from "./smollm2.js";

/**
 * Blackjack-v1 played with free completions of exactly `new_tokens` tokens until `turns` turns are
 * gathered, then one PPO update of `epochs` epochs on them. Seconds: those of `turns` turns,
 * playing and update together. Count: `turns`. Values: `rollout` and `update`, turns a second each.
 * `observation` has the marks {total}, {dealer} and {ace} ("a" or "no"); a completion that contains
 * "stay" stays, any other hits. Peers: peers/blackjack.py.
 */
export type BlackjackWork = {
  work: "blackjack";
  turns: number;
  epochs: number;
  new_tokens: number;
  temperature: number;
  top_p: number;
  /** LoRA r 16, alpha 32, dropout 0.05 on these. */
  target_modules: string[];
  system: string;
  observation: string;
};

/** LlamaGym's defaults for sampling and PPO, and the adapter of its example. */
const batch: BlackjackWork = {
  work: "blackjack",
  turns: 16,
  epochs: 4,
  new_tokens: 32,
  temperature: 0.9,
  top_p: 0.6,
  target_modules: ["q_proj", "v_proj"],
  system: "You are an expert blackjack player. Answer with one word: stay or hit.",
  observation: "Your current total is {total}, the dealer shows {dealer}, you have {ace} usable ace.",
};

function part(name: string): Part {
  return { name, unit: "turns/s", better: "higher" };
}

export const bench: Bench = {
  name: "blackjack",
  description:
    "SmolLM2-135M plays Blackjack-v1 and learns by PPO: batches of 16 turns, 4 epochs, 32 new tokens; peer: LlamaGym",
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
