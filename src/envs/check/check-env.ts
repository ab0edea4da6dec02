import { checkOptions, TIME_LIMIT, type OptionNames } from "../../core/settings.js";
import { invalidEnv, type LlamaGymError } from "../../core/errors.js";
import { Env } from "../env.js";
import { Box, formatValue } from "../spaces/index.js";
import { sharesMemory, checkSpaces, type Warn } from "./check-space.js";
import { checkSavedState, checkSeeding, checkStepDeterminism } from "./check-determinism.js";
import { EnvProbe } from "./env-probe.js";
import { checkRender } from "./check-render.js";
import { checkReturns } from "./check-returns.js";
import { checkText } from "./check-text.js";

/** Options of `checkEnv`. */
export interface CheckEnvOptions {
  readonly skipRenderCheck?: boolean;
  readonly skipCloseCheck?: boolean;
  /** Skips playing the episodes that reproduce the known returns of the environment's spec. */
  readonly skipReturnsCheck?: boolean;
  /** Receives each warning as it occurs; the result lists them too. */
  readonly warn?: (message: string) => void;
  /** Time limit of one call in milliseconds. Default: one minute. */
  readonly timeout?: number;
}

const checkEnvOptionNames: OptionNames<CheckEnvOptions> = {
  skipRenderCheck: Boolean,
  skipCloseCheck: Boolean,
  skipReturnsCheck: Boolean,
  warn: Function,
  timeout: TIME_LIMIT,
};

/**
 * Checks that an environment follows the rules that agents, wrappers and trainers rely on: its
 * spaces, the results of `reset` and `step`, determinism for a seed, no mutation of returned
 * values, identical continuation from a saved state, the text interface round trip, the known
 * returns of its spec (`random`, and `best` where it has an expert), rendering and closing.
 *
 * @returns warnings about what is questionable but allowed
 * @throws ENV_INVALID at the first violation, with its likely cause
 */
export async function checkEnv(env: unknown, options: CheckEnvOptions = {}): Promise<{ warnings: readonly string[] }> {
  checkOptions("checkEnv", options, checkEnvOptionNames);
  const warnings = new Map<string, string>();
  const warn: Warn = (message, kind = message) => {
    if (warnings.has(kind)) return;
    warnings.set(kind, message);
    options.warn?.(message);
  };
  if (!(env instanceof Env)) throw notAnEnvError(env);
  if (env.unwrapped !== env)
    warn(`${env.toString()} is wrapped; check env.unwrapped to find the cause of a violation.`);
  checkSpaces(env, warn);
  checkBounds(env, warn);
  checkDeprecatedNames(env, warn);
  const probe = new EnvProbe(env, warn, options.timeout ?? 60_000);
  await probe.reset({});
  if (env.spec?.nondeterministic !== true) await checkSeeding(probe);
  await probe.reset({ options: {} });
  await probe.reset({});
  await probe.step(env.actionSpace.sample());
  if (env.spec?.nondeterministic !== true) {
    await checkStepDeterminism(probe);
    await checkSavedState(probe);
  }
  await checkDataReuse(probe);
  await checkText(probe);
  if (options.skipReturnsCheck !== true) await checkReturns(probe);
  if (options.skipRenderCheck !== true) await checkRender(probe);
  if (options.skipCloseCheck !== true) await checkClose(probe);
  return { warnings: [...warnings.values()] };
}

function notAnEnvError(env: unknown): LlamaGymError {
  const looksLikeEnv = typeof env === "object" && env !== null && "reset" in env && "step" in env;
  const hint = looksLikeEnv
    ? "It has reset and step: make its class extend llamagym's Env."
    : "Give an instance of a class that extends llamagym's Env, not the class or its id.";
  return invalidEnv(
    `checkEnv needs an Env, got ${typeof env === "function" ? "a function or class" : formatValue(env)}. ${hint}`,
  );
}

function checkBounds({ actionSpace, observationSpace }: Env, warn: Warn): void {
  if (observationSpace instanceof Box) {
    if (!observationSpace.isBounded("below"))
      warn("A Box observationSpace has no lower bound in some element. This is probably too low.");
    if (!observationSpace.isBounded("above"))
      warn("A Box observationSpace has no upper bound in some element. This is probably too high.");
  }
  if (actionSpace instanceof Box && actionSpace.shape.length === 1) {
    const { low, high } = actionSpace as Box<"float64">;
    const isNormalized = low.every((bound, i) => bound >= -1 && high[i] <= 1 && bound === -high[i]);
    if (!isNormalized) warn("A Box actionSpace with a symmetric range within [-1, 1] is easier to learn.");
  }
}

function checkDeprecatedNames(env: Env, warn: Warn): void {
  if (typeof (env as Env & { seed?: unknown }).seed === "function")
    warn("The seed() method is never called. Pass the seed of reset({ seed }) to `this.reseed(seed)` instead.");
}

async function checkDataReuse(probe: EnvProbe): Promise<void> {
  const { env } = probe;
  env.actionSpace.seed(7);
  const results: { name: string; observation: unknown; info: unknown }[] = [];
  results.push({ name: "reset()", ...(await probe.reset({ seed: 7 })) });
  for (let i = 0; i < 2; i++) {
    const result = await probe.step(env.actionSpace.sample());
    results.push({ name: "step()", ...result });
    if (result.terminated || result.truncated) break;
  }
  results.push({ name: "reset()", ...(await probe.reset({ seed: 7 })) });
  for (const [i, later] of results.entries()) {
    for (const earlier of results.slice(0, i)) {
      for (const part of ["observation", "info"] as const) {
        if (!sharesMemory(earlier[part], later[part])) continue;
        throw invalidEnv(
          `The ${part} of a ${earlier.name} and of a later ${later.name} share memory, so the first changes with the second. Return a new ${part} every time, such as Float32Array.from(this.state).`,
        );
      }
    }
  }
}

async function checkClose(probe: EnvProbe): Promise<void> {
  await probe.close();
  try {
    await probe.close();
  } catch (error) {
    probe.warn(`A second close() throws; it should do nothing. ${(error as Error).message}`);
  }
}
