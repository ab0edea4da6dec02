import { LlamaGymError } from "../errors.js";
import type { DecoderConfig } from "../nn/config.js";
import type { ChatMessage, Tokenizer } from "../text/index.js";
import type { GenerationOptions } from "./options.js";

/** What a reply follows: messages, a text to go on with, or token ids. */
export type PromptInput = string | readonly ChatMessage[] | readonly number[] | Int32Array;

/** A prompt as the model sees it. */
export interface Prompt {
  readonly tokens: readonly number[];
  /** Whether the reply goes on with a text of which the prompt is the beginning. */
  readonly continues: boolean;
  /** How many tokens of the reply there is room for. */
  readonly maxNewTokens: number;
}

export interface PromptRequest extends Pick<GenerationOptions, "overflow" | "tools" | "chatTemplate" | "variables"> {
  readonly maxNewTokens: number;
  /** Otherwise a prompt that leaves less room than that makes the reply shorter. */
  readonly lengthIsAsked: boolean;
}

/**
 * Makes a prompt's tokens and sees to it that prompt and reply fit the model's context.
 * Throws INVALID_ARGUMENT for an input that is no prompt, CONTEXT_OVERFLOW when it does not fit.
 */
export class PromptMaker {
  constructor(
    private readonly config: Pick<DecoderConfig, "maxPositions" | "vocabSize">,
    /** Throws where the model has no tokenizer. */
    private readonly tokenizer: () => Tokenizer,
    private readonly hasTokenizer: boolean,
  ) {}

  make(input: PromptInput, request: PromptRequest): Prompt {
    const { maxPositions } = this.config;
    const { overflow = "error", maxNewTokens, lengthIsAsked } = request;
    if (lengthIsAsked && maxNewTokens >= maxPositions) {
      throw overflowError(`${maxNewTokens} new tokens`, maxPositions, "Ask for fewer.");
    }
    const truncated = overflow === "truncate-left";
    // A reply whose length nobody asked for takes what the context has left.
    const reserved = lengthIsAsked ? maxNewTokens : Math.min(maxNewTokens, truncated ? maxPositions >> 1 : 1);
    const room = maxPositions - reserved;
    const tokens = this.fit(input, request, truncated ? room : Infinity);
    if (tokens.length > room) {
      throw overflowError(
        `A prompt of ${tokens.length} tokens and ${reserved} new ones`,
        maxPositions,
        truncated ? "Even its last message is too long." : 'Shorten it, or set overflow to "truncate-left".',
      );
    }
    return {
      tokens,
      continues: !isMessages(input),
      maxNewTokens: Math.min(maxNewTokens, maxPositions - tokens.length),
    };
  }

  /** The input's tokens, without its oldest part where they are more than `room`. */
  private fit(input: PromptInput, request: PromptRequest, room: number): readonly number[] {
    if (isMessages(input)) return this.fitMessages(input, request, room);
    const tokens = typeof input === "string" ? this.tokenizer().encode(input) : this.checkedTokens(input);
    if (tokens.length === 0) throw invalid("The prompt is empty; give at least one token.");
    if (tokens.length <= room) return tokens;
    const bos = this.hasTokenizer ? this.tokenizer().bosTokenId : undefined;
    return bos !== undefined && tokens[0] === bos && room > 1
      ? [bos, ...tokens.slice(tokens.length - room + 1)]
      : tokens.slice(tokens.length - room);
  }

  private fitMessages(messages: readonly ChatMessage[], request: PromptRequest, room: number): readonly number[] {
    const { tools, chatTemplate, variables } = request;
    const tokenizer = this.tokenizer();
    const render = (kept: readonly ChatMessage[]) =>
      tokenizer.encode(
        tokenizer.applyChatTemplate(kept, { tools, chatTemplate, variables, addGenerationPrompt: true }),
        { addSpecialTokens: false },
      );
    let tokens = render(messages);
    const system = messages.slice(0, Math.max(0, messages.findIndex(({ role }) => role !== "system")));
    for (let start = system.length + 1; tokens.length > room && start < messages.length; start++) {
      // Templates want the first message to be the user's.
      if (messages[start].role === "user") tokens = render([...system, ...messages.slice(start)]);
    }
    return tokens;
  }

  private checkedTokens(input: readonly number[] | Int32Array): readonly number[] {
    const { vocabSize } = this.config;
    const wrong = Array.prototype.find.call(input, (id: number) => !Number.isSafeInteger(id) || id < 0 || id >= vocabSize);
    if (wrong !== undefined)
      throw invalid(`The prompt has the token id ${String(wrong)}; this model's are whole numbers from 0 to ${vocabSize - 1}.`);
    return Array.from(input);
  }
}

function isMessages(input: PromptInput): input is readonly ChatMessage[] {
  if (typeof input === "string" || input instanceof Int32Array) return false;
  if (!Array.isArray(input)) {
    throw invalid(`A prompt is a text, a list of messages or a list of token ids, not ${input === null ? "null" : typeof input}.`);
  }
  return typeof input[0] === "object";
}

function overflowError(what: string, maxPositions: number, advice: string): LlamaGymError {
  return new LlamaGymError("CONTEXT_OVERFLOW", `${what} need more than the model's context of ${maxPositions}. ${advice}`);
}

function invalid(message: string): LlamaGymError {
  return new LlamaGymError("INVALID_ARGUMENT", message);
}
