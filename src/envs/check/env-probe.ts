import { LlamaGymError, describeError } from "../../core/errors.js";
import type { Env, RenderFrame, RenderMode, ResetOptions, ResetResult, StepResult } from "../env.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import { checkResetResult, checkStepResult, describeObservationProblem } from "./check-result.js";
import type { Warn } from "./check-space.js";

/** Calls an environment under test, with a time limit, and validates the results. */
export class EnvProbe {
  constructor(
    readonly env: Env,
    readonly warn: Warn,
    private readonly timeout: number,
  ) {}

  async reset(options: ResetOptions): Promise<ResetResult<unknown>> {
    const call = `reset(${formatResetOptions(options)})`;
    const result: unknown = await this.run(call, () => this.env.reset(options));
    checkResetResult(result, this.env, this.warn);
    this.checkObservation(result.observation, call);
    return result;
  }

  async step(action: unknown): Promise<StepResult<unknown>> {
    const result: unknown = await this.run("step(action)", () => this.env.step(action));
    checkStepResult(result, this.env, this.warn);
    this.checkObservation(result.observation, "step(action)");
    return result;
  }

  async render(mode: RenderMode): Promise<RenderFrame> {
    return await this.run(`render("${mode}")`, () => this.env.render(mode));
  }

  async close(): Promise<void> {
    await this.run("close()", () => this.env.close());
  }

  private checkObservation(observation: unknown, call: string): void {
    const problem = describeObservationProblem(observation, this.env.observationSpace);
    if (problem !== undefined) throw new LlamaGymError("ENV_INVALID", `The observation given by ${call} ${problem}`);
  }

  private async run<T>(call: string, method: () => MaybePromise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<never>((_, reject) => {
      const expire = () =>
        reject(
          new LlamaGymError(
            "ENV_INVALID",
            `${call} did not return within ${this.timeout} ms: most likely a promise is never resolved.`,
          ),
        );
      timer = setTimeout(expire, this.timeout);
    });
    try {
      return await Promise.race([Promise.resolve().then(method), limit]);
    } catch (error) {
      if (error instanceof LlamaGymError && error.code === "ENV_INVALID") throw error;
      throw new LlamaGymError("ENV_INVALID", `${call} threw an error: ${describeError(error)}`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }
}

function formatResetOptions({ seed, options }: ResetOptions): string {
  const parts = [seed === undefined ? "" : `seed: ${seed}`, options === undefined ? "" : "options: {}"].filter(Boolean);
  return parts.length === 0 ? "" : `{ ${parts.join(", ")} }`;
}
