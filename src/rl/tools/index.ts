export { type Tool, type ToolCaller, checkTools } from "./tool.js";
export { ToolChat, skipSampledEnd } from "./tool-chat.js";
export {
  type FunctionTool,
  type ToolCall,
  type ToolCallFormat,
  parseToolCalls,
  readToolCallFormat,
  rendersTools,
  toTemplateInput,
  unsupportedFormat,
} from "./tool-calls.js";
