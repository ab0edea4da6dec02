import { join } from "node:path";
import type { Bench, BenchCase, Part, PeerSide } from "./framework.js";
import { folderPath, ourModelPath, prepareWeights, smollm2 } from "./smollm2.js";

/**
 * `turns` turns of an environment with completions constrained to its choices, `envs` environments
 * in parallel, then one PPO update on them. Seconds: of playing and update together. Count:
 * `turns`. Values: `rollout` and `update`, turns a second each. Peers: peers/pretrained.py.
 */
export type PretrainedWork = {
  work: "pretrained";
  env: "CartPole-v1" | "Blackjack-v1";
  turns: number;
  envs: number;
  mini_batch: number;
  epochs: number;
  /** Layers with a LoRA adapter of r 16, alpha 32, on their linear modules; empty for all. */
  layers: number[];
  /**
   * Bits of our frozen weights, with gradients through them in 8 bits; peers keep the format that
   * they were started with.
   */
  quantize?: 8;
};

const update = { work: "pretrained", turns: 96, envs: 16, mini_batch: 48, epochs: 2 } as const;
/** Those that `llamagym train --action-mode choices` adapts by default. */
const lastLayers = Array.from({ length: 4 }, (_, i) => smollm2.layers - 4 + i);

function part(name: string): Part {
  return { name, unit: "turns/s", better: "higher" };
}

function defineCase(
  name: string,
  env: PretrainedWork["env"],
  { layers = [], quantize }: { layers?: number[]; quantize?: 8 } = {},
): BenchCase {
  const parameters: PretrainedWork = { ...update, env, layers, quantize };
  const peers = quantize === undefined ? undefined : ["bfloat16"];
  return { name, parameters, metric: { kind: "rate", unit: "turns/s" }, maxRuns: 3, peers };
}

function torchPeer(options: string[]): PeerSide {
  return {
    environment: ".venv",
    script: "pretrained.py",
    arguments: (context) => ["--model", folderPath(context), "--threads", `${context.threads}`, ...options],
  };
}

export const bench: Bench = {
  name: "pretrained",
  description:
    "SmolLM2-135M plays with completions constrained to choices and learns by PPO: 96 turns, 2 epochs in minibatches of 48; peer: PyTorch + PEFT",
  ours: {
    module: join("ours", "pretrained.js"),
    arguments: (context) => ["--model", ourModelPath(context), "--threads", `${context.threads}`],
  },
  peers: { float32: torchPeer([]), bfloat16: torchPeer(["--bfloat16"]) },
  prepare: async (context, peers) => prepareWeights(context, peers),
  cases: [
    { ...defineCase("cartpole_turns_per_second", "CartPole-v1"), parts: [part("rollout"), part("update")] },
    defineCase("blackjack_turns_per_second", "Blackjack-v1"),
    defineCase("cartpole_8bit", "CartPole-v1", { quantize: 8 }),
    defineCase("blackjack_8bit", "Blackjack-v1", { quantize: 8 }),
    defineCase("cartpole_last_4_layers", "CartPole-v1", { layers: lastLayers }),
    defineCase("blackjack_last_4_layers", "Blackjack-v1", { layers: lastLayers }),
    defineCase("cartpole_last_4_layers_8bit", "CartPole-v1", { layers: lastLayers, quantize: 8 }),
  ],
};
