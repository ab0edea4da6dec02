import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ModelForm } from "../../src/app/tinker/model-form.js";
import { startTinkerServer } from "../../src/app/tinker/start-tinker-server.js";
import { TrainedModel } from "../../src/app/tinker/trained-model.js";
import { AutoModelForCausalLM } from "../../src/index.js";
import { getPeftModel } from "../../src/models/adapters/index.js";
import { RemoteModel } from "../../src/tinker/client/remote-model.js";
import { SamplingClient } from "../../src/tinker/client/sampling-client.js";
import { ServiceSession } from "../../src/tinker/client/service-session.js";
import { TokenUsage } from "../../src/tinker/client/token-usage.js";
import type { TrainingDatum } from "../../src/tinker/wire/index.js";
import type { Result } from "../framework.js";
import { serve, timeRuns } from "../serve.js";
import type { SampleWork, StepWork, WireWork } from "../tinker.js";

const { values } = parseArgs({
  options: {
    model: { type: "string" },
    "wire-model": { type: "string" },
    threads: { type: "string", default: "2" },
    /** Address of another server. */
    url: { type: "string" },
  },
});

const ADAM = { learningRate: 1e-4, beta1: 0.9, beta2: 0.95, epsilon: 1e-12, weightDecay: 0, maxGradNorm: 0 };
const RANK = 8;
const folder = mkdtempSync(join(tmpdir(), "bench-tinker-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));

/** Starts `llamagym serve --tinker` and returns its address. */
async function startServer(): Promise<string> {
  // Compiled, this file is bench/.build/bench/ours/tinker.js.
  const command = fileURLToPath(new URL("../../../../dist/app/cli/bin.js", import.meta.url));
  const args = [command, "serve", "--tinker", "--model", values.model!, "--port", "0", "--tinker-folder", folder];
  const child = spawn(process.execPath, [...args, "--device", "cpu", "--threads", values.threads], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  process.once("exit", () => child.kill());
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return line.replace(/.* at (.*)\/v1$/u, "$1");
}

const makeTokens = (sequence: number, length: number) =>
  Array.from({ length }, (_, i) => 5 + ((sequence * 31 + i * 7) % 300));

function makeData(sequences: number, length: number): TrainingDatum[] {
  return Array.from({ length: sequences }, (_, i) => {
    const tokens = makeTokens(i, length + 1);
    const shape = [length];
    return {
      tokens: tokens.slice(0, -1),
      lossFnInputs: {
        target_tokens: { dtype: "int64", shape, data: tokens.slice(1) },
        weights: { dtype: "float32", shape, data: new Float32Array(length).fill(1) },
      },
    };
  });
}

const takeStep = async (model: RemoteModel, data: readonly TrainingDatum[]) =>
  void (await Promise.all([model.pass(data, { lossFn: "cross_entropy" }), model.optimStep(ADAM)]));

async function createModel(session: ServiceSession, baseModel: string, trainUnembed: boolean) {
  const form = { baseModel, rank: RANK, seed: 1, trainAttn: true, trainMlp: true, trainUnembed };
  return RemoteModel.create(session, 0, form);
}

/** Opens the session and the trained model of the first cases. */
async function open() {
  const baseUrl = values.url ?? (await startServer());
  // A server whose engine has ended does not answer.
  const session = await ServiceSession.open({ baseUrl, apiKey: "tml-bench", maxWaitSeconds: 120 });
  // SkyRL has no adapter on a tied output matrix.
  return { session, model: await createModel(session, values.model!, false) };
}

let opened: ReturnType<typeof open> | undefined;
let sampler: Promise<SamplingClient> | undefined;

async function openSampler(): Promise<SamplingClient> {
  const { session, model } = await (opened ??= open());
  const modelPath = await model.saveForSampler("bench");
  return SamplingClient.open(session, 1, { modelPath }, new TokenUsage());
}

async function measureStep({ sequences, length }: StepWork, repeat: number): Promise<Result> {
  const { model } = await (opened ??= open());
  const data = makeData(sequences, length);
  return { seconds: await timeRuns(repeat, async () => takeStep(model, data)), count: sequences * length };
}

async function measureSamples(work: SampleWork, repeat: number): Promise<Result> {
  const client = await (sampler ??= openSampler());
  const params = { maxTokens: work.new_tokens, temperature: 1, topK: -1, topP: 1, stop: [319] };
  let sampled = 0;
  const seconds = await timeRuns(repeat, async () => {
    const requests = Array.from({ length: work.samples }, async (_, i) =>
      client.sample({ prompt: makeTokens(i, work.prompt), params: { ...params, seed: i } }),
    );
    const responses = await Promise.all(requests);
    sampled += responses.flatMap((response) => response.sequences).reduce((sum, { tokens }) => sum + tokens.length, 0);
  });
  return { seconds, count: sampled / repeat };
}

async function openWire() {
  const model = await AutoModelForCausalLM.fromPretrained(values["wire-model"]!, {
    device: "cpu",
    threads: Number(values.threads),
  });
  const server = await startTinkerServer(model, { folder: join(folder, "wire"), modelName: "m", port: 0 });
  const session = await ServiceSession.open({ baseUrl: server.url, apiKey: "tml-bench" });
  const adapt = async () => getPeftModel(model.causalLM, { r: RANK, loraAlpha: 32, targetModules: "all-linear" });
  return {
    remote: await createModel(session, "m", false),
    local: new TrainedModel(await adapt(), new ModelForm(await adapt())),
  };
}

let wireModels: ReturnType<typeof openWire> | undefined;

async function measureWire({ sequences, length }: WireWork, repeat: number): Promise<Result> {
  const { remote, local } = await (wireModels ??= openWire());
  const data = makeData(sequences, length);
  const request = { modelId: "m", seqId: 1, data, lossFn: "cross_entropy", lossFnConfig: {}, forwardOnly: false };
  const seconds: number[] = [];
  let inProcess = 0;
  for (let i = 0; i < repeat; i++) {
    seconds.push(...(await timeRuns(1, async () => takeStep(remote, data))));
    const [own] = await timeRuns(1, async () => {
      await local.run(request);
      await local.step({ ...ADAM, maxGradNorm: Infinity });
    });
    inProcess += own / repeat;
  }
  return { seconds, count: sequences * length, values: { in_process_seconds: inProcess } };
}

await serve<StepWork | SampleWork | WireWork>(async (request) => {
  if (request.work === "step") return measureStep(request, request.repeat);
  if (request.work === "sample") return measureSamples(request, request.repeat);
  return measureWire(request, request.repeat);
});
process.exit();
