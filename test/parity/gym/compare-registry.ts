import { make, registry } from "../../../src/envs/registry/make.js";
import { CartPoleEnv } from "../../../src/envs/classic-control/cart-pole.js";
import { Box } from "../../../src/envs/spaces/box.js";
import { Discrete } from "../../../src/envs/spaces/discrete.js";
import { Text } from "../../../src/envs/spaces/text.js";
import { LlamaGymError, type ErrorCode } from "../../../src/core/errors.js";
import { largestDifference, encodeValue, type Json } from "./json-values.js";

export interface RegistryCase {
  readonly id: string;
  readonly kwargs: { [key: string]: Json };
  readonly max_episode_steps: number | null;
  readonly reward_threshold: number | null;
  readonly nondeterministic: boolean;
  readonly str: string;
  readonly observation_space: string;
  readonly action_space: string;
  readonly metadata: { readonly render_modes: string[]; readonly render_fps: number };
}

/**
 * The largest error of a spec and of what is made by it, and where it is. A window ("human") is no
 * mode here.
 */
export function compareSpec(recorded: RegistryCase): { error: number; path: string } {
  const env = make(recorded.id);
  const spec = registry.spec(recorded.id);
  const { renderModes, renderFps } = env.metadata;
  const modes = recorded.metadata.render_modes.filter((mode) => mode !== "human");
  const ours = {
    kwargs: encodeValue(spec.options),
    max_episode_steps: spec.maxEpisodeSteps ?? null,
    reward_threshold: spec.rewardThreshold ?? null,
    nondeterministic: spec.nondeterministic,
    str: env.toString(),
    observation_space: env.observationSpace.toString(),
    action_space: env.actionSpace.toString(),
    render_modes: modes.filter((mode) => (renderModes as readonly string[]).includes(mode)),
    render_fps: renderFps ?? null,
  };
  const { id: _, metadata, ...others } = recorded;
  const { render_fps } = metadata;
  // Python's class names have underscores at times.
  return largestDifference(ours, { ...others, str: recorded.str.replaceAll("_", ""), render_modes: modes, render_fps });
}

export interface ErrorCase {
  readonly call: string;
  readonly error: { readonly type: string; readonly message: string } | null;
}

const errorCalls: Readonly<Record<string, () => unknown>> = {
  "step before reset": () => make("CartPole-v1").step(0),
  "step(5) in CartPole": () => {
    const env = new CartPoleEnv();
    env.reset({ seed: 0 });
    return env.step(5);
  },
  "reset(seed=-1)": () => make("CartPole-v1").reset({ seed: -1 }),
  "reset(seed=1.5)": () => make("CartPole-v1").reset({ seed: 1.5 }),
  "CartPole reset low > high": () => make("CartPole-v1").reset({ options: { low: 1, high: 0 } }),
  "Discrete(0)": () => new Discrete(0),
  "Box low > high": () => new Box(1, 0, { shape: [2] }),
  "Text min > max": () => new Text(3, { minLength: 5 }),
};

const errorCodes: Readonly<Record<string, ErrorCode>> = {
  NameNotFound: "ENV_UNKNOWN",
  VersionNotFound: "ENV_UNKNOWN",
  NamespaceNotFound: "ENV_UNKNOWN",
  DeprecatedEnv: "ENV_UNKNOWN",
  ResetNeeded: "ENV_NOT_RESET",
  AssertionError: "ENV_ACTION_INVALID",
  ValueError: "INVALID_ARGUMENT",
  TypeError: "INVALID_ARGUMENT",
  Error: "INVALID_ARGUMENT",
};

/**
 * What a message of Gymnasium's reads like here: JavaScript's types, and no suggestion of an
 * environment not here.
 */
function translateMessage(message: string): string {
  const suggested = / Did you mean: `(.+)`\?$/.exec(message);
  const isRegistered = suggested !== null && registry.all().some(({ id }) => id.startsWith(`${suggested[1]}-v`));
  return message
    .replace(suggested !== null && !isRegistered ? suggested[0] : "", "")
    .replace("a python integer, actual type: <class 'float'>", "an integer")
    .replace(/<class '(int|float)'>/g, "number")
    .replace(/\((-?\d+)\.0\)/g, "($1)");
}

/**
 * Why an error is not Gymnasium's; undefined when it is. A longer message that begins with it may
 * say more.
 */
export async function compareError({ call, error }: ErrorCase): Promise<string | undefined> {
  const id = /^make\('(.*)'\)$/.exec(call)?.[1];
  const run = id === undefined ? errorCalls[call] : () => make(id);
  if (run === undefined) throw new LlamaGymError("FORMAT_UNSUPPORTED", `The call ${call} is not known.`);
  const thrown = await Promise.resolve()
    .then(run)
    .then(
      () => undefined,
      (reason: unknown) => reason,
    );
  if (error === null)
    return thrown === undefined
      ? undefined
      : `no error expected, got ${thrown instanceof Error ? thrown.message : typeof thrown}`;
  if (!(thrown instanceof LlamaGymError))
    return `expected ${error.type}, got ${thrown instanceof Error ? thrown.message : typeof thrown}`;
  if (thrown.code !== errorCodes[error.type]) return `expected ${errorCodes[error.type]}, got ${thrown.code}`;
  const expected = translateMessage(error.message);
  return thrown.message.startsWith(expected) ? undefined : `expected "${expected}", got "${thrown.message}"`;
}
