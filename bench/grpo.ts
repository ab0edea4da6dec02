import { join } from "node:path";
import type { Bench, BenchCase, Metric, PeerSide } from "./framework.js";
import { folderPath, ourModelPath, prepareWeights } from "./smollm2.js";

export type Message = { role: "system" | "user" | "assistant"; content: string };

/**
 * One GRPO step: `completions` completions of exactly `new_tokens` tokens, `group` for each prompt,
 * scored, and one update. Count: 1. Peers: peers/grpo.py.
 */
export type GrpoWork = {
  work: "grpo";
  completions: number;
  group: number;
  new_tokens: number;
  prompts: Message[][];
  /** Ours only: gradients through the frozen weights in 8 bits. */
  backward?: "int8";
};

const system =
  "You are an expert blackjack player. Every turn you are told your total, the card that the dealer shows, and whether you " +
  "hold a usable ace. Take another card or stop: come as close to twenty-one as you can without going over it. A usable ace " +
  "counts eleven as long as that does not take you over twenty-one.";

/** A prompt of about 108 tokens. */
function writePrompt([total, dealer, ace]: [number, number, boolean]): Message[] {
  const content = `Your total is ${total}, the dealer shows ${dealer}, and you have ${ace ? "a" : "no"} usable ace. Hit or stay?`;
  return [
    { role: "system", content: system },
    { role: "user", content },
  ];
}

const hands: [number, number, boolean][] = [
  [14, 10, false],
  [18, 6, true],
  [12, 3, false],
  [20, 9, false],
];
const grpoStep: GrpoWork = { work: "grpo", completions: 16, group: 8, new_tokens: 32, prompts: hands.map(writePrompt) };

function defineCase(name: string, metric: Metric, options: Partial<BenchCase> = {}): BenchCase {
  return { name, parameters: grpoStep, metric, maxRuns: 3, ...options };
}

/** The step with gradients in 8 bits. */
const int8Step: GrpoWork = { ...grpoStep, backward: "int8" };

function trlPeer(options: string[]): PeerSide {
  return {
    environment: ".venv",
    script: "grpo.py",
    arguments: (context) => ["--model", folderPath(context), "--threads", `${context.threads}`, ...options],
  };
}

export const bench: Bench = {
  name: "grpo",
  description:
    "a GRPO step of SmolLM2-135M, LoRA r 16 on all linear layers: 16 completions x 32 tokens in groups of 8; peer: TRL",
  ours: {
    module: join("ours", "grpo.js"),
    arguments: (context) => ["--model", ourModelPath(context), "--threads", `${context.threads}`],
  },
  // Gradient checkpointing is TRL's default; without it a step takes less time, which is what
  // step_time is compared with.
  peers: { trl: trlPeer([]), trl_checkpointing: { ...trlPeer(["--checkpointing"]), ratio: false } },
  prepare: async (context, peers) => prepareWeights(context, peers),
  cases: [
    defineCase("step_time", { kind: "seconds" }),
    defineCase("step_time_int8", { kind: "seconds" }, { parameters: int8Step, peers: [] }),
    defineCase("peak_memory", { kind: "peak_bytes" }, { freshProcess: true, warmup: 0, repeat: 2, maxRuns: 1 }),
  ],
};
