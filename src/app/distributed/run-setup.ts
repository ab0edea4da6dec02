import { z } from "zod";
import { errorMessage, invalidArgument, LlamaGymError } from "../../core/errors.js";
import { pick, type SettingTable } from "../../core/settings.js";
import { openTrainable } from "../../generation/auto-model.js";
import type { LanguageModel } from "../../generation/language-model.js";
import type { CausalLM } from "../../models/causal-lm.js";
import { findNamedFile, isModelPath } from "../runs/find-named-file.js";
import { parseQuantizeBits } from "../../models/model-settings.js";
import { ALGORITHM_NAMES, type AlgorithmName } from "../../rl/algorithms/algorithms.js";
import {
  MicroBatchGraphs,
  type GradientJob,
  type GradientResult,
} from "../../rl/algorithms/update/micro-batch-graphs.js";
import { JobRunner } from "../../rl/rollout/rollout-job.js";
import { configureAlgorithm } from "../runs/algorithm-settings.js";
import { findAlgorithm } from "../runs/load-algorithm.js";
import { createEnvFactory, makeTextAgent, requireTextEnv } from "../runs/make-text-agent.js";
import {
  completionSettings,
  resolveTrainConfig,
  runSettings,
  type TrainConfig,
  type TrainOptions,
} from "../runs/run-settings.js";
import { PACKAGE_VERSION } from "./package-version.js";
import { sha256 } from "./encoding.js";

const agentSettingNames = Object.keys({
  ...completionSettings,
  ...pick(runSettings, ["temperature", "invalidActionPenalty", "spreadSparseRewards", "seed", "callTimeoutSeconds"]),
});

/** What a worker needs to take part in a run; plain data without paths and credentials. */
const setupSchema = z.object({
  version: z.string(),
  env: z.string(),
  envOptions: z.record(z.string(), z.unknown()),
  maxEpisodeSteps: z.int().min(1).optional(),
  model: z.string(),
  quantize: z.string(),
  adapter: z.record(z.string(), z.unknown()).nullable(),
  valueHead: z.object({ kind: z.enum(["linear", "mlp"]), dropout: z.number() }).nullable(),
  jobTimeoutSeconds: z.number().min(0),
  backwardPrecision: z.enum(["float32", "int8"]),
  splitSpecialTokens: z.boolean(),
  /** The algorithm with its settings, where workers compute gradients. */
  algorithm: z
    .object({ algorithm: z.enum(ALGORITHM_NAMES) })
    .loose()
    .nullable(),
  /** Settings of the agent. */
  agent: z.record(z.string(), z.unknown()),
  /** Hash of the model's configuration, final norm and trained parameters' shapes. */
  fingerprint: z.string(),
});
type RunSetup = z.infer<typeof setupSchema>;

/** Returns the setup of a run for its workers. */
export async function createSetup(config: TrainConfig, { causalLM }: LanguageModel): Promise<string> {
  const agent = Object.fromEntries(
    Object.entries(config).filter(([name, value]) => agentSettingNames.includes(name) && value !== undefined),
  );
  const setup: RunSetup = {
    version: PACKAGE_VERSION,
    ...pick(config, ["env", "model", "quantize"]),
    envOptions: { ...config.envOptions },
    ...pick(config, ["maxEpisodeSteps", "jobTimeoutSeconds", "backwardPrecision", "splitSpecialTokens"]),
    algorithm: config.gradientWorkers ? describeAlgorithm(config) : null,
    adapter: causalLM.adapter === undefined ? null : { ...causalLM.adapter.config },
    valueHead: causalLM.valueHead ?? null,
    agent,
    fingerprint: await fingerprint(causalLM),
  };
  return JSON.stringify(setup);
}

async function fingerprint(model: CausalLM): Promise<string> {
  const { config, parameters } = model;
  const norm = await model.weights.read(`${config.names.finalNorm}.weight`);
  const shapes = parameters.names.map((name) => [name, parameters.shape(name)]);
  return sha256(
    JSON.stringify([config, sha256(new Uint8Array(norm.buffer, norm.byteOffset, norm.byteLength)), shapes]),
  );
}

/** What a worker was started with; a run cannot name other files. */
export interface WorkerFiles {
  /** Local model that replaces the run's, if it has the same fingerprint. */
  readonly model?: string;
  /** Environment outside the package, by the name that the run gives it. */
  readonly env?: string;
  readonly device?: TrainConfig["device"];
  readonly threads?: number;
}

