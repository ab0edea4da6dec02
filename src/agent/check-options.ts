import { invalid } from "../algorithms/shared/settings.js";
import { algorithms, checkOneAlgorithm, type AlgorithmName } from "../algorithms/table.js";
import { nameHint } from "../envs/registry/nearest-name.js";
import { checkNumber, type NumberRule } from "../generation/options.js";
import { ACTION_SCORINGS, type InvalidReplyPolicy } from "../rollout/settings.js";
import type { AgentOptions } from "./options.js";
import { ReplayBuffer } from "./replay/buffer.js";

/** How each value of an options object is checked; one that was not given is not. */
type Checks<Options> = { readonly [Name in keyof Required<Options>]: (value: unknown, name: string) => void };

/** Checked where it is used. */
const elsewhere = () => {};

const isNumber = (rule: Omit<NumberRule, "description">) => (value: unknown, name: string) =>
  checkNumber(name, value, { ...rule, description: "" });

const isWhole = (min: number) => isNumber({ integer: true, min });

/** An algorithm's options are decided when its learner is made; what cannot be is said at once. */
const isOf = (algorithm: AlgorithmName) => (value: unknown) => void algorithms[algorithm].resolve(value as never);

const checks: Checks<AgentOptions> = {
  generation: elsewhere,
  evalTemperature: isNumber({ min: 0 }),
  historyTurns: (value, name) => (value === Infinity ? undefined : isWhole(0)(value, name)),
  contextPolicy: isOneOf("drop-oldest", "error"),
  maxContext: isWhole(1),
  actionScoring: isOneOf(...ACTION_SCORINGS),
  replyPrefix: (value, name) => {
    if (typeof value !== "string") throw invalid(`${name} must be a text, not ${String(value)}.`);
  },
  invalidReply: (value) => checkOptions("option of invalidReply", value as object, invalidReplyChecks, "invalidReply."),
  shareSparseRewards: isOneOf(true, false),
  ppo: isOf("ppo"),
  grpo: isOf("grpo"),
  rloo: isOf("rloo"),
  reinforce: isOf("reinforce"),
  maxTokens: isWhole(1),
  seed: isWhole(0),
  sftWarmStart: (value, name) => {
    if (typeof value !== "string" && !Array.isArray(value))
      throw invalid(`${name} must be the path of a JSONL file or a list of demonstrations.`);
  },
  replay: (value, name) => {
    if (!(value instanceof ReplayBuffer)) throw invalid(`${name} must be a ReplayBuffer.`);
  },
  sftSteps: elsewhere,
  sftBatchSize: elsewhere,
  sftLearningRate: elsewhere,
  onlineSft: elsewhere,
  sftWeight: elsewhere,
  topkP: elsewhere,
  replayCapacity: elsewhere,
  brokenLines: elsewhere,
};

const invalidReplyChecks: Checks<InvalidReplyPolicy> = {
  retries: isWhole(0),
  penalty: isNumber({ min: 0 }),
  fallback: (value, name) => (typeof value === "function" ? undefined : isOneOf("error")(value, name)),
};

/**
 * Throws INVALID_ARGUMENT for an option that there is not, with the nearest that there is, for a value out of range, and for
 * options of several algorithms.
 */
export function checkAgentOptions<Observation, Action>(options: AgentOptions<Observation, Action>): void {
  checkOptions("agent option", options, checks);
  checkOneAlgorithm(options);
}

function checkOptions(
  what: string,
  given: object,
  table: Readonly<Record<string, (value: unknown, name: string) => void>>,
  prefix = "",
): void {
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(table, name))
      throw invalid(`There is no ${what} "${name}". ${nameHint(name, Object.keys(table))}`);
    if (value !== undefined) table[name](value, `${prefix}${name}`);
  }
}

function isOneOf(...values: readonly unknown[]): (value: unknown, name: string) => void {
  const shown = (value: unknown) => (typeof value === "function" ? "a function" : JSON.stringify(value));
  return (value, name) => {
    if (!values.includes(value))
      throw invalid(`${name} must be ${values.map(shown).join(" or ")}, not ${shown(value)}.`);
  };
}
