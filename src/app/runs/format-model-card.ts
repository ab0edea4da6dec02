import { METRICS_FILE, readMetrics, type MetricRecord } from "../../rl/tracking/index.js";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { formatNumber } from "../../core/format.js";
import { escapeControls } from "../../core/terminal-text.js";
import { formatAdapterReadme, EMBEDDED_MODEL } from "../../models/index.js";
import type { ExportFormat } from "../../models/export/index.js";
import { listReferences } from "./run-curve.js";
import { findRunEnv } from "./run-env.js";
import { findRun } from "./run-folder.js";
import type { TrainOptions } from "./run-settings.js";

/** Metrics that a card shows, with their meaning. */
const RESULTS: Readonly<Record<string, string>> = {
  "eval/mean_return": "mean return, greedy evaluation",
  "rollout/ep_rew_mean": "mean return while sampling, last update",
  reward: "mean reward, last update",
  "eval/loss": "loss on evaluation data",
  "sft/loss": "loss, last update",
  "dpo/loss": "loss, last update",
  "dpo/rewards/accuracies": "pairs whose chosen completion has the higher reward, last update",
  "kto/loss": "loss, last update",
  num_episodes: "episodes",
  num_turns: "turns",
  num_tokens: "tokens",
};

/** Settings that concern the machine and the run's files. */
const OMITTED =
  /^(version|model|adapter|device|threads|env|algorithm|numLogged.*|.*(Steps|Seconds)|tensorboard|wandb.*)$/u;

const LIBRARIES: Readonly<Record<ExportFormat, string>> = {
  peft: "peft",
  merged: "transformers",
  onnx: "transformers.js",
  gguf: "llama.cpp",
};

const USAGE: Readonly<Record<ExportFormat, string>> = {
  peft: '```python\nfrom peft import AutoPeftModelForCausalLM\n\nmodel = AutoPeftModelForCausalLM.from_pretrained(".")\n```',
  merged:
    '```python\nfrom transformers import AutoModelForCausalLM, AutoTokenizer\n\nmodel = AutoModelForCausalLM.from_pretrained(".")\ntokenizer = AutoTokenizer.from_pretrained(".")\n```',
  onnx: '```js\nimport { env, pipeline } from "@huggingface/transformers";\n\nenv.localModelPath = "..";\nconst generator = await pipeline("text-generation", "NAME");\n```',
  gguf: "```\nollama create NAME -f Modelfile\nollama run NAME\nllama-cli -m model.gguf\n```",
};

/** What a model card describes. */
interface ModelCardSource {
  /** The given run, adapter or model. */
  readonly path: string;
  /** Name of the base model. */
  readonly base: string;
  readonly format: ExportFormat;
  readonly dtype: string;
  /** Folder of the exported model. */
  readonly output: string;
}

/**
 * Formats the README.md of an exported model: base, data, algorithm, settings and results of its
 * run, if it has one.
 */
export async function formatModelCard({ path, base, format, dtype, output }: ModelCardSource): Promise<string> {
  const folder = resolve(path);
  const run = await findRun([folder, dirname(folder), dirname(dirname(folder))]);
  const name = basename(resolve(output));
  const records = run === undefined ? [] : await readMetrics(join(run.folder, METRICS_FILE)).catch(() => []);
  const isHubId = /^[\w.-]+\/[\w.-]+$/u.test(base);
  const isReinforced = (run?.config.env ?? run?.config.algorithm) !== undefined;
  const tags = ["llamagym", ...(isReinforced ? ["reinforcement-learning"] : [])];
  const header = [
    ...(isHubId ? [`base_model: ${base}`] : []),
    `library_name: ${LIBRARIES[format]}`,
    "pipeline_tag: text-generation",
    `tags: [${tags.join(", ")}]`,
  ];
  // PEFT does not find these base models by name.
  const adapterReadme = format === "peft" ? formatAdapterReadme(base, base === EMBEDDED_MODEL) : undefined;
  const adapterUsage = adapterReadme?.slice(adapterReadme.indexOf("\n\n") + 2);
  const kind = format === "peft" ? "A LoRA adapter of" : run === undefined ? "A copy of" : "A fine-tuned form of";
  const card = [
    `---\n${header.join("\n")}\n---\n`,
    `# ${name}\n`,
    `${kind} ${formatBase(base)}${run === undefined ? "" : describeRun(run.config)}, exported by llamagym (${format}, ${dtype}).\n`,
    `## Use\n\n${(adapterUsage ?? USAGE[format]).replaceAll("NAME", name)}\n`,
    ...(run === undefined ? [] : [formatResults(run.config, records), formatSettings(run.config)]),
  ];
  // Cards are read in terminals, and names of a run may come from others.
  return escapeControls(card.join("\n"));
}

/** Local paths are of no use to other readers. */
function formatBase(base: string): string {
  if (base === EMBEDDED_MODEL) return "the model embedded in the npm package llamagym";
  return `\`${isAbsolute(base) || base.startsWith(".") ? basename(base) : base}\``;
}

function describeRun(config: Partial<TrainOptions>): string {
  const { data } = config as { readonly data?: unknown };
  const { env, algorithm } = config;
  const file = typeof data === "string" ? basename(data) : undefined;
  if (env === undefined && algorithm === undefined) return `, fine-tuned on ${file ?? "examples"}`;
  return `, trained ${env === undefined ? `on ${file ?? "prompts"}` : `in ${env}`} with ${algorithm ?? "ppo"}`;
}

function formatResults(config: Partial<TrainOptions>, records: readonly MetricRecord[]): string {
  const rows = Object.entries(RESULTS).flatMap(([metric, meaning]) => {
    const value = records.findLast((record) => Number.isFinite(record[metric]))?.[metric];
    return value === undefined ? [] : [`| ${meaning} | ${formatNumber(value)} |`];
  });
  const references = listReferences(findRunEnv(config)).map(
    ({ name, y }) => `| ${name}, mean return | ${formatNumber(y)} |`,
  );
  const body = [...rows, ...references];
  if (body.length === 0) return "## Results\n\nThe run recorded no metrics.\n";
  return ["## Results\n", "| result | value |", "| --- | --- |", ...body, ""].join("\n");
}

function formatSettings(config: Partial<TrainOptions>): string {
  const rows = Object.entries(config).flatMap(([name, value]) => {
    const isShown = !OMITTED.test(name) && ["string", "number", "boolean"].includes(typeof value);
    const text =
      typeof value === "string" && isAbsolute(value) ? basename(value) : JSON.stringify(value).replaceAll('"', "");
    return isShown ? [`| ${name} | ${text} |`] : [];
  });
  return ["## Settings\n", "| setting | value |", "| --- | --- |", ...rows, ""].join("\n");
}
