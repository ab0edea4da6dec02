import type { EnvSlotState, EpisodeSpec, RolloutSlot } from "./rollout-slot.js";
import type { Env } from "../../envs/index.js";
import type { CausalLM } from "../../models/index.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import { RandomStream } from "../../core/random/random-stream.js";
import { EnvSlot, type EnvSlotOptions } from "./env-slot.js";
import type { Episode } from "./episode.js";
import { closeEnvs, openEnvs } from "./open-envs.js";
import { RolloutCollector, type Rollout } from "./rollout-collector.js";

/** An environment slot at the start of a job. */
export interface JobSlot {
  readonly state: EnvSlotState;
  /** Seed of the environment for the slot's first episode. */
  readonly firstSeed: number;
  /** Whether its turns are recorded. */
  readonly record: boolean;
}

/**
 * A part of a rollout: turns, or whole episodes, in some of the environment slots. It is plain
 * data. Its result depends on it and on the weights alone: a job has its own batches and caches,
 * because rounding depends on what is computed together.
 */
export interface RolloutJob {
  /** Version of the published weights that sample. */
  readonly weightsVersion: number;
  /** Version of the published weights of the past opponent, in self-play. */
  readonly pastVersion?: number;
  readonly slots: readonly JobSlot[];
  /** Index of the first slot among those of the run. */
  readonly firstSlot: number;
  /** Minimum number of turns, or the episodes to collect. */
  readonly work: { readonly turns: number } | { readonly episodes: readonly EpisodeSpec[] };
}

/** Outcome of a job. */
export interface RolloutJobResult extends Rollout {
  /** States of the slots after the job. */
  readonly states: readonly EnvSlotState[];
}

/** Trained values of a model. */
export interface TrainedWeights {
  /** Number of updates that produced them. */
  readonly version: number;
  /** Values of all trained parameters in the order of the model's parameter buffer. */
  readonly values: Float32Array;
}

/** Carries jobs to workers. A trainer does not depend on where they are. */
export interface RolloutTransport {
  /** Publishes trained values, which jobs name by their version. */
  publish(weights: TrainedWeights): Promise<void>;
  /** Publishes an earlier version of the policy, which jobs name by its version. */
  publishPast?(weights: TrainedWeights): Promise<void>;
  /** Runs a job on any worker; several may run at once. */
  run(job: RolloutJob): Promise<RolloutJobResult>;
  /** Ends the work of a run; `isFinished` also removes what was kept for resuming it. */
  close(isFinished?: boolean): Promise<void>;
}

/** Options of a `JobRunner`. */
export interface JobRunnerOptions {
  readonly model: CausalLM;
  /** Creates an episode of the agent that uses `random`. */
  readonly newEpisode: (random: RandomStream) => Episode;
  /** The policies of games; undefined without self-play. */
  readonly players?: GamePolicies;
  readonly createEnv: () => MaybePromise<Env>;
  readonly settings: EnvSlotOptions["settings"];
  readonly onWarning: (message: string) => void;
}

/** What a job needs of the policies that play games. */
export interface GamePolicies {
  createSlot(env: Env, random: RandomStream, options: { readonly index: number }): RolloutSlot;
  loadPast(values: Float32Array): Promise<void>;
  clearCaches(): void;
  release(): Promise<void>;
}

/**
 * Runs jobs in this process, one after another. Environments are reused: a job's state or a reset
 * replaces theirs.
 */
export class JobRunner {
  private idleEnvs: Env[] = [];
  private last: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: JobRunnerOptions) {}

  /**
   * Runs a job after those before it; `prepare` is called first. @throws what the agent and the
   * environment throw.
   */
  async run(job: RolloutJob, prepare: () => MaybePromise<void> = () => {}): Promise<RolloutJobResult> {
    const result = this.last.then(async () => {
      await prepare();
      return this.runAlone(job);
    });
    this.last = result.catch(() => {});
    return result;
  }

  async close(): Promise<void> {
    await this.last;
    await this.options.players?.release();
    await closeEnvs(this.idleEnvs, this.options.onWarning);
  }

  private async runAlone({ slots, firstSlot, work }: RolloutJob): Promise<RolloutJobResult> {
    const { newEpisode, settings, model, onWarning, players } = this.options;
    // Cached results may come from other batches.
    model.clearCaches();
    players?.clearCaches();
    const envs = await this.takeEnvs(slots);
    try {
      const envSlots = slots.map(({ state, firstSeed, record }, i) => {
        const random = new RandomStream(0);
        const index = firstSlot + i;
        const options = { newEpisode: () => newEpisode(random), random, settings, index, firstSeed, record };
        const slot = players?.createSlot(envs[i], random, { index }) ?? new EnvSlot(envs[i], options);
        // Episodes with their own seed need no new one for an environment that could not be saved.
        const needsNoSeed = state.env === null && "episodes" in work;
        slot.setState(needsNoSeed ? { ...state, hasStarted: false } : state);
        return slot;
      });
      const collector = new RolloutCollector(envSlots);
      const rollout =
        "turns" in work
          ? await collector.collectTurns(work.turns, { completesUnsaved: true })
          : await collector.collectEpisodes(work.episodes);
      const result = { ...rollout, states: collector.getState() };
      this.idleEnvs.push(...envs);
      return result;
    } catch (error) {
      await closeEnvs(envs, onWarning);
      throw error;
    }
  }

  /**
   * A slot's first job gets a new environment, because others may have statistics that a reset
   * keeps.
   */
  private async takeEnvs(slots: readonly JobSlot[]): Promise<Env[]> {
    const { createEnv, settings } = this.options;
    const reused = slots.map(({ state }) => (state.hasStarted ? this.idleEnvs.pop() : undefined));
    const missing = reused.filter((env) => env === undefined).length;
    const created = await openEnvs(createEnv, missing, settings);
    return reused.map((env) => env ?? created.pop()!);
  }
}

/** Runs jobs in this process with the weights of the trained model, whatever their version. */
export class InProcessTransport implements RolloutTransport {
  private readonly runner: JobRunner;
  private past: TrainedWeights | undefined;

  constructor(private readonly options: JobRunnerOptions) {
    this.runner = new JobRunner(options);
  }

  async publish(): Promise<void> {}

  async publishPast({ version, values }: TrainedWeights): Promise<void> {
    this.past = { version, values };
  }

  async run(job: RolloutJob): Promise<RolloutJobResult> {
    const { past, options } = this;
    return this.runner.run(job, async () => {
      if (past !== undefined) await options.players?.loadPast(past.values);
    });
  }

  async close(): Promise<void> {
    await this.runner.close();
  }
}
