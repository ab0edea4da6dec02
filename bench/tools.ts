import type { Bench, BenchCase } from "./framework.js";

/** Training on `turns` turns of ShopSupport-v0. Count: turns; seconds of processor time. */
export type ToolsWork = {
  work: "gateway" | "schema" | "choices";
  turns: number;
};

const toolsCase = (work: ToolsWork["work"], turns: number): BenchCase => ({
  name: `${work}_turns_per_cpu_second`,
  parameters: { work, turns } satisfies ToolsWork,
  metric: { kind: "rate", unit: "turns/CPU s" },
  warmup: 0,
});

export const bench: Bench = {
  name: "tools",
  description:
    "PPO of the embedded model on tool calls with arguments (ShopSupport-v0), turns per second of processor time, rollouts and updates: " +
    "an agent that calls the gateway with tools, JSON calls, and the same calls as choices.",
  ours: { module: "ours/tools.js", arguments: ({ threads }) => ["--threads", String(threads)] },
  peers: {},
  cases: [toolsCase("gateway", 1024), toolsCase("schema", 1024), toolsCase("choices", 4096)],
};
