import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { CheckpointStore } from "../../src/app/tinker/checkpoint-store.js";
import { startTinkerServer } from "../../src/app/tinker/start-tinker-server.js";
import { AutoModelForCausalLM } from "../../src/generation/auto-model.js";
import { readAdapter, SafetensorsFile } from "../../src/models/files/index.js";
import { readJson } from "../../src/core/files/json-file.js";
import { loadAdapter } from "../../src/models/save-model.js";
import { TinkerTestClient, TinkerTestModel, toDatum, type Numbers } from "../support/tinker-client.js";
import { maxRelativeError, type ParityOptions, type ParityReport } from "./parity-report.js";

/** What a datum is made of; a case may leave out what all cases share. */
interface DatumFixture {
  readonly model_input?: readonly number[];
  readonly target_tokens?: Numbers;
  readonly loss_fn_inputs?: Readonly<Record<string, Numbers>>;
}

interface TensorSummary {
  readonly norm: number;
  readonly first: readonly number[];
}

interface CaseFixture extends DatumFixture {
  readonly loss_fn: string;
  readonly loss_fn_config?: Readonly<Record<string, number>> | null;
  /** Several data; without, the case is one. */
  readonly data?: readonly DatumFixture[];
  readonly logprobs: readonly number[] | readonly (readonly number[])[];
  readonly "loss:sum": number;
  readonly grad_norm: number;
  readonly gradients?: Readonly<Record<string, TensorSummary>>;
}

interface StepFixture {
  /** Weights of cross_entropy, for each pass before the step. */
  readonly calls_weights: readonly Numbers[];
  readonly learning_rate: number;
  readonly grad_norm: number;
  readonly logprobs_after: readonly number[];
  readonly parameters_after: Readonly<Record<string, TensorSummary>>;
  readonly beta1?: number;
  readonly beta2?: number;
  readonly eps?: number;
  readonly weight_decay?: number;
  readonly grad_clip_norm?: number;
}

interface Fixture extends DatumFixture {
  readonly cases?: readonly CaseFixture[];
  readonly adam_steps?: readonly StepFixture[];
}

/** A folder of cases and the model that they are for. */
interface FolderContext {
  readonly folder: string;
  readonly modelPath: string;
  readonly report: ParityReport;
}

const TOLERANCE = 1e-5;
const RUN = "00000000-0000-0000-0000-000000000000:train:0";
const START = `tinker://${RUN}/weights/start`;
const EXPECTED = "expected.json";

/**
 * Compares losses, gradients and optimizer steps over HTTP with numbers by PyTorch and PEFT: every
 * folder with an expected.json.
 */
export async function runTinkerParity(
  directory: string,
  report: ParityReport,
  { device = "cpu" }: ParityOptions,
): Promise<void> {
  const names = await readdir(directory, { recursive: true });
  for (const name of names.filter((each) => each === EXPECTED || each.endsWith(`/${EXPECTED}`)).sort()) {
    const folder = dirname(join(directory, name));
    const model = findModel(folder, directory);
    const label = `tinker ${relative(directory, folder) || "."}`;
    if (model === undefined) report.skip(label, "there is no model/ for it");
    else await compareFolder(label, { folder, modelPath: model, report, device });
  }
}

/** Returns the folder "model" in a folder or in one above it. */
function findModel(folder: string, root: string): string | undefined {
  const model = join(folder, "model");
  if (existsSync(model)) return model;
  return folder === root ? undefined : findModel(dirname(folder), root);
}

async function compareFolder(
  label: string,
  { folder, modelPath, report, device }: ParityOptions & FolderContext,
): Promise<void> {
  const fixture = (await readJson(join(folder, EXPECTED))) as unknown as Fixture;
  const state = await mkdtemp(join(tmpdir(), "tinker-parity-"));
  const model = await AutoModelForCausalLM.fromPretrained(modelPath, { device });
  try {
    await storeAdapter(state, model.causalLM, join(folder, "adapter"));
    const server = await startTinkerServer(model, { folder: state, modelName: "model", port: 0 });
    try {
      const client = new TinkerTestClient(server.url);
      const comparison = new Comparison(client, await client.createSession(), fixture, state, report);
      for (const [i, each] of (fixture.cases ?? []).entries()) await comparison.compareCase(`${label} ${i}`, each);
      await comparison.compareSteps(`${label} AdamW`, fixture.adam_steps ?? []);
    } finally {
      await server.close();
    }
  } finally {
    await model.close();
    await rm(state, { recursive: true, force: true });
  }
}

/** Writes an adapter as a checkpoint that the server loads. */
async function storeAdapter(
  state: string,
  base: Parameters<typeof loadAdapter>[0],
  adapterFolder: string,
): Promise<void> {
  const { config } = await readAdapter(adapterFolder);
  const adapted = await loadAdapter(base, adapterFolder);
  const names = adapted.parameters.names.join();
  const form = {
    rank: config.r,
    train_attn: /attn|attention/u.test(names),
    train_mlp: /mlp|feed_forward/u.test(names),
    train_unembed: names.includes("lm_head"),
  };
  const store = await CheckpointStore.open(state);
  const optimizer = undefined;
  const saved = { model: adapted, baseModel: "model", form, optimizer, userMetadata: null, ttlSeconds: null };
  await store.save({ runId: RUN, kind: "weights", name: "start" }, saved);
  await store.close();
  adapted.parameters.free();
}

class Comparison {
  private models = 0;

