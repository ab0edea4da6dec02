import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ppo, type PpoOptions } from "../../src/rl/algorithms/index.js";
import type { LanguageModel } from "../../src/generation/index.js";
import type { PeftOptions } from "../../src/models/adapters/get-peft-model.js";
import type { AgentOptions } from "../../src/rl/agent/agent-options.js";
import type { Metrics } from "../../src/rl/algorithms/learner.js";
import { Trainer, type TrainCallbacks, type TrainerOptions } from "../../src/rl/train/trainer.js";
import { CountingEnv, EvenOddAgent, type CountingOptions } from "./counting.js";
import { readTrainedValues, TrainableModels } from "./trainable.js";

export const PPO: PpoOptions = {
  batchSize: 12,
  miniBatchSize: 6,
  numPpoEpochs: 2,
  learningRate: 0.01,
  lrSchedulerType: "linear",
};
const agentOptions: AgentOptions<number, number> = {
  algorithm: ppo(PPO),
  seed: 3,
};

export interface Variant {
  readonly env?: CountingOptions;
  readonly agent?: AgentOptions<number, number>;
  readonly peft?: PeftOptions;
}

export interface RecordedRun {
  /** Metrics of each update, without times. */
  readonly logs: Metrics[];
  readonly values: Float32Array;
}

const TIMES = /^time\/|_time$|per_second$/;
const withoutTimes = (metrics: Metrics) =>
  Object.fromEntries(Object.entries(metrics).filter(([name]) => !TIMES.test(name)));

/** Runs of a small random model in CountingEnv, in a temporary folder. */
export class CountingRuns {
  private constructor(
    readonly models: TrainableModels,
    readonly modelFolder: string,
    private readonly folder: string,
  ) {}

  static async open(): Promise<CountingRuns> {
    const models = new TrainableModels();
    const { folder } = await models.open({ maxPositions: 512, scale: 0.2 });
    return new CountingRuns(models, folder, await mkdtemp(join(tmpdir(), "trainer-")));
  }

  /**
   * A trainer with twelve turns per update and four environments, whose episodes of five turns
   * never end with an update.
   */
  async setUp(options: Partial<TrainerOptions> = {}, { env = {}, agent: more = {}, peft = {} }: Variant = {}) {
    // Dropout draws its own random numbers, which must resume too.
    const model = await this.models.reopen(this.modelFolder, { r: 4, loraDropout: 0.1, seed: 1, ...peft });
    const envs: CountingEnv[] = [];
    const agent = new EvenOddAgent(model, undefined, { ...agentOptions, ...more });
    const trainer = new Trainer({
      agent,
      env: () => {
        const made = new CountingEnv({ length: 5, ...env });
        envs.push(made);
        return made;
      },
      numEnvs: 4,
      turns: 48,
      seed: 11,
      ...options,
    });
    return { model, agent, trainer, envs };
  }

  /** An empty folder. */
  async createFolder(): Promise<string> {
    return mkdtemp(join(this.folder, "run-"));
  }

  async close(): Promise<void> {
    await this.models.close();
    await rm(this.folder, { recursive: true });
  }
}

/**
 * Trains to the end, or for a number of updates, and returns the logged metrics and trained values.
 */
export async function recordRun(
  { trainer, model }: { trainer: Trainer; model: LanguageModel },
  { updates = Infinity, ...callbacks }: TrainCallbacks & { updates?: number } = {},
): Promise<RecordedRun & { isInterrupted: boolean }> {
  const logs: Metrics[] = [];
  const stop = new AbortController();
  const tracker = {
    log: (_step: number, metrics: Metrics) => {
      logs.push(withoutTimes(metrics));
      if (logs.length >= updates) stop.abort();
    },
  };
  const { isInterrupted } = await trainer.train({ tracker, signal: stop.signal, ...callbacks });
  const values = await readTrainedValues(model);
  return { logs, values, isInterrupted };
}
