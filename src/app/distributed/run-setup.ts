import { z } from "zod";
import { errorMessage, invalidArgument, LlamaGymError } from "../../core/errors.js";
import { selectScope, selectSettings } from "../../core/settings.js";
import { openTrainable, type LanguageModel, type PolicyBackend } from "../../generation/index.js";
import { type CausalLM, baseModelSettings, parseGradientCheckpointing, parseQuantizeBits } from "../../models/index.js";
import { findNamedFile, isModelPath } from "../runs/find-named-file.js";
import {
  ALGORITHM_NAMES,
  type AlgorithmName,
  MicroBatchGraphs,
  type GradientJob,
  type GradientResult,
} from "../../rl/algorithms/index.js";
import { JobRunner } from "../../rl/rollout/index.js";
import { GamePlayers } from "../../rl/train/index.js";
import { configureAlgorithm } from "../runs/algorithm-settings.js";
import { findAlgorithm } from "../runs/load-algorithm.js";
import { EnvSupply } from "../runs/env-supply.js";
import { makeTextAgent, readTextEnv } from "../runs/make-text-agent.js";
import { RunEnv } from "../runs/run-env.js";
import { resolveTrainConfig, runSettings, type TrainConfig, type TrainOptions } from "../runs/run-settings.js";
import { PACKAGE_VERSION } from "./package-version.js";
import { sha256 } from "./encoding.js";

/** What a worker needs to take part in a run; plain data without paths and credentials. */
const setupSchema = z.object({
  version: z.string(),
  /** The environment, and the settings of the model, the agent and the rollouts. */
  settings: z.looseObject({ env: z.string(), envOptions: z.record(z.string(), z.unknown()) }),
  adapter: z.record(z.string(), z.unknown()).nullable(),
  valueHead: z.object({ kind: z.enum(["linear", "mlp"]), dropout: z.number() }).nullable(),
  /** The algorithm with its settings, where workers compute gradients. */
  algorithm: z
    .object({ algorithm: z.enum(ALGORITHM_NAMES) })
    .loose()
    .nullable(),
  /** Hash of the model's configuration, final norm and trained parameters' shapes. */
  fingerprint: z.string(),
});
type RunSetup = z.infer<typeof setupSchema>;

const workerSettings = { ...baseModelSettings, ...selectScope(runSettings, "agent", "rollouts") };

