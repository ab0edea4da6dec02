import { stream } from "../../core/random/streams.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import { LlamaGymError } from "../../core/errors.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import type { Env } from "../../envs/index.js";
import type { Agent } from "../agent/agent.js";
import type { GroupSpec, Metrics } from "../algorithms/learner.js";
import { EnvSlot } from "../rollout/env-slot.js";
import { closeEnvs, openEnvs } from "../rollout/open-envs.js";
import { JobCollector } from "../rollout/job-collector.js";
import { RolloutCollector, type Rollout, type RolloutSource } from "../rollout/rollout-collector.js";
import type { RolloutTransport } from "../rollout/rollout-job.js";
import type { CompletionRow } from "../tracking/index.js";
import type { Settings } from "../../core/settings.js";
import type { BestModel } from "./best-model.js";
import { collectGroups } from "./collect-groups.js";
import { describeFirstRollout } from "../rollout/describe-first-rollout.js";
import { evaluate } from "./evaluate.js";
import { evaluateExact, requireExactGame, toExactMetrics, type ExactEvaluations } from "./evaluate-exact.js";
import { LearnerTask } from "./learner-task.js";
import type { League, Snapshot } from "./league.js";
import { recordedGroups, SAMPLED_ENV_SLOTS, type RolloutMode } from "./record-rollout.js";
import { countRollout, describeRollout, sampleCompletionRows } from "./rollout-metrics.js";
import { RolloutPipeline, type RolloutState } from "./rollout-pipeline.js";
import { createLeague, GamePlayers } from "./self-play.js";
import type { trainerSettings } from "./trainer-settings.js";
import { addCounts, type RolloutCounts, type TrainerState } from "./train-task.js";

export interface RolloutTaskOptions extends Omit<Settings<typeof trainerSettings>, "episodes"> {
  readonly agent: Agent;
  readonly createEnv: () => MaybePromise<Env>;
  /** Returns the episodes of the run; if undefined, turns limit it. */
  readonly episodes: () => number | undefined;
  /** Which episodes are recorded. */
  readonly rollouts: RolloutMode;
  readonly progress: (state: TrainerState) => number;
  readonly onWarning: (message: string) => void;
  /** Collects on workers instead of in this process. */
  readonly transport?: RolloutTransport;
  /** Saves the parameters of the best evaluation. */
  readonly bestModel?: BestModel;
}

/** Online reinforcement learning in environments. */
export class RolloutTask extends LearnerTask<Rollout, RolloutState> {
  private constructor(
    private readonly options: RolloutTaskOptions,
    private readonly envs: Env[],
    private readonly source: RolloutSource,
    private readonly episodeStarts: RandomStream,
    private readonly pipeline: RolloutPipeline | undefined,
    /** Only with self-play. */
    private readonly games: { readonly league: League; readonly players: GamePlayers } | undefined,
  ) {
    const { agent, rollouts } = options;
    super(agent.model, rollouts, () => agent.getLearner());
  }

  /** Opens the environments, unless workers do. */
  static async open(options: RolloutTaskOptions): Promise<RolloutTask> {
    const { agent, createEnv, numEnvs, seed, rollouts, transport } = options;
    const recordedSlots = { none: 0, samples: SAMPLED_ENV_SLOTS, all: numEnvs }[rollouts];
    const { settings } = agent;
    if (options.evalExact) await checkExact(createEnv, options);
    const envs = await openEnvs(createEnv, transport === undefined ? numEnvs : options.selfPlay ? 1 : 0, settings);
    const games = options.selfPlay
      ? { league: await openLeague(envs, options), players: new GamePlayers(agent) }
      : undefined;
    const episodeStarts = stream(seed, "episodeStarts");
    const starts = Array.from({ length: numEnvs }, (_, index) => ({
      random: stream(seed, "rollout", index),
      firstSeed: episodeStarts.integers(0, 2 ** 31),
    }));
    if (transport !== undefined)
      return RolloutTask.overTransport(options, transport, { episodeStarts, starts, recordedSlots, envs, games });
    const envSlots = envs.map((env, index) => {
      const { random, firstSeed } = starts[index];
      if (games !== undefined) return games.players.createSlot(env, random, { index });
      return new EnvSlot(env, {
        newEpisode: () => agent.newEpisode(random),
        random,
        settings,
        index,
        firstSeed,
        record: index < recordedSlots,
      });
    });
    return new RolloutTask(options, envs, new RolloutCollector(envSlots), episodeStarts, undefined, games);
  }

