import { z } from "zod";
import { describeValue } from "../../core/format.js";
import { errorMessage, invalidArgument } from "../../core/errors.js";
import type { JsonObject } from "../../core/json.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import { withTimeout } from "../../core/with-timeout.js";
import type { FunctionTool } from "./tool-calls.js";

/** A tool that the model may call while its completion is sampled. */
export interface Tool extends FunctionTool {
  /**
   * Computes the result of a call: a text, or a value that the model receives as JSON. The model
   * receives the message of an error that it throws.
   */
  readonly execute: (args: never) => MaybePromise<unknown>;
}

/** A call to execute; without `args`, a malformed one. */
export interface RequestedCall {
  readonly name: string;
  readonly args: JsonObject | undefined;
}

/** What a tool message contains. */
export interface ToolResult {
  readonly content: string;
  /** Whether the content is an error. */
  readonly isFailure: boolean;
}

interface CheckedTool extends Pick<Tool, "name" | "execute"> {
  readonly schema: z.ZodType;
}

/** Executes calls of tools within a time limit. */
export class ToolCaller {
  constructor(
    private readonly tools: ReadonlyMap<string, CheckedTool>,
    private readonly timeoutSeconds: number,
  ) {}

  /** Returns the result of a call, or its error as the result. */
  async call(call: RequestedCall): Promise<ToolResult> {
    try {
      return { content: formatResult(await this.execute(call)), isFailure: false };
    } catch (error) {
      return { content: JSON.stringify({ error: errorMessage(error) }), isFailure: true };
    }
  }

  private async execute({ name, args }: RequestedCall): Promise<unknown> {
    const tool = this.tools.get(name);
    if (args === undefined)
      throw new Error("The tool call is malformed: it must be JSON with a name and an object of arguments.");
    if (tool === undefined) throw new Error(`Tool ${name} not found.`);
    const checked = tool.schema.safeParse(args);
    if (!checked.success) throw new Error(`Invalid arguments of ${name}: ${z.prettifyError(checked.error)}`);
    const { timeoutSeconds } = this;
    const createError = () => new Error(`${name} took longer than ${timeoutSeconds} s.`);
    return withTimeout(() => tool.execute(args as never), timeoutSeconds, createError);
  }
}

/**
 * Checks the tools of a trainer, and returns what executes them. @throws INVALID_ARGUMENT for
 * invalid tools, and for names that two tools share.
 */
export function checkTools(tools: readonly Tool[], timeoutSeconds: number): ToolCaller {
  const checked = new Map<string, CheckedTool>();
  tools.forEach((tool: unknown, i) => {
    const { name, schema, execute } = checkTool(tool, `tools[${i}]`);
    if (checked.has(name)) throw invalidArgument(`Two tools have the name "${name}"; names must differ.`);
    checked.set(name, { name, schema, execute });
  });
  return new ToolCaller(checked, timeoutSeconds);
}

function checkTool(tool: unknown, subject: string): CheckedTool {
  const { name, description, parameters, execute, ...others } = (tool ?? {}) as Partial<Tool>;
  if (name === undefined && "function" in others)
    throw invalidArgument(
      `${subject} has the form of OpenAI's API. Write its name, description and parameters next to \`execute\`: { name, description, parameters, execute }.`,
    );
  if (typeof name !== "string" || !/^[\w.-]{1,128}$/.test(name))
    throw invalidArgument(
      `${subject} must have a name of 1 to 128 letters, digits, _, - or ., got ${describeValue(name)}.`,
    );
  if (typeof execute !== "function")
    throw invalidArgument(`The tool "${name}" must have a function \`execute\`, got ${describeValue(execute)}.`);
  if (description !== undefined && typeof description !== "string")
    throw invalidArgument(`The description of the tool "${name}" must be a text, got ${describeValue(description)}.`);
  const { type } = (parameters ?? {}) as { readonly type?: unknown };
  if (type !== "object")
    throw invalidArgument(
      `The parameters of the tool "${name}" must be a JSON schema of type "object", such as { type: "object", properties: { city: { type: "string" } } }.`,
    );
  try {
    return { name, execute, schema: z.fromJSONSchema(parameters as Parameters<typeof z.fromJSONSchema>[0]) };
  } catch (error) {
    throw invalidArgument(
      `The parameters of the tool "${name}" are no JSON schema by which arguments can be checked: ${errorMessage(error)}`,
    );
  }
}

function formatResult(result: unknown): string {
  return typeof result === "string" ? result : (JSON.stringify(result) ?? "null");
}
