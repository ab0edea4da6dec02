import { printWarning } from "../../core/terminal-text.js";
import {
  checkOptions,
  checkSettings,
  resolveSettings,
  selectSettings,
  type OtherOptions,
  type Settings,
} from "../../core/settings.js";
import { describeValue } from "../../core/format.js";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import { stream } from "../../core/random/streams.js";
import { LruCache, sizeByKey } from "../../core/lru-cache.js";
import { checkIsModel, CompletionCache, type LanguageModel } from "../../generation/index.js";
import { type AlgorithmOptions, createLearner, type Learner, selectAlgorithm } from "../../rl/algorithms/index.js";
import {
  checkNoCheckpoints,
  findLatestCheckpoint,
  restoreLatestCheckpoint,
  runTrainLoop,
  type TrainProgress,
  type TrainResult,
  computeMeanAndError,
  type EvalResult,
  INITIAL_STATE,
  type ResumedRun,
  progressFraction,
  type TrainCallbacks,
  type loopSettings,
  TrainingMonitor,
} from "../../rl/train/index.js";
import type { JudgedConversation } from "../judge/judge.js";
import { serverOptions } from "../server/server-options.js";
import { startHttpServer, type HttpServerOptions, type RunningServer } from "../server/http-server.js";
import { ModelChatEngine } from "../server/model-chat-engine.js";
import { EvaluatedSessions } from "./evaluated-sessions.js";
import { gatewaySettings, type ownGatewaySettings } from "./gateway-settings.js";
import { GatewayTask } from "./gateway-task.js";
import { mountSessionRoutes, sessionUrl } from "./session-routes.js";
import { FunctionSource, QueueSource, type AgentEpisode } from "./session-source.js";
import { withFolderLock, type FolderLock } from "../../core/files/folder-lock.js";
import { SessionStore } from "./session-store.js";
import { UpdateGate } from "./update-gate.js";

/**
 * Options of a `GatewayTrainer`.
 */
export interface GatewayTrainerOptions<Task = unknown>
  extends
    AlgorithmOptions,
    Partial<Settings<typeof ownGatewaySettings>>,
    Partial<Settings<typeof loopSettings>>,
    HttpServerOptions {
  /** With trainable parameters; for PPO with a value head. */
  readonly model: LanguageModel;
  /** Name of the model in responses. Default "llamagym". */
  readonly modelName?: string;
  /**
   * Plays one session by requests to `baseURL`. Without it, other processes open and end sessions
   * by HTTP.
   */
  readonly agent?: (episode: AgentEpisode<Task>) => MaybePromise<unknown>;
  /** Tasks of the agent, in turn; sessions of a group have the same one. */
  readonly tasks?: readonly Task[];
  /**
   * Returns a reward for the last turn of an ended session, such as `judge(...).score`: its last
   * request with the completion.
   */
  readonly sessionReward?: (conversation: JudgedConversation) => MaybePromise<number>;
  /** Folder for checkpoints; without it, nothing is saved. */
  readonly checkpointDir?: string;
  /** Lock that the program holds on the run folder; without it, `train` locks `checkpointDir`. */
  readonly lock?: FolderLock;
  /** Receives warnings, and errors that clients see as status 500; by default they are printed. */
  readonly onWarning?: (message: string) => void;
}

const otherOptions: OtherOptions<GatewayTrainerOptions, typeof gatewaySettings> = {
  model: true,
  modelName: String,
  agent: Function,
  tasks: true,
  sessionReward: Function,
  checkpointDir: String,
  lock: true,
  onWarning: Function,
  algorithm: true,
  host: true,
  port: true,
  apiKey: true,
  maxRequests: true,
};

/** Options of `GatewayTrainer.evaluate`. */
export interface GatewayEvaluateOptions<Task = unknown> {
  readonly episodes: number;
  /** Default the trainer's `agent`; without one, other processes play the sessions. */
  readonly agent?: (episode: AgentEpisode<Task>) => MaybePromise<unknown>;
  /** Seeds the seeds that the agent receives. Default 0. */
  readonly seed?: number;
  /** Aborts the wait for sessions of other processes. */
  readonly signal?: AbortSignal;
  /** Receives the number of ended sessions of other processes. */
  readonly onProgress?: (finished: number) => void;
}

type GatewayEvaluation = Pick<EvalResult, "episodes" | "meanReturn" | "standardError">;

/** Greedy completions that an evaluation keeps, for prompts that recur. */
const MAX_GREEDY_COMPLETIONS = 8192;

/** Trains a model on the sessions of an agent that calls it through an OpenAI-compatible URL. */
export class GatewayTrainer<Task = unknown> {
  private readonly settings: Settings<typeof gatewaySettings>;
  private readonly gate = new UpdateGate();
  private readonly queue: QueueSource;
  private readonly store: SessionStore;
  private readonly monitor: TrainingMonitor;
  private readonly onWarning: (message: string) => void;
  private server: RunningServer | undefined;
  private learner: Learner | undefined;
  private task: GatewayTask | undefined;
  private resumed: ResumedRun | undefined;
  /** The sessions of the evaluation that runs, if other processes play them. */
  private evaluated: EvaluatedSessions | undefined;

