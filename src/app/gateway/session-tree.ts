import { LlamaGymError } from "../../core/errors.js";
import { runStepsWithPauses } from "../../core/steps.js";
import type { ChatMessage, ContentPart, RenderedText } from "../../models/text/index.js";
import type { Turn } from "../../rl/rollout/index.js";
import { skipSampledEnd } from "../../rl/tools/index.js";
import { describePrompt } from "../../rl/train/index.js";
import type { ChatChoice, ChatRequest, ChatResult } from "../server/chat-engine.js";
import type { ModelChatEngine } from "../server/model-chat-engine.js";

/** A completion of a session. */
interface CompletionNode {
  readonly turn: Turn;
  /** The messages before the completion. */
  readonly history: readonly ChatMessage[];
  /** Keys of the request's tools and of all messages, the completion included. */
  readonly keys: readonly string[];
}

/**
 * The completions of a session with their exact tokens. A request that continues a recorded
 * conversation continues its tokens; any other request (an edited history, a call of a sub-agent)
 * is rendered as a separate segment.
 */
export class SessionTree {
  /** Recorded completions in the order in which they ended. */
  readonly turns: Turn[] = [];
  private readonly nodes: CompletionNode[] = [];
  private numSegments = 0;

  constructor(private readonly engine: Pick<ModelChatEngine, "model" | "renderPrompt" | "renderAfter">) {}

  /** Number of prompts that did not continue a recorded completion. */
  get segments(): number {
    return this.numSegments;
  }

  /** Returns the tokens of a request's prompt. Throws as rendering it does. */
  async promptTokens(request: ChatRequest): Promise<readonly number[]> {
    const keys = requestKeys(request);
    const continued = keys === undefined ? undefined : this.findContinued(keys);
    const added = continued === undefined ? undefined : await this.renderAdded(request, continued);
    if (continued === undefined || added === undefined) {
      this.numSegments++;
      return this.engine.renderPrompt(request);
    }
    return [...continued.turn.prompt, ...continued.turn.tokens, ...added];
  }

  /** Records the choices of a request, except aborted ones. */
  record(request: ChatRequest, { promptTokens, choices }: ChatResult): void {
    const keys = requestKeys(request);
    const observation = describePrompt(request.input);
    for (const choice of choices) {
      if (choice.finishReason === "aborted" || choice.tokens.length === 0) continue;
      const turn = toTurn(promptTokens, choice, observation);
      this.turns.push(turn);
      if (keys !== undefined)
        this.nodes.push({ turn, history: request.input as readonly ChatMessage[], keys: [...keys, choiceKey(choice)] });
    }
  }

  /** Returns the longest recorded conversation that a request continues with further messages. */
  private findContinued(keys: readonly string[]): CompletionNode | undefined {
    let longest: CompletionNode | undefined;
    for (const node of this.nodes) {
      const { length } = node.keys;
      if (length >= keys.length || length < (longest?.keys.length ?? 0)) continue;
      if (node.keys.every((key, i) => key === keys[i])) longest = node;
    }
    return longest;
  }

  /**
   * Encodes what the chat template adds after a recorded completion: its end, unless sampled, and
   * the new messages. Returns undefined where the template does not allow it.
   */
  private async renderAdded(
    request: ChatRequest,
    { turn, history }: CompletionNode,
  ): Promise<readonly number[] | undefined> {
    const { tokenizer } = this.engine.model;
    const added = (request.input as readonly ChatMessage[]).slice(history.length + 1);
    const input = [...history, { role: "assistant" }, ...added];
    let rest: RenderedText | undefined;
    try {
      rest = this.engine.renderAfter({ ...request, input }, -1 - added.length);
    } catch (error) {
      if (error instanceof LlamaGymError) return undefined;
      throw error;
    }
    if (rest === undefined) return undefined;
    const last = turn.tokens.at(-1)!;
    const text = skipSampledEnd(this.engine.model, rest, last);
    return text && runStepsWithPauses(tokenizer.encodeContinuationSteps(text, last));
  }
}

/** Returns the text of a completion with its tool calls. */
export function describeChoice({ text, toolCalls }: ChatChoice): string {
  const texts = [text, ...toolCalls.map((call) => `${call.name}(${call.arguments})`)];
  return texts.filter((part) => part !== "").join("\n");
}

function toTurn(prompt: readonly number[], choice: ChatChoice, observation: string): Turn {
  const { tokens, logProbs, values, allowedTokens, finishReason } = choice;
  return {
    prompt,
    tokens,
    logProbs,
    values,
    allowedTokens: allowedTokens.some((allowed) => allowed !== undefined) ? allowedTokens : undefined,
    text: describeChoice(choice),
    finishReason: finishReason === "length" ? "length" : "stop",
    isValid: true,
    attempts: 1,
    penalty: 0,
    recording: { observation, render: undefined, action: undefined, distributions: [] },
    reward: 0,
  };
}

/** Returns the keys of a chat's tools and messages; undefined for a prompt of text or tokens. */
function requestKeys({ input, tools = [] }: ChatRequest): readonly string[] | undefined {
  if (!Array.isArray(input) || typeof input[0] !== "object") return undefined;
  return [JSON.stringify(tools), ...(input as readonly ChatMessage[]).map(messageKey)];
}

/** Serializes what a message says, in whichever form the client sends it back. */
function messageKey({ role, content, name, tool_calls: toolCalls = [] }: ChatMessage): string {
  const parts: readonly ContentPart[] = typeof content === "string" ? [] : (content ?? []);
  const text = typeof content === "string" ? content : parts.map((part) => part.text ?? "").join("");
  const calls = toolCalls as readonly { readonly function: { readonly name: string; readonly arguments: unknown } }[];
  return JSON.stringify([
    role,
    text,
    role === "assistant" ? undefined : name,
    calls.map((call) => [call.function.name, call.function.arguments]),
  ]);
}

function choiceKey({ text, toolCalls }: ChatChoice): string {
  const calls = toolCalls.map((call) => ({ function: { name: call.name, arguments: JSON.parse(call.arguments) } }));
  return messageKey({ role: "assistant", content: text, tool_calls: calls });
}
