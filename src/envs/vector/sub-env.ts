import { LlamaGymError, errorMessage } from "../../core/errors.js";
import {
  closeEnv,
  requireEnv,
  saveEnvState,
  type Env,
  type RenderFrame,
  type RenderMode,
  type ResetOptions,
  type ResetResult,
  type StepResult,
} from "../env.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import { createZeroValue } from "../spaces/zero-value.js";
import type { AutoresetMode, SubEnvState, VectorOptions } from "./vector-env.js";

/** Error codes of the caller's mistakes, which the failure policy does not cover. */
const CALLER_ERRORS: readonly string[] = ["ENV_ACTION_INVALID", "ENV_NOT_RESET", "INVALID_ARGUMENT"];

export type SubEnvOptions = Required<VectorOptions>;

/** One environment of a vector, with its autoreset mode and failure policy. */
export class SubEnv {
  env: Env;
  private hasEnded: boolean;
  private hasFailed = false;

  constructor(
    env: Env,
    private readonly makeEnv: () => MaybePromise<Env>,
    private readonly index: number,
    private readonly options: SubEnvOptions,
    initiallyEnded = false,
  ) {
    this.env = env;
    this.hasEnded = initiallyEnded;
  }

  async reset(options: ResetOptions): Promise<ResetResult<unknown>> {
    try {
      if (this.hasFailed) await this.recreate();
      const result = await this.env.reset(options);
      this.hasEnded = false;
      return result;
    } catch (error) {
      // A reset has no step to truncate, so it fails under either policy.
      throw this.envError("reset", error);
    }
  }

  async step(action: unknown): Promise<StepResult<unknown>> {
    const mode: AutoresetMode = this.options.autoresetMode;
    if (this.hasEnded && mode === "disabled")
      throw new LlamaGymError(
        "ENV_NOT_RESET",
        `Environment ${this.index} of the vector has ended its episode. Call reset({ resetMask }) for it before the next step.`,
      );
    if (this.hasEnded) {
      const { observation, info } = await this.reset({});
      return { observation, reward: 0, terminated: false, truncated: false, info };
    }
    const result = await this.tryStep(action);
    this.hasEnded = result.terminated || result.truncated;
    if (!this.hasEnded || mode !== "same-step") return result;
    const { observation, info } = await this.reset({});
    return { ...result, observation, info: { ...info, finalObservation: result.observation, finalInfo: result.info } };
  }

  async render(mode: RenderMode): Promise<RenderFrame> {
    return await this.env.render(mode);
  }

  getState(): SubEnvState {
    return { env: saveEnvState(this.env), hasEnded: this.hasEnded };
  }

  setState(state: SubEnvState): void {
    this.env.setState(state.env);
    this.hasEnded = state.hasEnded;
  }

  async close(): Promise<void> {
    await closeEnv(this.env);
  }

  private async tryStep(action: unknown): Promise<StepResult<unknown>> {
    try {
      return await this.env.step(action);
    } catch (error) {
      const envError = this.envError("step", error);
      if (this.options.onFailure === "stop" || envError === error) throw envError;
      this.hasFailed = true;
      return createFailedStep(this.env, envError);
    }
  }

  /** Returns the caller's own mistake unchanged, any other error with the environment's index. */
  private envError(method: string, error: unknown): unknown {
    if (error instanceof LlamaGymError && CALLER_ERRORS.includes(error.code)) return error;
    const problem = `Environment ${this.index} of the vector failed in ${method}(): ${errorMessage(error)}`;
    return new LlamaGymError("ENV_FAILED", problem, { cause: error });
  }

  private async recreate(): Promise<void> {
    await closeEnv(this.env).catch(() => undefined);
    this.env = requireEnv(await this.makeEnv(), `The factory of environment ${this.index}`);
    this.hasFailed = false;
  }
}

/**
 * Returns the step that replaces a failure: truncated, with zero reward and the error in its info.
 */
export function createFailedStep(env: Pick<Env, "observationSpace">, error: unknown): StepResult<unknown> {
  const observation = createZeroValue(env.observationSpace);
  return { observation, reward: 0, terminated: false, truncated: true, info: { error: errorMessage(error) } };
}
