import { toolCallSchema } from "../../spaces/tool-call-schema.js";
import { JsonSpace } from "../json-space.js";
/** Calls of tools with arguments that match their schemas. */
export class ToolCallSpace extends JsonSpace {
    tools;
    constructor(tools) {
        super(toolCallSchema(tools, { isList: false, argumentsKey: "arguments" }, false));
        this.tools = tools;
    }
    /** Draws a tool uniformly, and simple arguments. */
    sample(options) {
        this.rejectMask(options);
        const { name, parameters } = this.random.choice(this.tools);
        const args = new JsonSpace(parameters);
        args.seed(this.random.integers(0, 2 ** 31));
        return { name, arguments: args.sample() };
    }
    toString() {
        return `ToolCall(${this.tools.map(({ name }) => name).join(", ")})`;
    }
    equals(other) {
        return other instanceof ToolCallSpace && JSON.stringify(this.schema) === JSON.stringify(other.schema);
    }
}
