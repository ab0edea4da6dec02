import { errorMessage, LlamaGymError } from "../../core/errors.js";
import { printWarningOnce } from "../../core/terminal-text.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import type { Env, StepResult, Info } from "../../envs/index.js";
import { checkObservation, checkResetResult, checkStepResult, readSuccess } from "./validate-env-output.js";
import { DEFAULT_CALL_LIMIT, limitCall, type CallLimit } from "./call-limit.js";

/** Steps of an episode after which a warning says that it may have no end. */
const LONG_EPISODE = 10_000;

export interface EpisodeRunnerOptions {
  /** Settings with the time limit of the environment's calls. Default: 300 seconds. */
  readonly settings?: CallLimit;
  /** Position among the environments of a run, for messages. */
  readonly index?: number;
}

/** A running episode without the agent's part. */
export interface EpisodeProgress<Observation> {
  readonly observation: Observation;
  readonly info: Info;
  readonly episodeReturn: number;
  readonly steps: number;
}

/**
 * Runs the episodes of an environment, whatever acts in them: calls have a time limit, results are
 * checked, and errors of the environment's code become ENV_FAILED.
 */
export class EpisodeRunner<Observation = unknown, Action = unknown> {
  /** How the episode ended; undefined while it runs. */
  end: "terminated" | "truncated" | undefined;
  /** What the environment said about the episode's success at its end; undefined if nothing. */
  isSuccess: boolean | undefined;
  private progress: EpisodeProgress<Observation> | undefined;

  constructor(
    readonly env: Env<Observation, Action>,
    private readonly options: EpisodeRunnerOptions = {},
  ) {}

  /** The last observation. */
  get observation(): Observation {
    return this.started.observation;
  }

  get info(): Info {
    return this.started.info;
  }

  /** Sum of the rewards so far. */
  get episodeReturn(): number {
    return this.started.episodeReturn;
  }

  get steps(): number {
    return this.started.steps;
  }

  get isDone(): boolean {
    return this.end !== undefined;
  }

  /** Names the environment in messages. */
  get location(): string {
    const { index } = this.options;
    return index === undefined ? this.env.toString() : `${this.env.toString()} (environment ${index})`;
  }

  /** Starts an episode. @throws ENV_FAILED */
  async reset(seed?: number): Promise<void> {
    const { env } = this;
    const result = await this.call("reset", () => env.reset(seed === undefined ? {} : { seed }));
    checkResetResult(result, env.toString());
    const { observation, info } = result;
    checkObservation(observation, env.toString());
    this.restore({ observation, info, episodeReturn: 0, steps: 0 });
  }

  /**
   * Takes a step. @throws ENV_FAILED, and errors with a code that the environment throws, such as
   * ENV_ACTION_INVALID.
   */
  async step(action: Action): Promise<StepResult<Observation>> {
    const { env, episodeReturn, steps } = this;
    const result = await this.call("step", () => env.step(action));
    checkStepResult(result, env.toString());
    const { observation, reward, terminated, truncated, info } = result;
    // Nothing reads a terminal observation but a recording.
    if (!terminated) checkObservation(observation, env.toString());
    this.restore({ observation, info, episodeReturn: episodeReturn + reward, steps: steps + 1 });
    this.end = terminated ? "terminated" : truncated ? "truncated" : undefined;
    if (this.isDone) this.isSuccess = readSuccess(info, env.toString());
    else if (steps + 1 === LONG_EPISODE)
      printWarningOnce(
        `An episode of ${env.toString()} has not ended after ${LONG_EPISODE} steps. Evaluations wait for its end: ` +
          "if it may have none, limit it with maxEpisodeSteps (--max-episode-steps).",
        `${env.toString()}: endless`,
      );
    return result;
  }

  /** Renders the state as text; undefined for an environment that cannot. @throws ENV_FAILED */
  async render(): Promise<string | undefined> {
    const { env } = this;
    if (!env.metadata.renderModes.includes("ansi")) return undefined;
    const frame = await this.call("render", () => env.render("ansi"));
    return typeof frame === "string" ? frame : undefined;
  }

  /** Continues an episode of the environment's present state. */
  restore(progress: EpisodeProgress<Observation>): void {
    this.progress = progress;
    this.end = undefined;
    this.isSuccess = undefined;
  }

  private get started(): EpisodeProgress<Observation> {
    if (this.progress !== undefined) return this.progress;
    throw new LlamaGymError("INVALID_STATE", `No episode of ${this.location} has been started. Call reset first.`);
  }

  private async call<Result>(method: "reset" | "step" | "render", call: () => MaybePromise<Result>): Promise<Result> {
    const { settings = DEFAULT_CALL_LIMIT } = this.options;
    const subject = () => `\`${method}\` of ${this.location}`;
    try {
      return await limitCall(settings, call, { subject, code: "ENV_FAILED" });
    } catch (error) {
      if (error instanceof LlamaGymError) throw error;
      throw new LlamaGymError("ENV_FAILED", `${this.env.toString()} threw in ${method}: ${errorMessage(error)}`, {
        cause: error,
      });
    }
  }
}
