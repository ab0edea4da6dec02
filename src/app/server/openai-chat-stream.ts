import { decodeUtf8 } from "../../core/bytes.js";
import type { ToolCall } from "../../rl/tools/index.js";
import type { ChatChoice, ChatEngine, ChatResult } from "./chat-engine.js";
import { countTokens, type ServerEvent, type StreamEncoder } from "./wire-format.js";

/** A choice of a chat completion. `echoed` precedes its text. */
export function formatChoice(choice: ChatChoice, engine: ChatEngine, hasLogProbs: boolean, echoed: string): object {
  const { index, toolCalls } = choice;
  const text = echoed + choice.text;
  return {
    index,
    message: {
      role: "assistant",
      content: text === "" && toolCalls.length > 0 ? null : text,
      refusal: null,
      ...(toolCalls.length > 0 && { tool_calls: toolCalls.map(formatToolCall) }),
    },
    logprobs: hasLogProbs ? formatLogProbs(choice, engine) : null,
    finish_reason: finishReason(choice),
  };
}

function formatToolCall({ id, name, arguments: args }: ToolCall): object {
  return { id, type: "function", function: { name, arguments: args } };
}

const finishReason = ({ finishReason }: ChatChoice) => (finishReason === "aborted" ? "stop" : finishReason);

/**
 * Log-probabilities under the model at temperature 1; 0 for tokens that the format of a tool call
 * forces.
 */
function formatLogProbs({ tokens, rawLogProbs, topLogProbs }: ChatChoice, engine: ChatEngine): object {
  const format = (token: number, logProb: number) => {
    const bytes = engine.tokenBytes(token);
    return { token: decodeUtf8(bytes), logprob: Number.isNaN(logProb) ? 0 : logProb, bytes: [...bytes] };
  };
  return {
    content: tokens.map((token, i) => ({
      ...format(token, rawLogProbs[i]),
      top_logprobs: topLogProbs[i].map((top) => format(top.token, top.logProb)),
    })),
    refusal: null,
  };
}

/** Usage in OpenAI's form. */
export function formatUsage(results: readonly ChatResult[]): object {
  const { prompt, cached, completion } = countTokens(results);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: cached },
  };
}

/** Events of a chat completion: chunks, the usage if it is asked for, and the end. */
export class ChatStream implements StreamEncoder {
  private readonly started = new Set<number>();
  private readonly callCounts = new Map<number, number>();

  constructor(
    private readonly base: object,
    private readonly engine: ChatEngine,
    private readonly options: {
      readonly hasLogProbs: boolean;
      readonly includesUsage: boolean;
      readonly echoed: string;
    },
  ) {}

  start(): readonly ServerEvent[] {
    return [];
  }

  delta({ index, text, toolCall }: { index: number; text?: string; toolCall?: ToolCall }): readonly ServerEvent[] {
    const events = this.open(index);
    if (text !== undefined) return [...events, this.chunk([{ index, delta: { content: text }, finish_reason: null }])];
    const position = this.callCounts.get(index) ?? 0;
    this.callCounts.set(index, position + 1);
    const delta = { tool_calls: [{ index: position, ...formatToolCall(toolCall!) }] };
    return [...events, this.chunk([{ index, delta, finish_reason: null }])];
  }

  end(results: readonly ChatResult[]): readonly ServerEvent[] {
    const events = results[0].choices.flatMap((choice) => {
      const { index } = choice;
      // The tokens of pieces that were kept back for stop strings are known only now.
      const logprobs = this.options.hasLogProbs ? formatLogProbs(choice, this.engine) : null;
      const last = { index, delta: {}, logprobs, finish_reason: finishReason(choice) };
      return [...this.open(index), this.chunk([last])];
    });
    const usage = this.options.includesUsage ? [this.chunk([], { usage: formatUsage(results) })] : [];
    return [...events, ...usage, { data: "[DONE]" }];
  }

  private open(index: number): ServerEvent[] {
    if (this.started.has(index)) return [];
    this.started.add(index);
    return [this.chunk([{ index, delta: { role: "assistant", content: this.options.echoed }, finish_reason: null }])];
  }

  private chunk(choices: readonly object[], others: object = {}): ServerEvent {
    const { base, engine } = this;
    const chunk = { ...base, object: "chat.completion.chunk", model: engine.modelName, choices, ...others };
    return { data: JSON.stringify(chunk) };
  }
}