  private static overTransport(
    options: RolloutTaskOptions,
    transport: RolloutTransport,
    {
      episodeStarts,
      starts,
      recordedSlots,
      envs,
      games,
    }: {
      readonly episodeStarts: RandomStream;
      readonly starts: readonly { readonly random: RandomStream; readonly firstSeed: number }[];
      readonly recordedSlots: number;
      readonly envs: Env[];
      readonly games: RolloutTask["games"];
    },
  ): RolloutTask {
    const slots = starts.map(({ random, firstSeed }, index) => ({
      state: { env: null, hasStarted: false, random: random.getState(), episode: null },
      firstSeed,
      record: index < recordedSlots,
    }));
    const pipeline = new RolloutPipeline({
      slots,
      slotsPerJob: options.envsPerJob,
      episodeStarts,
      transport,
      model: options.agent.model.causalLM,
      maxStaleness: options.maxStaleness,
      collect: async (source, state, onProgress, snapshots) => task.collectFrom(source, state, onProgress, snapshots),
      snapshots: () => games?.league.snapshots ?? [],
      advance: (state, rollout) => addCounts(state, task.count(rollout), 0),
      progress: options.progress,
    });
    const task: RolloutTask = new RolloutTask(
      options,
      envs,
      new JobCollector(transport, slots, options.envsPerJob),
      episodeStarts,
      pipeline,
      games,
    );
    return task;
  }

  progress(state: TrainerState): number {
    return this.options.progress(state);
  }

  async collect(state: TrainerState, onProgress: (current: TrainerState) => void): Promise<Rollout> {
    await this.games?.league.addIfDue(this.model.causalLM, state.updates);
    const rollout = await (this.pipeline?.collect(state, onProgress) ??
      this.collectFrom(this.source, state, onProgress, this.games?.league.snapshots ?? []));
    if (state.updates === 0) for (const problem of describeFirstRollout(rollout)) this.options.onWarning(problem);
    return rollout;
  }

  override async prepare(rollout: Rollout): Promise<unknown> {
    this.games?.league.count(rollout.finishedEpisodes);
    return super.prepare(rollout);
  }

  private async collectFrom(
    source: RolloutSource,
    state: TrainerState,
    onProgress: (current: TrainerState) => void,
    snapshots: readonly Snapshot[],
  ): Promise<Rollout> {
    const { games, episodeStarts } = this;
    const { rolloutSpec } = await this.getLearner();
    let { episodes } = state;
    const reportProgress = (turns: number, finished: readonly unknown[]) => {
      episodes += finished.length;
      onProgress({ ...state, turns: state.turns + turns, episodes });
    };
    if (rolloutSpec.kind === "turns" && games === undefined)
      return source.collectTurns(rolloutSpec.turns, { onProgress: reportProgress });
    const past = games?.league.drawPast(snapshots, episodeStarts);
    if (past !== undefined) await this.loadPast(source, past);
    const totalEpisodes = this.options.episodes();
    return collectGroups(source, rolloutSpec.kind === "turns" ? this.wholeGames(rolloutSpec.turns) : rolloutSpec, {
      nextSeed: () => episodeStarts.integers(0, 2 ** 31),
      nextMatchup: games && (() => games.league.drawMatchup(past, episodeStarts)),
      maxEpisodes: totalEpisodes === undefined ? undefined : totalEpisodes - state.episodes,
      recordedGroups: recordedGroups(this.rolloutMode),
      onProgress: reportProgress,
    });
  }

  /** Makes the past opponent of a rollout available where its games are played. */
  private async loadPast(source: RolloutSource, { updates, values }: Snapshot): Promise<void> {
    if (source instanceof JobCollector) await source.publishPast({ version: updates, values });
    else await this.games!.players.loadPast(values);
  }

  /** Games are collected whole: a reward may come after the other seat's move. */
  private wholeGames(minTurns: number): GroupSpec {
    return {
      kind: "groups",
      groups: this.options.numEnvs,
      groupSize: 1,
      minTurns,
      maxResamples: 0,
      hasSignal: () => true,
    };
  }

  count(rollout: Rollout): RolloutCounts {
    return countRollout(rollout);
  }

