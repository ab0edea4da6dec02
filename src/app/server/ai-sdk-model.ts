import type { FunctionTool, ToolCall } from "../../rl/tools/index.js";
import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3Content,
  LanguageModelV3FinishReason,
  LanguageModelV3Message,
  LanguageModelV3StreamPart,
  LanguageModelV3ToolResultPart,
  LanguageModelV3Usage,
  SharedV3Warning,
} from "@ai-sdk/provider";
import { invalidArgument } from "../../core/errors.js";
import { type JsonSchema, LanguageModel } from "../../generation/index.js";
import type { ChatMessage } from "../../models/text/index.js";
import type { ChatChoice, ChatEngine, ChatRequest, ChatResult } from "./chat-engine.js";
import { JSON_OBJECT_SCHEMA } from "./json-object-schema.js";
import { ModelChatEngine } from "./model-chat-engine.js";
import { nameToolResults, toTemplateCall, toolParameters } from "./wire-format.js";

/** Options of `toAiSdkModel`. */
export interface AiSdkModelOptions {
  /** Name of the model in results. Default "llamagym". */
  readonly modelId?: string;
}

/**
 * Wraps a model for the AI SDK (`ai` 6 or newer): `generateText`, `streamText`, structured output
 * and tools run in this process, without HTTP. Calls that run at the same time share batches.
 */
export function toAiSdkModel(
  model: LanguageModel | ChatEngine,
  { modelId = "llamagym" }: AiSdkModelOptions = {},
): LanguageModelV3 {
  const engine = model instanceof LanguageModel ? new ModelChatEngine(model, modelId) : model;
  return {
    specificationVersion: "v3",
    provider: "llamagym",
    modelId: engine.modelName,
    supportedUrls: {},
    async doGenerate(options) {
      const result = await engine.generate(toChatRequest(options));
      options.abortSignal?.throwIfAborted();
      const [choice] = result.choices;
      return { content: toContent(choice), ...toEnd(result), warnings: listWarnings(options) };
    },
    async doStream(options) {
      const request = toChatRequest(options);
      const left = new AbortController();
      const signals = [left.signal, ...(options.abortSignal === undefined ? [] : [options.abortSignal])];
      const stream = new ReadableStream<LanguageModelV3StreamPart>({
        start: async (controller) => {
          const writer = new PartWriter((part) => left.signal.aborted || controller.enqueue(part));
          writer.write({ type: "stream-start", warnings: listWarnings(options) });
          try {
            const signal = AbortSignal.any(signals);
            const result = await engine.generate({ ...request, signal }, (delta) => {
              if (delta.text !== undefined) writer.writeText(delta.text);
              else writer.writeCall(delta.toolCall!);
            });
            options.abortSignal?.throwIfAborted();
            writer.closeText();
            writer.write({ type: "finish", ...toEnd(result) });
          } catch (error) {
            writer.write({ type: "error", error });
          }
          if (!left.signal.aborted) controller.close();
        },
        cancel: () => left.abort(),
      });
      return { stream };
    },
  };
}

/** Writes the parts of a stream. */
class PartWriter {
  private textId: string | undefined;

  constructor(readonly write: (part: LanguageModelV3StreamPart) => void) {}

  writeText(delta: string): void {
    if (this.textId === undefined) this.write({ type: "text-start", id: (this.textId = crypto.randomUUID()) });
    this.write({ type: "text-delta", id: this.textId, delta });
  }

  writeCall(call: ToolCall): void {
    this.closeText();
    const { id, name: toolName, arguments: delta } = call;
    this.write({ type: "tool-input-start", id, toolName });
    this.write({ type: "tool-input-delta", id, delta });
    this.write({ type: "tool-input-end", id });
    this.write(toCallContent(call));
  }

  closeText(): void {
    if (this.textId !== undefined) this.write({ type: "text-end", id: this.textId });
    this.textId = undefined;
  }
}

function toChatRequest(options: LanguageModelV3CallOptions): ChatRequest {
  const { prompt, responseFormat, toolChoice, temperature, topP, topK, maxOutputTokens, stopSequences } = options;
  const sampling = { temperature, topP, topK };
  return {
    input: nameToolResults(prompt.flatMap(toMessages)),
    tools: (options.tools ?? []).map((tool): FunctionTool => {
      if (tool.type !== "function")
        throw invalidArgument(`The tool ${tool.name} must be a function, got ${tool.type}.`);
      const { name, description, inputSchema } = tool;
      return { name, description, parameters: toolParameters.parse(inputSchema) };
    }),
    toolChoice: toolChoice?.type === "tool" ? { name: toolChoice.toolName } : (toolChoice?.type ?? "auto"),
    jsonSchema:
      responseFormat?.type === "json" ? ((responseFormat.schema ?? JSON_OBJECT_SCHEMA) as JsonSchema) : undefined,
    sampling: Object.fromEntries(Object.entries(sampling).filter(([, value]) => value !== undefined)),
    maxNewTokens: maxOutputTokens,
    stop: stopSequences,
    seed: options.seed,
    signal: options.abortSignal,
  };
}

function listWarnings({ presencePenalty, frequencyPenalty }: LanguageModelV3CallOptions): SharedV3Warning[] {
  return Object.entries({ presencePenalty, frequencyPenalty }).flatMap(([feature, value]) =>
    value === undefined ? [] : [{ type: "unsupported", feature } as const],
  );
}

/** Converts a message; each result of a tool becomes a message. */
function toMessages(message: LanguageModelV3Message): ChatMessage[] {
  if (message.role === "system") return [{ role: "system", content: message.content }];
  const results = message.content.flatMap((part) =>
    part.type === "tool-result" ? [{ role: "tool", tool_call_id: part.toolCallId, content: toResultText(part) }] : [],
  );
  if (message.role === "tool") return results;
  const content = message.content
    .map((part) => {
      if (part.type === "file") throw invalidArgument("The prompt has a file; only text is supported.");
      return part.type === "text" ? part.text : "";
    })
    .join("");
  const calls = message.content.flatMap((part) =>
    part.type === "tool-call" ? [toTemplateCall(part.toolCallId, part.toolName, part.input)] : [],
  );
  return [{ role: message.role, content, ...(calls.length > 0 && { tool_calls: calls }) }, ...results];
}

function toResultText({ output }: LanguageModelV3ToolResultPart): string {
  if (output.type === "text" || output.type === "error-text") return output.value;
  if (output.type === "execution-denied") return output.reason ?? "The call was denied.";
  return JSON.stringify(output.value);
}

function toContent({ text, toolCalls }: ChatChoice): LanguageModelV3Content[] {
  const calls = toolCalls.map(toCallContent);
  return text === "" && calls.length > 0 ? calls : [{ type: "text", text }, ...calls];
}

function toCallContent({ id, name, arguments: input }: ToolCall) {
  return { type: "tool-call", toolCallId: id, toolName: name, input } as const;
}

const FINISH_REASONS = { stop: "stop", length: "length", tool_calls: "tool-calls", aborted: "other" } as const;

function toEnd({ choices: [{ finishReason, tokens }], promptTokens, cachedPromptTokens }: ChatResult): {
  finishReason: LanguageModelV3FinishReason;
  usage: LanguageModelV3Usage;
} {
  const noCache = promptTokens.length - cachedPromptTokens;
  return {
    finishReason: { unified: FINISH_REASONS[finishReason], raw: finishReason },
    usage: {
      inputTokens: { total: promptTokens.length, noCache, cacheRead: cachedPromptTokens, cacheWrite: undefined },
      outputTokens: { total: tokens.length, text: tokens.length, reasoning: undefined },
    },
  };
}