/** Returns the setup of a run for its workers. */
export async function createSetup(config: TrainConfig, { causalLM }: LanguageModel): Promise<string> {
  const setup: RunSetup = {
    version: PACKAGE_VERSION,
    settings: { ...new RunEnv(config).toJson(), ...selectSettings(workerSettings, config) },
    algorithm: config.gradientWorkers ? describeAlgorithm(config) : null,
    adapter: causalLM.adapter === undefined ? null : { ...causalLM.adapter.config },
    valueHead: causalLM.valueHead ?? null,
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
export interface WorkerRun {
  readonly model: LanguageModel;
  readonly runner: JobRunner;
  /**
   * Makes an earlier version of the policy the past opponent of the next jobs. @throws
   * INVALID_STATE without self-play
   */
  loadPast(values: Float32Array): Promise<void>;
  /**
   * Computes gradients after `prepare`. @throws INVALID_STATE for a run without gradient workers.
   */
  runGradients(job: GradientJob, prepare: () => Promise<void>): Promise<GradientResult>;
  readonly jobTimeoutSeconds: number;
  close(): Promise<void>;
}

/**
 * Opens what a run's jobs need.
 * @throws RUN_INCOMPATIBLE for a run of another version or with another base model,
 * INVALID_ARGUMENT for a run that names files.
 */
export async function openSetup(
  text: string,
  files: WorkerFiles,
  onWarning: (message: string) => void,
): Promise<WorkerRun> {
  const setup = parseSetup(text);
  const { adapter, valueHead } = setup;
  const config = resolveWorkerConfig(setup);
  checkNames(config, files);
  const envs = new EnvSupply(new RunEnv(config));
  const { device, threads } = files;
  const { model: name, quantize, gradientCheckpointing, ...options } = selectSettings(baseModelSettings, config);
  let model: LanguageModel | undefined;
  try {
    const textEnv = await envs.read(readTextEnv);
    const opened = await openTrainable(files.model ?? name, {
      ...options,
      device,
      threads,
      quantize: parseQuantizeBits(quantize),
      gradientCheckpointing: parseGradientCheckpointing(gradientCheckpointing),
      peftConfig: adapter,
      valueHead,
    });
    model = opened;
    if ((await fingerprint(opened.causalLM)) !== setup.fingerprint)
      throw new LlamaGymError("RUN_INCOMPATIBLE", `The base model ${files.model ?? name} is not the one of the run.`);
    const agent = makeTextAgent(opened, textEnv, { ...config, sftWarmStart: undefined });
    const { settings } = agent;
    const players = config.selfPlay ? new GamePlayers(agent) : undefined;
    const runner = new JobRunner({
      model: opened.causalLM,
      newEpisode: (random) => agent.newEpisode(random),
      ...(players === undefined ? {} : { players }),
      createEnv: envs.make,
      settings,
      onWarning,
    });
    const graphs = setup.algorithm === null ? undefined : openGradientGraphs(opened.policy, setup.algorithm);
    return {
      model: opened,
      runner,
      loadPast: async (values) => {
        if (players === undefined) throw new LlamaGymError("INVALID_STATE", "The run has no self-play.");
        await players.loadPast(values);
      },
      runGradients: async (job, prepare) => {
        if (graphs === undefined) throw new LlamaGymError("INVALID_STATE", "The run has no gradient jobs.");
        await prepare();
        return graphs.computeGradients(job);
      },
      jobTimeoutSeconds: config.jobTimeoutSeconds,
      close: async () => {
        await runner.close();
        await envs.close();
        await graphs?.release();
        await opened.close();
      },
    };
  } catch (error) {
    await envs.close();
    await model?.close();
    throw error;
  }
}

/**
 * @throws RUN_INCOMPATIBLE for settings that this version does not have, or that are out of range.
 */
function resolveWorkerConfig({ settings }: RunSetup): TrainConfig {
  try {
    // Workers need no value head for an algorithm: the setup says which one the model has.
    const options = { ...(settings as TrainOptions), algorithm: "reinforce" };
    return resolveTrainConfig(options, { isResolved: true });
  } catch (error) {
    throw unreadableSetup(error);
  }
}

/** Returns an algorithm of the package with its settings. */
function describeAlgorithm(config: TrainConfig): RunSetup["algorithm"] {
  const algorithm = config.algorithm as AlgorithmName;
  return { ...selectSettings(findAlgorithm(algorithm).settings, config), algorithm };
}

/** @throws INVALID_ARGUMENT for invalid settings. */
function openGradientGraphs(policy: PolicyBackend, settings: NonNullable<RunSetup["algorithm"]>): MicroBatchGraphs {
  const { algorithm } = configureAlgorithm(settings);
  // Kept states of frozen layers would depend on the jobs before.
  return new MicroBatchGraphs(policy, algorithm.microBatchLoss!);
}

function parseSetup(text: string): RunSetup {
  let setup: RunSetup;
  try {
    setup = setupSchema.parse(JSON.parse(text));
  } catch (error) {
    throw unreadableSetup(error);
  }
  if (setup.version === PACKAGE_VERSION) return setup;
  throw new LlamaGymError(
    "RUN_INCOMPATIBLE",
    `The run is of llamagym ${setup.version.slice(0, 20)}, this worker of ${PACKAGE_VERSION}. Install the same version.`,
  );
}

function unreadableSetup(error: unknown): LlamaGymError {
  return new LlamaGymError("RUN_INCOMPATIBLE", `The run's setup cannot be read: ${errorMessage(error).slice(0, 500)}`);
}

/**
 * Rejects environments, options and models that would open files or modules that the worker was not
 * started with.
 */
function checkNames({ env, envOptions, model }: TrainConfig, files: WorkerFiles): void {
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
