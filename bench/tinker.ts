import { cp } from "node:fs/promises";
import { join } from "node:path";
import { writeRandomModel } from "../test/support/random-model.js";
import type { Bench, Context, Figures } from "./framework.js";
import { ggufPath } from "./smollm2.js";

/**
 * A pass with a gradient over `sequences` of `length` tokens, and an optimizer step. Count: trained
 * tokens.
 */
export type StepWork = { work: "step"; sequences: number; length: number };

/** `samples` of `new_tokens` tokens after `prompt` tokens, requested at once. Count: new tokens. */
export type SampleWork = { work: "sample"; samples: number; prompt: number; new_tokens: number };

/**
 * The step of SmolLM2-135M over HTTP, and by turns the same one without a server. Values:
 * `in_process_seconds`.
 */
export type WireWork = { work: "wire"; sequences: number; length: number };

const step: StepWork = { work: "step", sequences: 8, length: 64 };
const sample: SampleWork = { work: "sample", samples: 16, prompt: 32, new_tokens: 64 };
const wire: WireWork = { work: "wire", sequences: 4, length: 128 };

/** The embedded model's shape: a llama of a million parameters. */
const CONFIG = {
  dtype: "float32",
  hidden_size: 128,
  intermediate_size: 352,
  num_hidden_layers: 4,
  num_attention_heads: 4,
  num_key_value_heads: 4,
};
let model = "";

const describeSide = (context: Context) => [
  "--model",
  model,
  "--threads",
  `${context.threads}`,
  "--wire-model",
  ggufPath(context),
];

/** By how much a step over HTTP takes longer than one in the same process. */
function deriveWire({ wire: remote, in_process_seconds: local }: Figures): Figures {
  return remote > 0 && local > 0 ? { wire_overhead_percent: 100 * (remote / local - 1) } : {};
}

export const bench: Bench = {
  name: "tinker",
  description:
    "The Tinker API of `llamagym serve --tinker` and of SkyRL (JAX), driven by llamagym's client: a random llama of a million " +
    `parameters, adapters of rank 8; ${step.sequences} sequences of ${step.length} tokens, and ${sample.samples} samples of ` +
    `${sample.new_tokens} tokens. Then the step of SmolLM2-135M over HTTP and in one process.`,
  ours: { module: "ours/tinker.js", arguments: describeSide },
  peers: { skyrl: { environment: ".venv-skyrl", script: "skyrl_server.py", arguments: describeSide } },
  prepare: async ({ root }) => {
    const written = await writeRandomModel({ maxPositions: 512, withTokenizer: false, config: CONFIG });
    await cp(join(root, "test", "fixtures", "text", "model"), written.folder, { recursive: true });
    model = written.folder;
    process.once("beforeExit", () => void written.remove());
  },
  cases: [
    { name: "step", parameters: step, metric: { kind: "rate", unit: "tokens/s" }, warmup: 2 },
    { name: "sample", parameters: sample, metric: { kind: "rate", unit: "tokens/s" }, warmup: 2 },
    {
      name: "wire",
      parameters: wire,
      metric: { kind: "seconds" },
      parts: [{ name: "in_process_seconds", unit: "s", better: "lower" }],
      peers: [],
    },
  ],
  derive: deriveWire,
};
