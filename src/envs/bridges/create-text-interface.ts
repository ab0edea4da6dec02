import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { Box, Discrete, MultiBinary, MultiDiscrete, Text, type Space } from "../spaces/index.js";
import type { TextInterface } from "../text-interface.js";
import { findLastNamedAction, parseLastNumber } from "../text-parsing.js";
import { MAX_TEXT_LENGTH } from "./limits.js";
import { countElements } from "../../core/numbers.js";

/** Options of the generated text interface of an environment without one. */
export interface TextInterfaceOptions {
  readonly systemPrompt?: string;
  /** A name for each action of a Discrete space. */
  readonly actionNames?: readonly string[];
}

/** Number of actions that are listed in the prompt and as choices. */
const MAX_LISTED_ACTIONS = 100;

/** Instruction, parser and formatter of actions. */
type ActionFormat = Pick<TextInterface<unknown, unknown>, "parseAction" | "formatAction" | "choices"> & {
  readonly instruction: string;
};

/**
 * Creates a text interface for an environment whose actions are numbers or text: observations as
 * JSON with four digits, discrete actions by name or number. Returns undefined for other action
 * spaces.
 */
export function createTextInterface(
  observationSpace: Space,
  actionSpace: Space,
  { systemPrompt, actionNames }: TextInterfaceOptions = {},
): TextInterface<unknown, unknown> | undefined {
  const actionFormat = createActionFormat(actionSpace, actionNames);
  if (actionFormat === undefined) return undefined;
  const { instruction, ...rest } = actionFormat;
  return {
    systemPrompt: systemPrompt ?? `You act in an environment, to get as much reward as you can. ${instruction}`,
    formatObservation: (observation) => checkText(formatObservationAsJson(observationSpace, observation)),
    ...rest,
  };
}

/** Returns the text of an observation. @throws ENV_FAILED when it is longer than any context. */
export function checkText(text: string): string {
  if (text.length <= MAX_TEXT_LENGTH) return text;
  const problem = `An observation has ${text.length} characters as text, at most ${MAX_TEXT_LENGTH} are allowed.`;
  throw new LlamaGymError("ENV_FAILED", `${problem} Pass a text interface (\`text\`) that summarizes it.`);
}

/** Formats an observation as a line: text unchanged, others as JSON with rounded numbers. */
function formatObservationAsJson(space: Space, observation: unknown): string {
  const json = space.encode(observation);
  if (typeof json === "string") return json;
  return JSON.stringify(json, (_key, value: JsonValue) =>
    typeof value === "number" ? Number(value.toPrecision(4)) : value,
  );
}

function createActionFormat(space: Space, actionNames: readonly string[] | undefined): ActionFormat | undefined {
  if (actionNames !== undefined && (!(space instanceof Discrete) || actionNames.length !== space.n))
    throw invalidArgument(
      `actionNames has ${actionNames.length} names, but the action space is ${space.toString()}: pass one per action.`,
    );
  if (space instanceof Discrete) return createDiscreteFormat(space, actionNames);
  if (space instanceof Text) {
    return {
      instruction: "Answer with the text of your action alone.",
      parseAction: (completion) => (space.contains(completion.trim()) ? completion.trim() : undefined),
      formatAction: String,
    };
  }
  if (space instanceof Box || space instanceof MultiDiscrete || space instanceof MultiBinary)
    return createNumericFormat(space);
  return undefined;
}

function createDiscreteFormat(space: Discrete, actionNames: readonly string[] | undefined): ActionFormat {
  const { n, start } = space;
  if (actionNames === undefined && n > MAX_LISTED_ACTIONS) {
    return {
      instruction: `Answer with a whole number from ${start} to ${start + n - 1}.`,
      parseAction: (completion) => {
        const action = parseLastNumber(completion);
        return space.contains(action) ? action : undefined;
      },
      formatAction: String,
    };
  }
  const names = actionNames ?? Array.from({ length: n }, (_, i) => String(start + i));
  return {
    instruction: `Answer with one of: ${names.join(", ")}.`,
    parseAction: (completion) => {
      const index = findLastNamedAction(completion, names);
      return index === undefined ? undefined : start + index;
    },
    formatAction: (action) => names[(action as number) - start],
    ...(n <= MAX_LISTED_ACTIONS ? { choices: names } : {}),
  };
}

/** Parses the last numbers of a completion, as many as the action has. */
function createNumericFormat(space: Box | MultiDiscrete | MultiBinary): ActionFormat {
  const size = countElements(space.shape);
  const toAction = (values: readonly number[]): unknown => {
    if (space instanceof Box) return space.array(values);
    return space instanceof MultiDiscrete ? Int32Array.from(values) : Int8Array.from(values);
  };
  return {
    instruction: `Answer with ${size === 1 ? "a number" : `${size} numbers`} of ${space.toString()}.`,
    parseAction: (completion) => {
      const values = (completion.match(/[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?/g) ?? []).slice(-size).map(Number);
      // Checked before the conversion, which would truncate fractions.
      const isAction = values.length === size && space.contains(values);
      return isAction ? toAction(values) : undefined;
    },
    formatAction: (action) =>
      Array.from(action as ArrayLike<number>, (value) => Number(value.toPrecision(6))).join(" "),
  };
}
