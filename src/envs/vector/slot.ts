import { LlamaGymError } from "../../errors.js";
import type { Env, RenderFrame, RenderMode, ResetOptions, ResetResult, StepResult } from "../env.js";
import type { MaybePromise } from "../maybe-promise.js";
import { zeroValue } from "../spaces/zero-value.js";
import type { AutoresetMode, SlotState, VectorOptions } from "./vector-env.js";

/** Mistakes of the caller: they are never taken for a failure of the environment. */
const CALLER_ERRORS: readonly string[] = ["ENV_ACTION_INVALID", "ENV_NOT_RESET", "INVALID_ARGUMENT"];

export type SlotOptions = Required<VectorOptions>;

/** One environment of a vector: applies the autoreset mode and the failure policy to it. */
export class EnvSlot {
  env: Env;
  private hasEnded: boolean;
  private hasFailed = false;

  constructor(
    env: Env,
    private readonly makeAgain: () => MaybePromise<Env>,
    private readonly index: number,
    private readonly options: SlotOptions,
    startEnded = false,
  ) {
    this.env = env;
    this.hasEnded = startEnded;
  }

  async reset(options: ResetOptions): Promise<ResetResult<unknown>> {
    try {
      if (this.hasFailed) await this.renew();
      const result = await this.env.reset(options);
      this.hasEnded = false;
      return result;
    } catch (error) {
      // A reset has no step to truncate, so that it fails under either policy.
      throw this.failure("reset", error);
    }
  }

  async step(action: unknown): Promise<StepResult<unknown>> {
    const mode: AutoresetMode = this.options.autoresetMode;
    if (this.hasEnded && mode === "disabled") {
      throw new LlamaGymError(
        "ENV_NOT_RESET",
        `Environment ${this.index} of the vector has ended its episode. Call reset({ resetMask }) for it before the next step.`,
      );
    }
    if (this.hasEnded) {
      const { observation, info } = await this.reset({});
      return { observation, reward: 0, terminated: false, truncated: false, info };
    }
    const result = await this.guardedStep(action);
    this.hasEnded = result.terminated || result.truncated;
    if (!this.hasEnded || mode !== "same-step") return result;
    const { observation, info } = await this.reset({});
    return { ...result, observation, info: { ...info, finalObservation: result.observation, finalInfo: result.info } };
  }

  async render(mode: RenderMode): Promise<RenderFrame> {
    return await this.env.render(mode);
  }

  getState(): SlotState {
    return { env: this.env.getState(), hasEnded: this.hasEnded };
  }

  setState(state: SlotState): void {
    this.env.setState(state.env);
    this.hasEnded = state.hasEnded;
  }

  async close(): Promise<void> {
    await this.env.close();
  }

  private async guardedStep(action: unknown): Promise<StepResult<unknown>> {
    try {
      return await this.env.step(action);
    } catch (error) {
      const failure = this.failure("step", error);
      if (this.options.onFailure === "stop" || failure === error) throw failure;
      this.hasFailed = true;
      return failedStep(this.env, failure);
    }
  }

  /** What to throw: the caller's own mistake as it is, anything else with the environment's number. */
  private failure(method: string, error: unknown): unknown {
    if (error instanceof LlamaGymError && CALLER_ERRORS.includes(error.code)) return error;
    const message = error instanceof Error ? error.message : String(error);
    return new LlamaGymError(
      "ENV_FAILED",
      `Environment ${this.index} of the vector failed in ${method}(): ${message}`,
      {
        cause: error,
      },
    );
  }

  private async renew(): Promise<void> {
    await Promise.resolve(this.env.close()).catch(() => undefined);
    this.env = await this.makeAgain();
    this.hasFailed = false;
  }
}

/** The step that stands for a failure: truncated, without reward, the error in its info. */
export function failedStep(env: Pick<Env, "observationSpace">, error: unknown): StepResult<unknown> {
  const message = error instanceof Error ? error.message : String(error);
  const observation = zeroValue(env.observationSpace);
  return { observation, reward: 0, terminated: false, truncated: true, info: { error: message } };
}