  /** @throws INVALID_ARGUMENT for values out of range, and without `episodes` or `turns`. */
  constructor(private readonly options: GatewayTrainerOptions<Task>) {
    const { model, modelName = "llamagym", agent, tasks, sessionReward, onWarning = printWarning } = options;
    selectAlgorithm(options);
    checkOptions("A GatewayTrainer", options, { ...gatewaySettings, ...otherOptions });
    checkIsModel("`model` must be", model);
    checkSettings(serverOptions, options);
    if (tasks !== undefined && !Array.isArray(tasks))
      throw invalidArgument(`\`tasks\` must be a list, got ${describeValue(tasks)}.`);
    this.settings = resolveSettings("A GatewayTrainer", gatewaySettings, selectSettings(gatewaySettings, options));
    const { episodes, turns } = this.settings;
    if (episodes === undefined && turns === undefined)
      throw invalidArgument("The GatewayTrainer needs the length of the run: set `episodes` or `turns`.");
    if (agent !== undefined && tasks?.length === 0)
      throw invalidArgument("`tasks` is empty. Name at least one, or leave it out.");
    const { sessionTimeoutSeconds, temperature, maxCompletionLength, seed, entropyFloor } = this.settings;
    this.onWarning = onWarning;
    this.queue = new QueueSource(onWarning);
    this.monitor = new TrainingMonitor({ entropyFloor, onWarning });
    this.store = new SessionStore({
      engine: new ModelChatEngine(model, modelName),
      gate: this.gate,
      seed,
      temperature,
      maxCompletionLength,
      cache: new CompletionCache(),
      updates: () => this.updates,
      sessionReward,
      sessionTimeoutMs: sessionTimeoutSeconds * 1000,
      onWarning,
      onEnd: (session, record) => {
        if (session.isGreedy) this.evaluated?.add(session, record);
        else if (agent === undefined && record !== undefined) this.queue.add(session, record);
      },
    });
  }

  /** Address of the gateway. @throws INVALID_STATE before `listen`. */
  get url(): string {
    if (this.server !== undefined) return this.server.url;
    throw new LlamaGymError("INVALID_STATE", "The gateway does not listen yet; call `listen` or `train` first.");
  }

  /** Number of updates so far. */
  get updates(): number {
    return this.task?.updates ?? 0;
  }

  /**
   * Starts the gateway's server, unless it runs. Default port: a free one. @throws as
   * `startHttpServer`.
   */
  async listen(): Promise<string> {
    const { host, port = 0, apiKey, maxRequests } = this.options;
    this.server ??= await startHttpServer({ host, port, apiKey, maxRequests }, (app, metrics) =>
      mountSessionRoutes(app, this.store, { metrics, onError: (error) => this.onWarning(String(error)) }),
    );
    return this.server.url;
  }

  /**
   * Restores the newest checkpoint, if there is one, and returns the number of updates made so far.
   * @throws as `Trainer.resume`.
   */
  async resume(): Promise<number> {
    const { checkpointDir } = this.options;
    this.resumed = await restoreLatestCheckpoint(checkpointDir, async () => this.openTask(), this.onWarning);
    return this.resumed?.state.updates ?? 0;
  }

  /**
   * Trains until the sessions or turns are complete or `signal` aborts, then closes the gateway.
   * Can be called once.
   * @throws AGENT_FAILED if the agent throws, what the algorithm throws (the last checkpoint
   * remains), INVALID_STATE if `checkpointDir` contains another run, and FOLDER_IN_USE while
   * another process writes to it.
   */
  async train(callbacks: Omit<TrainCallbacks, "onWarmStart"> = {}): Promise<TrainResult> {
    const { lock, checkpointDir } = this.options;
    if (lock !== undefined) return this.trainLocked(callbacks, lock);
    return withFolderLock(checkpointDir, async (taken) => this.trainLocked(callbacks, taken));
  }

  private async trainLocked(
    callbacks: Omit<TrainCallbacks, "onWarmStart">,
    lock: FolderLock | undefined,
  ): Promise<TrainResult> {
    const { options, resumed, monitor } = this;
    const { checkpointDir } = options;
    const { signal } = callbacks;
    if (resumed === undefined)
      await checkNoCheckpoints(checkpointDir, "Call resume() before train(), or choose another folder.");
    const abort = () => this.queue.abort(signal?.reason);
    signal?.addEventListener("abort", abort);
    // Sessions may not come for hours.
    const reportLoss = () => void lock?.verify().catch((error: unknown) => this.queue.abort(error));
    lock?.lost.addEventListener("abort", reportLoss);
    let result: Pick<TrainResult, "state" | "metrics"> = { state: resumed?.state ?? INITIAL_STATE, metrics: {} };
    try {
      const task = await this.openTask();
      await this.listen();
      const onUpdate = (event: TrainProgress) => {
        result = event;
        return callbacks.onUpdate?.(event);
      };
      return await runTrainLoop(task, {
        ...this.settings,
        ...callbacks,
        resumed,
        monitor,
        checkpointDir,
        lock,
        onUpdate,
      });
    } catch (error) {
      // The loop saved a checkpoint before it threw.
      if (signal?.aborted !== true || error !== signal.reason) throw error;
      const { state, metrics } = result;
      const latestCheckpoint = checkpointDir === undefined ? undefined : await findLatestCheckpoint(checkpointDir);
      return { state, metrics, isInterrupted: true, latestCheckpoint };
    } finally {
      signal?.removeEventListener("abort", abort);
      lock?.lost.removeEventListener("abort", reportLoss);
      await this.close();
    }
  }

