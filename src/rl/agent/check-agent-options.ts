import { invalidArgument } from "../../core/errors.js";
import { selectAlgorithm } from "../algorithms/algorithms.js";
import { suggestNames } from "../../core/suggest.js";
import { checkNumber, type NumberRule } from "../../core/check-number.js";
import { ACTION_SCORINGS, type InvalidActionPolicy } from "../rollout/rollout-settings.js";
import type { ConfiguredAlgorithm } from "../algorithms/define-algorithm.js";
import type { AgentOptions } from "./agent-options.js";
import { ReplayBuffer } from "./demonstrations/replay-buffer.js";

/** Validators of an options object's values; omitted options are not validated. */
type Validators<Options> = { readonly [Name in keyof Required<Options>]: (value: unknown, name: string) => void };

/** For options that are validated where they are used. */
const checkedOnUse = () => {};

const validateNumber = (rule: Omit<NumberRule, "description">) => (value: unknown, name: string) =>
  checkNumber(name, value, { ...rule, description: "" });

const validateInteger = (min: number) => validateNumber({ integer: true, min });

const optionValidators: Validators<AgentOptions> = {
  generation: checkedOnUse,
  evalTemperature: validateNumber({ min: 0 }),
  historyTurns: (value, name) => (value === Infinity ? undefined : validateInteger(0)(value, name)),
  contextOverflow: validateOneOf("drop-oldest", "error"),
  maxContextLength: validateInteger(1),
  actionScoring: validateOneOf(...ACTION_SCORINGS),
  completionPrefix: (value, name) => {
    if (typeof value !== "string") throw invalidArgument(`${name} must be a text, not ${String(value)}.`);
  },
  invalidAction: (value) =>
    checkOptions("option of invalidAction", value as object, invalidActionValidators, "invalidAction."),
  spreadSparseRewards: validateOneOf(true, false),
  algorithm: (value) => {
    if (typeof (value as Partial<ConfiguredAlgorithm>).create !== "function")
      throw invalidArgument("algorithm must be a configured algorithm, such as ppo({ batchSize: 16 }).");
  },
  ppo: checkedOnUse,
  grpo: checkedOnUse,
  rloo: checkedOnUse,
  reinforce: checkedOnUse,
  callTimeoutSeconds: validateNumber({ min: 0 }),
  microBatchTokens: validateInteger(1),
  seed: validateInteger(0),
  sftWarmStart: (value, name) => {
    if (typeof value !== "string" && !Array.isArray(value))
      throw invalidArgument(`${name} must be the path of a JSONL file or a list of demonstrations.`);
  },
  replay: (value, name) => {
    if (!(value instanceof ReplayBuffer)) throw invalidArgument(`${name} must be a ReplayBuffer.`);
  },
  sftSteps: checkedOnUse,
  sftBatchSize: checkedOnUse,
  sftLearningRate: checkedOnUse,
  onlineSft: checkedOnUse,
  onlineSftWeight: checkedOnUse,
  replayTopFraction: checkedOnUse,
  topkP: checkedOnUse,
  replayCapacity: checkedOnUse,
  onInvalidLine: checkedOnUse,
};

const invalidActionValidators: Validators<InvalidActionPolicy> = {
  retries: validateInteger(0),
  penalty: validateNumber({ min: 0 }),
  fallback: (value, name) => (typeof value === "function" ? undefined : validateOneOf("error")(value, name)),
};

/**
 * @throws INVALID_ARGUMENT for an unknown option, with the nearest known one, for an invalid value,
 * and for several algorithms.
 */
export function checkAgentOptions<Observation, Action>(options: AgentOptions<Observation, Action>): void {
  checkOptions("agent option", options, optionValidators);
  selectAlgorithm(options);
}

function checkOptions(
  description: string,
  options: object,
  validators: Readonly<Record<string, (value: unknown, name: string) => void>>,
  prefix = "",
): void {
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(validators, name))
      throw invalidArgument(`There is no ${description} "${name}". ${suggestNames(name, Object.keys(validators))}`);
    if (value !== undefined) validators[name](value, `${prefix}${name}`);
  }
}

function validateOneOf(...values: readonly unknown[]): (value: unknown, name: string) => void {
  const formatValue = (value: unknown) => (typeof value === "function" ? "a function" : JSON.stringify(value));
  return (value, name) => {
    if (!values.includes(value))
      throw invalidArgument(`${name} must be ${values.map(formatValue).join(" or ")}, not ${formatValue(value)}.`);
  };
}
