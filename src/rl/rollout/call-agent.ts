import type { Info } from "../../envs/info.js";
import { LlamaGymError } from "../../core/errors.js";
import type { OutputConstraint } from "../../generation/constraints/output-constraint.js";
import type { AgentInterface } from "./agent-interface.js";

/** What each of an agent's methods must give. */
const METHOD_CONTRACTS = {
  text: { isValid: (value: unknown) => typeof value === "string", description: "a text" },
  choices: {
    isValid: (value: unknown) =>
      Array.isArray(value) && value.length > 0 && value.every((choice) => typeof choice === "string"),
    description: "a list of texts that is not empty",
  },
  pattern: {
    isValid: (value: unknown) => typeof value === "string" || value instanceof RegExp,
    description: "a regular expression as a text or a RegExp",
  },
  schema: {
    isValid: (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value),
    description: "a JSON schema, which is an object",
  },
} as const;

/** What one of the agent's methods gives. Throws AGENT_FAILED where it throws or gives something else. */
export function callAgent<Result>(
  method: string,
  call: () => Result,
  contract: keyof typeof METHOD_CONTRACTS,
  { isOptional = false } = {},
): Result {
  let result: Result;
  try {
    result = call();
  } catch (error) {
    throw agentError(method, error);
  }
  const { isValid, description } = METHOD_CONTRACTS[contract];
  if (isValid(result) || (isOptional && result === undefined)) return result;
  throw new LlamaGymError(
    "AGENT_FAILED",
    `The agent's ${method} must give ${description}${isOptional ? ", or undefined" : ""}, not ${JSON.stringify(result)}.`,
  );
}

/** What the agent holds its reply to in a situation; undefined for a free reply. Throws AGENT_FAILED as `said` does. */
export function constraintFor<Observation>(
  agent: Pick<AgentInterface<Observation>, "getChoices" | "getPattern" | "getSchema">,
  observation: Observation,
  info: Info,
): OutputConstraint | undefined {
  const isOptional = true;
  const choices = callAgent("getChoices", () => agent.getChoices?.(observation, info), "choices", { isOptional });
  const regex = callAgent("getPattern", () => agent.getPattern?.(observation, info), "pattern", { isOptional });
  const jsonSchema = callAgent("getSchema", () => agent.getSchema?.(observation, info), "schema", { isOptional });
  const constrainingMethods = Object.entries({ getChoices: choices, getPattern: regex, getSchema: jsonSchema })
    .filter(([, value]) => value !== undefined)
    .map(([name]) => name);
  if (constrainingMethods.length > 1)
    throw new LlamaGymError(
      "AGENT_FAILED",
      `A reply is held in one way, but the agent's ${constrainingMethods.join(" and ")} both say how; let all but one give undefined.`,
    );
  if (choices !== undefined) return { choices };
  if (regex !== undefined) return { regex };
  return jsonSchema === undefined ? undefined : { jsonSchema };
}

/** AGENT_FAILED for what the agent's own code threw, unless that is one of ours. */
export function agentError(method: string, error: unknown, context = ""): LlamaGymError {
  if (error instanceof LlamaGymError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new LlamaGymError("AGENT_FAILED", `The agent's ${method} threw${context}: ${reason}`, { cause: error });
}