  constructor(
    private readonly client: TinkerTestClient,
    private readonly session: string,
    private readonly fixture: Fixture,
    private readonly state: string,
    private readonly report: ParityReport,
  ) {}

  async compareCase(label: string, each: CaseFixture): Promise<void> {
    const { report } = this;
    const name = `${label} ${each.loss_fn}`;
    try {
      const data = (each.data ?? [each]).map((datum) => this.datum(datum, each));
      const config = each.loss_fn_config ?? {};
      const model = await this.load();
      const start = await this.readParameters(model, "start");
      const forward = await model.pass(each.loss_fn, data, { config, forwardOnly: true });
      const output = await model.pass(each.loss_fn, data, { config });
      const expectedLogProbs = each.logprobs.flat();
      for (const [kind, result] of Object.entries({ forward, output })) {
        const logProbs = result.lossFnOutputs.flatMap(({ logprobs }) => Array.from(logprobs.data));
        report.checkWithin(`${name} logprobs (${kind})`, maxRelativeError(logProbs, expectedLogProbs), TOLERANCE);
        const loss = [result.metrics["loss:sum"]];
        report.checkWithin(`${name} loss (${kind})`, maxRelativeError(loss, [each["loss:sum"]]), TOLERANCE);
      }
      // With these values a step subtracts the gradient itself from the parameters.
      const gradNorm = await model.step({ learning_rate: 1e9, eps: 1e9, beta1: 0, beta2: 0 });
      report.checkWithin(`${name} gradient norm`, maxRelativeError([gradNorm], [each.grad_norm]), TOLERANCE);
      const end = await this.readParameters(model, "end");
      const gradients = new Map(
        Array.from(start, ([parameter, values]) => [
          parameter,
          values.map((value, i) => value - end.get(parameter)![i]),
        ]),
      );
      if (each.gradients !== undefined)
        report.checkWithin(`${name} gradients`, compareSummaries(gradients, each.gradients), TOLERANCE);
    } catch (error) {
      report.error(name, error);
    }
  }

  async compareSteps(label: string, steps: readonly StepFixture[]): Promise<void> {
    const { report } = this;
    if (steps.length === 0) return;
    try {
      const model = await this.load();
      for (const [i, step] of steps.entries()) {
        const name = `${label} step ${i + 1}`;
        for (const weights of step.calls_weights)
          await model.pass("cross_entropy", [this.datum({ loss_fn_inputs: { weights } }, {})]);
        const { learning_rate, beta1, beta2, eps, weight_decay, grad_clip_norm } = step;
        const gradNorm = await model.step({ learning_rate, beta1, beta2, eps, weight_decay, grad_clip_norm });
        report.checkWithin(`${name} gradient norm`, maxRelativeError([gradNorm], [step.grad_norm]), TOLERANCE);
        const { lossFnOutputs } = await model.pass("cross_entropy", [this.datum({}, {})], { forwardOnly: true });
        const logProbs = Array.from(lossFnOutputs[0].logprobs.data);
        report.checkWithin(`${name} logprobs`, maxRelativeError(logProbs, step.logprobs_after), TOLERANCE);
        const parameters = await this.readParameters(model, `step${i}`);
        const error = compareSummaries(parameters, step.parameters_after);
        report.checkWithin(`${name} parameters`, error, TOLERANCE);
      }
    } catch (error) {
      report.error(label, error);
    }
  }

  private datum(datum: DatumFixture, shared: DatumFixture) {
    const { fixture } = this;
    const tokens = datum.model_input ?? shared.model_input ?? fixture.model_input;
    const targets = datum.target_tokens ?? shared.target_tokens ?? fixture.target_tokens;
    if (tokens === undefined || targets === undefined) throw new Error("no model_input or target_tokens");
    return toDatum(tokens, targets, datum.loss_fn_inputs);
  }

  private load(): Promise<TinkerTestModel> {
    const seq = this.models++;
    return TinkerTestModel.load(this.client, this.session, START, { optimizer: false, seq });
  }

  /** Saves the adapter and downloads it. */
  private async readParameters(model: TinkerTestModel, name: string): Promise<Map<string, Float32Array>> {
    const { path } = await model.run("save_weights_external", { path: name });
    const [runId, kind, file] = String(path).slice("tinker://".length).split("/");
    const { urls } = await this.client.get(`training_runs/${runId}/checkpoints/${kind}/${file}/external_weights_urls`);
    const response = await fetch(String(urls["adapter_model.safetensors"]));
    const local = join(this.state, "download.safetensors");
    await writeFile(local, new Uint8Array(await response.arrayBuffer()));
    const weights = await SafetensorsFile.open(local);
    const values = new Map<string, Float32Array>();
    for (const tensor of weights.entries.keys())
      values.set(tensor.replace("base_model.model.", ""), await weights.readFloat32(tensor));
    await weights.close();
    return values;
  }
}

/** Compares the norm and the first values of each tensor. */
function compareSummaries(
  actual: ReadonlyMap<string, ArrayLike<number>>,
  expected: Readonly<Record<string, TensorSummary>>,
): number {
  const errors = Object.entries(expected).map(([name, { norm, first }]) => {
    const values = actual.get(name);
    if (values === undefined) return Infinity;
    const list = Array.from(values);
    return maxRelativeError([Math.hypot(...list), ...list.slice(0, first.length)], [norm, ...first]);
  });
  return actual.size === errors.length ? Math.max(...errors) : Infinity;
}
