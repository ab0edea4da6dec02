import { describeLostValue, formatValue, isChoices, type Info } from "../../envs/index.js";
import { errorMessage, LlamaGymError } from "../../core/errors.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import { printWarningOnce } from "../../core/terminal-text.js";
import type { OutputConstraint } from "../../generation/index.js";
import type { AgentInterface } from "./agent-interface.js";
import { limitCall, type CallLimit } from "./call-limit.js";

/** The return values that agent methods must have. */
const METHOD_CONTRACTS = {
  text: { isValid: (value: unknown) => typeof value === "string", description: "a string" },
  choices: { isValid: isChoices, description: "a non-empty list of non-empty strings" },
  pattern: {
    isValid: (value: unknown) => typeof value === "string" || value instanceof RegExp,
    description: "a regular expression as a string or RegExp",
  },
  schema: {
    isValid: (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value),
    description: "a JSON schema object",
  },
} as const;

/**
 * Calls an agent's method and checks the result; warns of a text into which an object or a missing
 * value was written. @throws AGENT_FAILED if the method throws or returns something else.
 */
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
  if (isValid(result) || (isOptional && result === undefined)) {
    const problem = typeof result === "string" ? describeLostValue(result) : undefined;
    if (problem !== undefined) printWarningOnce(`The agent's ${method} returned ${problem}.`);
    return result;
  }
  throw new LlamaGymError(
    "AGENT_FAILED",
    `The agent's ${method} must return ${description}${isOptional ? " or undefined" : ""}, got ${formatValue(result)}.`,
  );
}

/**
 * Returns the constraint on the completion for an observation, if any. @throws AGENT_FAILED as
 * `callAgent` does.
 */
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
      `Only one of the agent's ${constrainingMethods.join(" and ")} may constrain a completion. Return undefined from the others.`,
    );
  if (choices !== undefined) return { choices };
  if (regex !== undefined) return { regex };
  return jsonSchema === undefined ? undefined : { jsonSchema };
}

/**
 * Calls an agent's method that may return a promise. @throws AGENT_FAILED if it throws or does not
 * settle in time.
 */
export async function awaitAgent<Result>(
  method: string,
  call: () => MaybePromise<Result>,
  settings: CallLimit,
  { context = "", location = "" } = {},
): Promise<Result> {
  const subject = () => `The agent's \`${method}\`${location && ` in ${location}`}`;
  try {
    return await limitCall(settings, call, { subject, code: "AGENT_FAILED" });
  } catch (error) {
    throw agentError(method, error, context);
  }
}

/** Wraps an error of the agent's code in AGENT_FAILED; a LlamaGymError is returned as it is. */
function agentError(method: string, error: unknown, context = ""): LlamaGymError {
  if (error instanceof LlamaGymError) return error;
  const reason = errorMessage(error);
  return new LlamaGymError("AGENT_FAILED", `The agent's ${method} threw${context}: ${reason}`, { cause: error });
}
