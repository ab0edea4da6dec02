import type { Info } from "../envs/info.js";
import { LlamaGymError } from "../errors.js";
import type { ReplyForm } from "./reply-form.js";
import type { Role } from "./role.js";

/** What each of an agent's methods must give. */
const expectations = {
  text: { fits: (value: unknown) => typeof value === "string", wanted: "a text" },
  choices: {
    fits: (value: unknown) =>
      Array.isArray(value) && value.length > 0 && value.every((choice) => typeof choice === "string"),
    wanted: "a list of texts that is not empty",
  },
  pattern: {
    fits: (value: unknown) => typeof value === "string" || value instanceof RegExp,
    wanted: "a regular expression as a text or a RegExp",
  },
  schema: {
    fits: (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value),
    wanted: "a JSON schema, which is an object",
  },
} as const;

/** What one of the agent's methods gives. Throws AGENT_FAILED where it throws or gives something else. */
export function said<Result>(
  method: string,
  call: () => Result,
  expected: keyof typeof expectations,
  { isOptional = false } = {},
): Result {
  let result: Result;
  try {
    result = call();
  } catch (error) {
    throw failed(method, error);
  }
  const { fits, wanted } = expectations[expected];
  if (fits(result) || (isOptional && result === undefined)) return result;
  throw new LlamaGymError(
    "AGENT_FAILED",
    `The agent's ${method} must give ${wanted}${isOptional ? ", or undefined" : ""}, not ${JSON.stringify(result)}.`,
  );
}

/** What the agent holds its reply to in a situation; undefined for a free reply. Throws AGENT_FAILED as `said` does. */
export function formOf<Observation>(
  role: Pick<Role<Observation>, "getChoices" | "getPattern" | "getSchema">,
  observation: Observation,
  info: Info,
): ReplyForm | undefined {
  const isOptional = true;
  const choices = said("getChoices", () => role.getChoices?.(observation, info), "choices", { isOptional });
  const regex = said("getPattern", () => role.getPattern?.(observation, info), "pattern", { isOptional });
  const jsonSchema = said("getSchema", () => role.getSchema?.(observation, info), "schema", { isOptional });
  const given = Object.entries({ getChoices: choices, getPattern: regex, getSchema: jsonSchema })
    .filter(([, value]) => value !== undefined)
    .map(([name]) => name);
  if (given.length > 1)
    throw new LlamaGymError(
      "AGENT_FAILED",
      `A reply is held in one way, but the agent's ${given.join(" and ")} both say how; let all but one give undefined.`,
    );
  if (choices !== undefined) return { choices };
  if (regex !== undefined) return { regex };
  return jsonSchema === undefined ? undefined : { jsonSchema };
}

/** AGENT_FAILED for what the agent's own code threw, unless that is one of ours. */
export function failed(method: string, error: unknown, where = ""): LlamaGymError {
  if (error instanceof LlamaGymError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new LlamaGymError("AGENT_FAILED", `The agent's ${method} threw${where}: ${reason}`, { cause: error });
}