  /**
   * Plays sessions greedily, without training on them, and returns their mean return. Without an
   * agent, these are the first `episodes` sessions that other processes open from now on.
   * @throws AGENT_FAILED if the agent throws, or no session requests a completion; the reason of
   * `signal`.
   */
  async evaluate(options: GatewayEvaluateOptions<Task>): Promise<GatewayEvaluation> {
    checkOptions("evaluate", options, {
      episodes: true,
      agent: Function,
      seed: true,
      signal: AbortSignal,
      onProgress: Function,
    });
    const { episodes, agent = this.options.agent, seed = 0, signal, onProgress } = options;
    if (!Number.isInteger(episodes) || episodes < 1)
      throw invalidArgument(`\`episodes\` must be an integer >= 1, got ${episodes}.`);
    const { store, server } = this;
    const { model } = this.options;
    const { count } = store;
    await this.listen();
    store.greedy = new LruCache(MAX_GREEDY_COMPLETIONS, sizeByKey);
    try {
      if (agent === undefined)
        return await model.runIsolated(async () =>
          this.evaluateOthers(new EvaluatedSessions(count, episodes, onProgress), signal),
        );
      const seeds = stream(seed, "evaluationStarts");
      const specs = Array.from({ length: episodes }, () => ({ seed: seeds.integers(0, 2 ** 31) }));
      const { finishedEpisodes } = await model.runIsolated(() => this.functionSource(agent).collectEpisodes(specs));
      return { episodes, ...computeMeanAndError(finishedEpisodes.map((episode) => episode.return)) };
    } finally {
      store.greedy = undefined;
      // Like the caches, the seeds of later sessions do not depend on evaluations.
      store.count = count;
      if (server === undefined) await this.close();
    }
  }

  private async evaluateOthers(sessions: EvaluatedSessions, signal?: AbortSignal): Promise<GatewayEvaluation> {
    const abort = () => sessions.abort(signal?.reason);
    this.evaluated = sessions;
    signal?.addEventListener("abort", abort);
    try {
      if (signal?.aborted === true) abort();
      await sessions.ended;
    } finally {
      this.evaluated = undefined;
      signal?.removeEventListener("abort", abort);
    }
    const { returns } = sessions;
    if (returns.length > 0) return { episodes: returns.length, ...computeMeanAndError(returns) };
    throw new LlamaGymError(
      "AGENT_FAILED",
      "No session requested a completion. The agent's client must use the `baseURL` of its session.",
    );
  }

  /** Closes the gateway and the learner; `train` does so at its end. The model stays open. */
  async close(): Promise<void> {
    this.store.close();
    await this.server?.close(0);
    this.server = undefined;
    await this.learner?.release();
    this.learner = undefined;
  }

  private functionSource(agent: (episode: AgentEpisode<Task>) => MaybePromise<unknown>): FunctionSource<Task> {
    const { tasks = [undefined as Task] } = this.options;
    const { numSessions } = this.settings;
    const baseURL = ({ id }: { readonly id: string }) => sessionUrl(this.url, id);
    return new FunctionSource(this.store, { agent, tasks, numSessions, baseURL });
  }

  private async openTask(): Promise<GatewayTask> {
    if (this.task !== undefined) return this.task;
    const { model, agent } = this.options;
    const { seed, numSessions, episodes, turns, rollouts } = this.settings;
    this.learner = await createLearner(model, {
      ...this.options,
      ...this.settings,
      isTruncatedSampling: false,
      random: stream(seed, "learner"),
    });
    const source = agent === undefined ? this.queue : this.functionSource(agent);
    this.task = new GatewayTask({
      model,
      learner: this.learner,
      source,
      store: this.store,
      gate: this.gate,
      // Sessions of other processes are taken as they end.
      numSessions: agent === undefined ? 1 : numSessions,
      episodes,
      rollouts,
      progress: (state) => progressFraction({ episodes, turns }, state),
      onWarning: this.onWarning,
    });
    return this.task;
  }
}

/**
 * Starts a gateway for agents in other processes: `POST /sessions` opens a session. Call `train` of
 * the result.
 * @throws as the constructor of `GatewayTrainer`, and as its `listen`.
 */
export async function createGateway(options: Omit<GatewayTrainerOptions, "agent" | "tasks">): Promise<GatewayTrainer> {
  const trainer = new GatewayTrainer(options);
  await trainer.listen();
  return trainer;
}
