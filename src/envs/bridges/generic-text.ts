import { LlamaGymError } from "../../errors.js";
import type { JsonValue } from "../json.js";
import { Box } from "../spaces/box.js";
import { Discrete } from "../spaces/discrete.js";
import { MultiBinary } from "../spaces/multi-binary.js";
import { MultiDiscrete } from "../spaces/multi-discrete.js";
import type { Space } from "../spaces/space.js";
import { Text } from "../spaces/text.js";
import type { TextForm } from "../text-form.js";
import { lastNamedAction } from "../text-parsing.js";
import { elementCount } from "../../tensor/tensor.js";

/** What a user can say of an environment's text form, where the environment itself has none. */
export interface GenericTextOptions {
  readonly systemPrompt?: string;
  /** A name for each action of a Discrete space. */
  readonly actionNames?: readonly string[];
}

/** How an action is asked for, written and understood. */
type Reading = Pick<TextForm<unknown, unknown>, "parseAction" | "formatAction" | "choices"> & { readonly ask: string };

/**
 * A text form for any environment whose actions are numbers or text: observations as JSON with four digits a number,
 * discrete actions by name or number. Undefined for other action spaces.
 */
export function genericText(
  observationSpace: Space,
  actionSpace: Space,
  { systemPrompt, actionNames }: GenericTextOptions = {},
): TextForm<unknown, unknown> | undefined {
  const reading = readingOf(actionSpace, actionNames);
  if (reading === undefined) return undefined;
  const { ask, ...rest } = reading;
  return {
    systemPrompt:
      systemPrompt === undefined ? `You act in an environment, to get as much reward as you can. ${ask}` : systemPrompt,
    formatObservation: (observation) => observationText(observationSpace, observation),
    ...rest,
  };
}

/** An observation as a line: text as it is, anything else as JSON with rounded numbers. */
function observationText(space: Space, observation: unknown): string {
  const json = space.encode(observation);
  if (typeof json === "string") return json;
  return JSON.stringify(json, (_key, value: JsonValue) =>
    typeof value === "number" ? Number(value.toPrecision(4)) : value,
  );
}

function readingOf(space: Space, actionNames: readonly string[] | undefined): Reading | undefined {
  if (actionNames !== undefined && (!(space instanceof Discrete) || actionNames.length !== space.n)) {
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      `actionNames has ${actionNames.length} names, but the action space is ${space.toString()}: give one for each action.`,
    );
  }
  if (space instanceof Discrete) return discrete(space, actionNames);
  if (space instanceof Text) {
    return {
      ask: "Answer with the text of your action alone.",
      parseAction: (reply) => (space.contains(reply.trim()) ? reply.trim() : undefined),
      formatAction: String,
    };
  }
  if (space instanceof Box || space instanceof MultiDiscrete || space instanceof MultiBinary) return numbers(space);
  return undefined;
}

function discrete({ n, start }: Discrete, actionNames: readonly string[] | undefined): Reading {
  const names = actionNames ?? Array.from({ length: n }, (_, i) => String(start + i));
  return {
    ask: `Answer with one of: ${names.join(", ")}.`,
    parseAction: (reply) => {
      const index = lastNamedAction(reply, names);
      return index === undefined ? undefined : start + index;
    },
    formatAction: (action) => names[(action as number) - start],
    ...(n <= 100 ? { choices: names } : {}),
  };
}

/** The last numbers of a reply, as many as the action has. */
function numbers(space: Box | MultiDiscrete | MultiBinary): Reading {
  const size = elementCount(space.shape);
  const toAction = (values: readonly number[]): unknown => {
    if (space instanceof Box) return space.array(values);
    return space instanceof MultiDiscrete ? Int32Array.from(values) : Int8Array.from(values);
  };
  return {
    ask: `Answer with ${size === 1 ? "a number" : `${size} numbers`} of ${space.toString()}.`,
    parseAction: (reply) => {
      const found = (reply.match(/[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?/g) ?? []).slice(-size).map(Number);
      // Before the conversion, which would make whole numbers of others.
      const isAction = found.length === size && space.contains(found);
      return isAction ? toAction(found) : undefined;
    },
    formatAction: (action) =>
      Array.from(action as ArrayLike<number>, (value) => Number(value.toPrecision(6))).join(" "),
  };
}
