import { LlamaGymError, errorMessage, invalidEnv } from "../../core/errors.js";
import type { Env, ResetResult, StepResult, RenderFrame, RenderMode, ResetOptions } from "../env.js";
import type { Info } from "../info.js";
import { isReward, REWARD_RULE } from "../reward-limit.js";
import {
  cloneSpace,
  createZeroValue,
  Discrete,
  formatValue,
  MultiBinary,
  MultiDiscrete,
  Text,
  type Space,
} from "../spaces/index.js";
import type { Warn } from "./check-space.js";
import type { MaybePromise } from "../../core/maybe-promise.js";

/** Checks the result of `reset`. @throws ENV_INVALID when it is not `{ observation, info }`. */
export function checkResetResult(result: unknown, env: Env, warn: Warn): asserts result is ResetResult<unknown> {
  checkFields(result, env, "reset");
  checkObservation(result.observation, env.observationSpace, "reset", warn);
}

/**
 * Checks the result of `step`. @throws ENV_INVALID when it is not
 * `{ observation, reward, terminated, truncated, info }`.
 */
export function checkStepResult(result: unknown, env: Env, warn: Warn): asserts result is StepResult<unknown> {
  checkFields(result, env, "step");
  const { observation, reward, terminated, truncated, done } = result as Partial<Record<string, unknown>>;
  if (done !== undefined && terminated === undefined) {
    warn(
      "step() returns `done`, as in Gym's old API: return `terminated` for the end of the task and `truncated` for a limit.",
    );
  }
  for (const [name, value] of Object.entries({ terminated, truncated })) {
    if (typeof value !== "boolean") warn(`Expects \`${name}\` to be a boolean, actual type: ${typeof value}`);
  }
  checkObservation(observation, env.observationSpace, "step", warn);
  checkReward(reward, warn);
}

/**
 * Warns of an action that an environment accepted although it is none of its space: a text in place
 * of its number, say, is like no action to it. Returns whether there was nothing to warn of. Other
 * spaces than those of a few numbers are left to the environment; no action at all loses a game.
 */
export function checkAction(action: unknown, space: Space, warn: Warn): boolean {
  const isListed = space instanceof Discrete || space instanceof MultiDiscrete || space instanceof MultiBinary;
  if (!isListed || action === undefined || space.contains(action)) return true;
  warn(
    `The action given to step() is not within the action space: ${formatValue(action)} is not in ${space.toString()}.`,
    "action",
  );
  return false;
}

const RESULTS = {
  reset: { names: ["observation"], expected: "{ observation, info }" },
  step: { names: ["observation", "reward"], expected: "{ observation, reward, terminated, truncated, info }" },
};

/** Checks that a result has its fields. @throws ENV_INVALID otherwise */
export function checkFields(
  result: unknown,
  env: Env,
  method: "reset" | "step",
): asserts result is { observation: unknown; info: Info } {
  const { names, expected } = RESULTS[method];
  const call = `${env.toString()}: ${method}()`;
  const isRecord = typeof result === "object" && result !== null && !Array.isArray(result);
  if (!isRecord || names.some((name) => !(name in result))) {
    const actual = Array.isArray(result) ? `an array of ${result.length}` : formatValue(result);
    throw invalidEnv(`${call} returned ${actual}: return an object ${expected} instead.`);
  }
  const { info } = result as { info?: unknown };
  if (typeof info === "object" && info !== null && !Array.isArray(info)) return;
  throw invalidEnv(`${call} returned the info ${formatValue(info)}: return an object, {} if there is no information.`);
}

function checkReward(reward: unknown, warn: Warn): void {
  if (typeof reward !== "number") warn(`The reward given by step() must be a number, actual type: ${typeof reward}`);
  else if (Number.isNaN(reward)) warn("The reward is a NaN value. A division by zero or an overflow is likely.");
  else if (!Number.isFinite(reward)) warn("The reward is an infinite value.");
  else if (!isReward(reward)) warn(`The reward is ${String(reward)}; training requires ${REWARD_RULE}.`, "reward");
}

function checkObservation(observation: unknown, space: Space, method: string, warn: Warn): void {
  const problem = describeObservationProblem(observation, space);
  if (problem !== undefined) warn(`The observation given by ${method}() ${problem}`, `${method} observation`);
}

/** Describes why an observation is not in its space; undefined when it is. */
function describeObservationProblem(observation: unknown, space: Space): string | undefined {
  if (observation === undefined) return "is undefined.";
  // A copy leaves the random stream of the space unchanged.
  const expected = createZeroValue(cloneSpace(space));
  const [expectedType, actualType] = [getTypeName(expected), getTypeName(observation)];
  if (ArrayBuffer.isView(expected) && expectedType !== actualType)
    return `should be a ${expectedType}, actual type: ${actualType}`;
  if (space.contains(observation)) return undefined;
  const isText = space instanceof Text && typeof observation === "string";
  const hint = isText ? describeMissingCharacter(observation, space) : "";
  return `is not within the observation space: ${formatValue(observation)} is not in ${space.toString()}.${hint}`;
}

/** Names a character of a text that its space lacks; the default charset has no space. */
function describeMissingCharacter(observation: string, { characters, maxLength }: Text): string {
  const missing = Array.from(observation).find((character) => !characters.includes(character));
  if (missing === undefined) return "";
  return ` Its charset has no ${JSON.stringify(missing)}; list all characters: new Text(${maxLength}, { charset: "..." }).`;
}

function getTypeName(value: unknown): string {
  return typeof value === "object" && value !== null ? value.constructor.name : typeof value;
}

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
    if (problem !== undefined) throw invalidEnv(`The observation given by ${call} ${problem}`);
  }

  private async run<T>(call: string, method: () => MaybePromise<T>): Promise<T> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const limit = new Promise<never>((_, reject) => {
      const expire = () =>
        reject(
          invalidEnv(`${call} did not return within ${this.timeout} ms: most likely a promise is never resolved.`),
        );
      timer = setTimeout(expire, this.timeout);
    });
    try {
      return await Promise.race([Promise.resolve().then(method), limit]);
    } catch (error) {
      if (error instanceof LlamaGymError && error.code === "ENV_INVALID") throw error;
      throw invalidEnv(`${call} threw an error: ${errorMessage(error)}`, error);
    } finally {
      clearTimeout(timer);
    }
  }
}

function formatResetOptions({ seed, options }: ResetOptions): string {
  const parts = [seed === undefined ? "" : `seed: ${seed}`, options === undefined ? "" : "options: {}"].filter(Boolean);
  return parts.length === 0 ? "" : `{ ${parts.join(", ")} }`;
}
