import type { JsonObject, JsonValue } from "../../../core/json.js";
import type { Space, SampleOptions } from "../../spaces/space.js";
import { toolCallSchema } from "../../spaces/tool-call-schema.js";
import { JsonSpace } from "../json-space.js";
import type { McpTool } from "./mcp-connection.js";

/** A call of a tool, as a model writes it. */
export interface McpCall {
  readonly name: string;
  readonly arguments: JsonObject;
}

/** Calls of tools with arguments that match their schemas. */
export class ToolCallSpace extends JsonSpace {
  constructor(private readonly tools: readonly Pick<McpTool, "name" | "parameters">[]) {
    super(toolCallSchema(tools, { isList: false, argumentsKey: "arguments" }, false) as JsonObject);
  }

  /** Draws a tool uniformly, and simple arguments. */
  override sample(options?: SampleOptions): JsonValue {
    this.rejectMask(options);
    const { name, parameters } = this.random.choice(this.tools);
    const args = new JsonSpace(parameters);
    args.seed(this.random.integers(0, 2 ** 31));
    return { name, arguments: args.sample() };
  }

  override toString(): string {
    return `ToolCall(${this.tools.map(({ name }) => name).join(", ")})`;
  }

  override equals(other: Space): boolean {
    return other instanceof ToolCallSpace && JSON.stringify(this.schema) === JSON.stringify(other.schema);
  }
}