/** A run's model, agent and environments on a worker. */
export interface OpenedRun {
  readonly model: LanguageModel;
  readonly runner: JobRunner;
  /** Computes gradients after `prepare`. @throws INVALID_STATE for a run without gradient workers. */
  runGradients(job: GradientJob, prepare: () => Promise<void>): Promise<GradientResult>;
  readonly jobTimeoutSeconds: number;
  close(): Promise<void>;
}

/**
 * Opens what a run's jobs need.
 * @throws RUN_INCOMPATIBLE for a run of another version or with another base model, INVALID_ARGUMENT for a run that names files.
 */
export async function openSetup(
  text: string,
  files: WorkerFiles,
  onWarning: (message: string) => void,
): Promise<OpenedRun> {
  const setup = parseSetup(text);
  checkNames(setup, files);
  const { env, envOptions, maxEpisodeSteps, adapter, valueHead } = setup;
  const config = resolveTrainConfig({
    ...(setup.agent as Partial<TrainOptions>),
    env,
    envOptions,
    algorithm: "reinforce",
  });
  const createEnv = createEnvFactory({ env, envOptions, maxEpisodeSteps });
  const textEnv = await requireTextEnv(createEnv, env);
  const { device, threads } = files;
  const model = await openTrainable(files.model ?? setup.model, {
    device,
    threads,
    quantize: parseQuantizeBits(setup.quantize as TrainConfig["quantize"]),
    backwardPrecision: setup.backwardPrecision,
    splitSpecialTokens: setup.splitSpecialTokens,
    peftConfig: adapter,
    valueHead,
  });
  try {
    if ((await fingerprint(model.causalLM)) !== setup.fingerprint)
      throw new LlamaGymError(
        "RUN_INCOMPATIBLE",
        `The base model ${files.model ?? setup.model} is not the one of the run.`,
      );
    const agent = makeTextAgent(model, textEnv, { ...config, sftWarmStart: undefined });
    const { settings } = agent;
    const runner = new JobRunner({
      model: model.causalLM,
      newEpisode: (random) => agent.newEpisode(random),
      createEnv,
      settings,
      onWarning,
    });
    const graphs = setup.algorithm === null ? undefined : openGradientGraphs(model.causalLM, setup.algorithm);
    return {
      model,
      runner,
      runGradients: async (job, prepare) => {
        if (graphs === undefined) throw new LlamaGymError("INVALID_STATE", "The run has no gradient jobs.");
        await prepare();
        return graphs.computeGradients(job);
      },
      jobTimeoutSeconds: setup.jobTimeoutSeconds,
      close: async () => {
        await runner.close();
        await graphs?.release();
        await model.close();
      },
    };
  } catch (error) {
    await model.close();
    throw error;
  }
}

/** Returns an algorithm of the package with its settings. */
function describeAlgorithm(config: TrainConfig): RunSetup["algorithm"] {
  const settings: SettingTable = findAlgorithm(config.algorithm).settings;
  const names = Object.keys(settings) as (keyof TrainConfig)[];
  return { ...pick(config, names), algorithm: config.algorithm as AlgorithmName };
}

/** @throws INVALID_ARGUMENT for invalid settings. */
function openGradientGraphs(model: CausalLM, settings: NonNullable<RunSetup["algorithm"]>): MicroBatchGraphs {
  const { algorithm } = configureAlgorithm(settings);
  // Kept states of frozen layers would depend on the jobs before.
  return new MicroBatchGraphs(model, algorithm.microBatchLoss!);
}

function parseSetup(text: string): RunSetup {
  let setup: RunSetup;
  try {
    setup = setupSchema.parse(JSON.parse(text));
  } catch (error) {
    throw new LlamaGymError("RUN_INCOMPATIBLE", `The run's setup cannot be read: ${errorMessage(error).slice(0, 500)}`);
  }
  if (setup.version === PACKAGE_VERSION) return setup;
  throw new LlamaGymError(
    "RUN_INCOMPATIBLE",
    `The run is of llamagym ${setup.version.slice(0, 20)}, this worker of ${PACKAGE_VERSION}. Install the same version.`,
  );
}

/** Rejects environments, options and models that would open files or modules that the worker was not started with. */
function checkNames({ env, envOptions, model }: RunSetup, files: WorkerFiles): void {
  const named = env === files.env ? undefined : findNamedFile(env, envOptions);
  if (named !== undefined)
    throw invalidArgument(
      named.setting === "env"
        ? `The run's environment ${env} is not registered here. Start the worker with --env ${env}, or --env-module.`
        : `The run's environment option ${named.name} may name a file. Start the worker with --env ${env} to allow it.`,
    );
  if (files.model === undefined && isModelPath(model))
    throw invalidArgument("The run's model is a file of the learner. Start the worker with --model and its path here.");
}
