import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { AutoModelForCausalLM } from "../../src/generation/auto-model.js";
import type { LanguageModel } from "../../src/generation/language-model.js";
import { makeTrainable } from "../../src/models/adapters/get-peft-model.js";
import { SafetensorsFile } from "../../src/models/files/index.js";
import { readJson } from "../../src/core/files/json-file.js";
import { AutoTokenizer, type Tokenizer } from "../../src/models/text/index.js";
import { encodeLabeled, encodePairs } from "../../src/rl/preferences/preference-example.js";
import { readPreferences, readUnpairedPreferences } from "../../src/rl/preferences/read-preferences.js";
import { DpoTrainer } from "../../src/rl/preferences/dpo-trainer.js";
import { KtoTrainer } from "../../src/rl/preferences/kto-trainer.js";
import { maxRelativeError, type ParityOptions, type ParityReport } from "./parity-report.js";

const TOLERANCE = 1e-5;

interface PairTokens {
  readonly prompt_ids: readonly number[];
  readonly chosen_ids: readonly number[];
  readonly rejected_ids: readonly number[];
}

interface LabeledIds {
  readonly prompt_ids: readonly number[];
  readonly completion_ids: readonly number[];
  readonly label: boolean;
}

interface PreferenceFixture {
  readonly datasets: Readonly<
    Record<
      string,
      { readonly kind: "dpo" | "kto"; readonly rows: readonly object[]; readonly tokens: readonly object[] }
    >
  >;
  readonly cases: readonly {
    readonly kind: "dpo" | "kto";
    readonly name: string;
    readonly rows: string;
    readonly options: Readonly<Record<string, unknown>>;
    readonly loss: number;
    readonly metrics: Readonly<Record<string, number>>;
  }[];
}

/**
 * Losses, gradients, metrics and tokens of TRL's DPOTrainer and KTOTrainer: `directory` is the
 * fixtures' preferences/ folder.
 */
export async function runPreferenceParity(
  directory: string,
  report: ParityReport,
  { device = "cpu" }: ParityOptions,
): Promise<void> {
  const fixture = (await readJson(join(directory, "cases.json"))) as unknown as PreferenceFixture;
  const tokenizer = await AutoTokenizer.fromPretrained(join(directory, "..", "text", "model"));
  const files = await writeDatasets(fixture);
  const open = async (name: string) =>
    AutoModelForCausalLM.fromPretrained(join(directory, name), { device, threads: 1 });
  const [policy, reference] = [await open("policy"), await open("reference")];
  const gradients = await SafetensorsFile.open(join(directory, "gradients.safetensors"));
  try {
    for (const [name, { kind, tokens }] of Object.entries(fixture.datasets)) {
      const found = await readTokens(kind, files.path(name), tokenizer);
      report.checkEqual(`preferences/${name} tokens`, isDeepStrictEqual(found, tokens), JSON.stringify(found));
    }
    for (const given of fixture.cases) {
      const model = policy.withCausalLM(await makeTrainable(policy.causalLM, /layers/));
      const withTokenizer = Object.create(model, { tokenizer: { value: tokenizer } }) as LanguageModel;
      await compareCase(given, {
        model: withTokenizer,
        refModel: reference,
        path: files.path(given.rows),
        gradients,
        report,
      });
      model.causalLM.parameters.free();
    }
  } finally {
    await policy.close();
    await reference.close();
    await gradients.close();
    await files.remove();
  }
}

interface CaseContext {
  readonly model: LanguageModel;
  readonly refModel: LanguageModel;
  readonly path: string;
  readonly gradients: SafetensorsFile;
  readonly report: ParityReport;
}

async function compareCase(
  { kind, name, options, loss, metrics }: PreferenceFixture["cases"][number],
  { model, refModel, path, gradients, report }: CaseContext,
): Promise<void> {
  const label = `preferences/${kind} ${name}`;
  // The gradient stays as it is: no step, no clipping.
  const settings = { ...toSettings(options), refModel, learningRate: 0, maxGradNorm: 1e9, microBatchTokens: 64 };
  const isDpo = kind === "dpo";
  const trainer = isDpo ? await DpoTrainer.create(model, settings) : await KtoTrainer.create(model, settings);
  const { examples } = isDpo
    ? await readPreferences(path, { prompts: "chat" })
    : await readUnpairedPreferences(path, { prompts: "chat" });
  const found: Readonly<Record<string, unknown>> = { ...(await trainer.update(examples as never)) };
  const evaluation: Readonly<Record<string, unknown>> = { ...(await trainer.evaluate(examples as never)) };
  const names = Object.keys(metrics);
  const checkMetrics = (part: string, prefix: string, given: Readonly<Record<string, unknown>>) =>
    report.checkWithin(
      `${label} ${part}`,
      maxRelativeError(
        ["loss", ...names].map((metric) => given[prefix + metric] as number),
        [loss, ...names.map((metric) => metrics[metric])],
      ),
      TOLERANCE,
    );
  checkMetrics("loss and metrics", "", found);
  checkMetrics("evaluation", "eval_", evaluation);
  const { parameters, runtime } = model.causalLM;
  const gradient: number[] = [];
  const expected: number[] = [];
  for (const parameter of parameters.names) {
    const { data } = await runtime.read(parameters.view(parameter, parameters.gradients));
    gradient.push(...(data as Float32Array));
    expected.push(...(await gradients.readFloat32(`${name}/${parameter}`)));
  }
  const scale = Math.max(...expected.map(Math.abs));
  const scaled = (values: readonly number[]) => values.map((value) => value / scale);
  report.checkWithin(`${label} gradient`, maxRelativeError(scaled(gradient), scaled(expected)), TOLERANCE);
  await trainer.release();
}

/** loss_type -> lossType */
function toSettings(options: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const toCamelCase = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  return Object.fromEntries(Object.entries(options).map(([name, value]) => [toCamelCase(name), value]));
}

async function readTokens(
  kind: "dpo" | "kto",
  path: string,
  tokenizer: Tokenizer,
): Promise<readonly (PairTokens | LabeledIds)[]> {
  const options = { maxLength: 256, overlong: "error" } as const;
  if (kind === "dpo") {
    const { examples } = await readPreferences(path);
    return encodePairs(examples, () => tokenizer, options).examples.map(({ chosen, rejected }) => {
      const start = chosen.lossMask.length - Array.from(chosen.lossMask).filter((bit) => bit !== 0).length;
      return {
        prompt_ids: chosen.tokens.slice(0, start),
        chosen_ids: chosen.tokens.slice(start),
        rejected_ids: rejected.tokens.slice(start),
      };
    });
  }
  const { examples } = await readUnpairedPreferences(path);
  return encodeLabeled(examples, () => tokenizer, options).examples.map(({ example, promptLength, label }) => ({
    prompt_ids: example.tokens.slice(0, promptLength),
    completion_ids: example.tokens.slice(promptLength),
    label,
  }));
}

/** Writes the rows into JSONL files, as a user has them. */
async function writeDatasets({ datasets }: PreferenceFixture) {
  const folder = await mkdtemp(join(tmpdir(), "preferences-"));
  const path = (name: string) => join(folder, `${name}.jsonl`);
  for (const [name, { rows }] of Object.entries(datasets))
    await writeFile(path(name), rows.map((row) => JSON.stringify(row)).join("\n"));
  return { path, remove: () => rm(folder, { recursive: true }) };
}