  describe(rollout: Rollout, state: TrainerState, seconds: number): Metrics {
    return describeRollout(rollout, state, seconds);
  }

  sampleCompletions({ trajectories }: Rollout, count: number): readonly CompletionRow[] {
    return sampleCompletionRows(trajectories, count, this.model.tokenizer);
  }

  async evaluate({ updates }: TrainerState): Promise<Metrics | undefined> {
    const { evalEpisodes, evalExact } = this.options;
    if (evalEpisodes === 0 && !evalExact) return undefined;
    return {
      ...(evalEpisodes === 0 ? {} : await this.evaluateGreedy(updates)),
      ...(evalExact ? toExactMetrics(await this.evaluateExact()) : {}),
    };
  }

  private async evaluateGreedy(updates: number): Promise<Metrics> {
    const { agent, createEnv, evalEpisodes: episodes, bestModel, onWarning } = this.options;
    // Not the episodes of evaluations outside training, on which the best model would look better
    // than it is.
    const seed = stream(this.options.seed, "trainingEvaluation").integers(0, 2 ** 31);
    const result = await evaluate(agent, createEnv, { episodes, seed, onWarning });
    const { meanReturn, standardError, meanLength, successRate } = result;
    await bestModel?.saveIfBetter({ updates, meanReturn });
    return {
      "eval/mean_return": meanReturn,
      "eval/standard_error": standardError,
      "eval/mean_length": meanLength,
      ...(successRate === undefined ? {} : { "eval/success_rate": successRate }),
    };
  }

  private async evaluateExact(): Promise<ExactEvaluations> {
    const { agent, createEnv, onWarning } = this.options;
    const env = await createEnv();
    try {
      return await evaluateExact(agent, env);
    } finally {
      await closeEnvs([env], onWarning);
    }
  }

  protected override getRolloutState(dropRollout: boolean): RolloutState {
    // Workers may be ahead of the last update; a resumed run repeats what they collected since.
    const collected = this.pipeline?.state ?? {
      envSlots: this.source.getState({ dropEpisodes: dropRollout }),
      episodeStarts: this.episodeStarts.getState(),
    };
    return this.games === undefined ? collected : { ...collected, league: this.games.league.getState() };
  }

  override async saveModel(folder: string): Promise<void> {
    await super.saveModel(folder);
    await this.games?.league.save(folder);
  }

  /** @throws RUN_INCOMPATIBLE for a checkpoint with another number of environments. */
  protected override checkRolloutState({ envSlots }: RolloutState, folder: string): void {
    const { numEnvs } = this.options;
    if (envSlots.length === numEnvs) return;
    throw new LlamaGymError(
      "RUN_INCOMPATIBLE",
      `The checkpoint ${folder} has ${envSlots.length} environments, this run has ${numEnvs}. Set numEnvs to ${envSlots.length}.`,
    );
  }

  protected override setRolloutState({ envSlots, episodeStarts }: RolloutState): void {
    this.episodeStarts.setState(episodeStarts);
    this.source.setState(envSlots);
    if (envSlots.some(({ env, hasStarted }) => hasStarted && env === null))
      this.options.onWarning(
        "This environment does not support saving its state, so the run continues with new episodes.",
      );
  }

  protected override async loadModel(folder: string, { league }: RolloutState): Promise<void> {
    await this.options.agent.load(folder);
    if (league !== undefined) await this.games?.league.load(folder, league);
  }

  async close(): Promise<void> {
    await this.games?.players.release();
    await closeEnvs(this.envs, this.options.onWarning);
  }
}

/** Creates the league of a run; closes the environments if it fails. Throws as `createLeague`. */
async function openLeague(envs: Env[], options: RolloutTaskOptions): Promise<League> {
  try {
    return await createLeague(envs[0], options, options.agent);
  } catch (error) {
    await closeEnvs(envs, options.onWarning);
    throw error;
  }
}

/**
 * Checks that exact values can be computed, before training. @throws ENV_INVALID or
 * INVALID_ARGUMENT
 */
async function checkExact(createEnv: () => MaybePromise<Env>, { agent, onWarning }: RolloutTaskOptions): Promise<void> {
  const envs = await openEnvs(createEnv, 1, agent.settings);
  try {
    requireExactGame(agent, envs[0]);
  } finally {
    await closeEnvs(envs, onWarning);
  }
}
