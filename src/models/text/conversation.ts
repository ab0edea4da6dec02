import { checkOptions } from "../../core/settings.js";
import { LlamaGymError } from "../../core/errors.js";
import { chatOptionNames, type ChatOptions } from "./chat-renderer.js";
import type { ChatMessage } from "./chat-messages.js";
import { type RenderedText, sliceRendered } from "./rendered-text.js";
import type { Tokenizer } from "./tokenizer.js";

/** Options of a conversation. */
export interface ConversationOptions extends ChatOptions {
  /** Initial messages. */
  readonly messages?: readonly ChatMessage[];
  /**
   * Prefix of every completion, such as "Action:", part of the prompt rather than sampled. Default
   * "".
   */
  readonly completionPrefix?: string;
}

/** The tokens of a conversation so far, and their text. */
interface Draft {
  readonly ids: readonly number[];
  readonly text: string;
}

/** A sequence awaiting a completion, ending with the ids of the completion prefix. */
interface PendingPrompt extends Draft {
  readonly prefixIds: readonly number[];
}

interface ConversationEntry {
  readonly message: ChatMessage;
  /** Ids of a sampled completion with its prefix; null for a given message. */
  readonly sampled: readonly number[] | null;
}

/** Serializable state that determines future prompts. */
export interface ConversationState {
  readonly entries: readonly ConversationEntry[];
  readonly draft: Draft | null;
}

/**
 * A conversation as token ids. Given messages are tokenized once, when rendered; sampled
 * completions are never re-tokenized. One turn: `add` messages, sample from `promptIds`,
 * `appendCompletion`. As long as the chat template leaves earlier turns unchanged, turns share one
 * sequence; otherwise (it trims them, drops reasoning, moves the system prompt) a new one starts.
 */
export class Conversation {
  private entries: ConversationEntry[];
  private draft: Draft | null = null;
  private pending: PendingPrompt | null = null;
  private readonly options: ChatOptions & { readonly now: Date };
  private readonly completionPrefix: string;

  constructor(
    readonly tokenizer: Tokenizer,
    given: ConversationOptions = {},
  ) {
    checkOptions("A Conversation", given, { ...chatOptionNames, messages: true, completionPrefix: true });
    const { messages = [], completionPrefix = "", ...options } = given;
    this.entries = messages.map((message) => ({ message, sampled: null }));
    this.completionPrefix = completionPrefix;
    // Templates must print the same time in every turn.
    this.options = { ...options, now: options.now ?? new Date() };
  }

  /** All messages; sampled completions have their text as content. */
  get messages(): readonly ChatMessage[] {
    return this.entries.map(({ message }) => message);
  }

  /** Number of sampled completions in the next prompt. */
  get visibleTurnCount(): number {
    return this.entries.filter(({ sampled }) => sampled !== null).length;
  }

  /** Adds messages that were not sampled: system, user, tool, or an example of the assistant's. */
  add(...messages: readonly ChatMessage[]): void {
    this.pending = null;
    for (const message of messages) this.entries.push({ message, sampled: null });
  }

  /**
   * Returns the prompt up to the header of the assistant's next message and the completion prefix.
   * @throws TEMPLATE_FAILED when the template rejects the messages.
   */
  promptIds(): readonly number[] {
    return this.preparePrompt().ids;
  }

  /**
   * Appends a sampled completion, with its end token unless truncated, and returns the new message.
   */
  appendCompletion(ids: readonly number[]): ChatMessage {
    const invalid = ids.find((id) => !Number.isSafeInteger(id) || id < 0);
    if (invalid !== undefined)
      throw new LlamaGymError("INVALID_ARGUMENT", `Token ids must be integers >= 0, got ${invalid}.`);
    const { ids: promptIds, text, prefixIds } = this.preparePrompt();
    this.draft = { ids: [...promptIds, ...ids], text: text + this.tokenizer.decodeContinuation(ids) };
    this.pending = null;
    const message: ChatMessage = { role: "assistant", content: this.completionPrefix + this.decodeCompletion(ids) };
    this.entries.push({ message, sampled: [...prefixIds, ...ids] });
    return message;
  }

  /**
   * Drops the oldest turns when the context is full: from the first non-system message to the
   * message after the given number of completions. The next prompt starts a new sequence, in which
   * remaining completions keep their sampled ids. Returns the number of messages dropped; 0 when
   * only the last turn is left.
   */
  dropOldestTurns(count = 1): number {
    const first = this.entries.findIndex(({ message }) => message.role !== "system");
    let end = first;
    for (let dropped = 0; dropped < count && end >= 0; dropped++) {
      const next = this.findNextTurn(end);
      if (next < 0) break;
      end = next;
    }
    if (end <= first) return 0;
    this.entries.splice(first, end - first);
    this.draft = null;
    this.pending = null;
    return end - first;
  }

  /** Returns an independent copy, for several completions of one prompt. */
  fork(): Conversation {
    const { completionPrefix } = this;
    const copy = new Conversation(this.tokenizer, { ...this.options, completionPrefix });
    copy.entries = [...this.entries];
    copy.draft = this.draft;
    copy.pending = this.pending;
    return copy;
  }

  /** Returns the state that determines future prompts. */
  getState(): ConversationState {
    return { entries: [...this.entries], draft: this.draft };
  }

  /** Restores a saved state. */
  setState({ entries, draft }: ConversationState): void {
    this.entries = [...entries];
    this.draft = draft;
    this.pending = null;
  }

  /** Returns the prompt of the next completion. */
  private preparePrompt(): PendingPrompt {
    if (this.pending) return this.pending;
    const { ids, text } = (this.draft && this.continueDraft(this.draft, this.entries.length)) ?? this.startDraft();
    const prefixIds =
      this.completionPrefix === "" ? [] : this.tokenizer.encodeContinuation(this.completionPrefix, ids.at(-1));
    this.pending = { ids: [...ids, ...prefixIds], text: text + this.completionPrefix, prefixIds };
    return this.pending;
  }

  /**
   * Starts a sequence with the whole conversation, keeping sampled ids of earlier completions where
   * possible.
   */
  private startDraft(): Draft {
    const count = this.entries.length;
    const last = this.entries.findLastIndex(({ sampled }) => sampled !== null);
    if (last < 0) return this.renderDraft(count);
    let draft: Draft | null = null;
    this.entries.forEach(({ sampled }, index) => {
      if (!sampled) return;
      const { ids, text }: Draft = (draft && this.continueDraft(draft, index)) ?? this.renderDraft(index);
      draft = { ids: [...ids, ...sampled], text: text + this.tokenizer.decodeContinuation(sampled) };
    });
    return (draft && this.continueDraft(draft, count)) ?? this.renderDraft(count);
  }

  private renderDraft(count: number): Draft {
    const rendered = this.render(this.messages.slice(0, count));
    return { ids: this.tokenizer.encodeContinuation(rendered, undefined), text: rendered.text };
  }

  /**
   * Extends a sequence by the messages after its last completion; null when the template changed
   * its earlier part.
   */
  private continueDraft(draft: Draft, count: number): Draft | null {
    const rendered = this.render(this.messages.slice(0, count));
    if (!rendered.text.startsWith(draft.text)) return null;
    const added = sliceRendered(rendered, draft.text.length);
    const ids = this.tokenizer.encodeContinuation(added, draft.ids.at(-1));
    return { ids: [...draft.ids, ...ids], text: rendered.text };
  }

  private render(messages: readonly ChatMessage[]): RenderedText {
    return this.tokenizer.renderChat(messages, { ...this.options, addGenerationPrompt: true });
  }

  private decodeCompletion(ids: readonly number[]): string {
    const last = ids.at(-1);
    const hasEndToken =
      last !== undefined && (this.tokenizer.isSpecial(last) || this.tokenizer.eosTokenIds.includes(last));
    return this.tokenizer.decodeContinuation(hasEndToken ? ids.slice(0, -1) : ids);
  }

  /** Returns the index of the next turn's first message after `start`, or -1. */
  private findNextTurn(start: number): number {
    const assistantIndex = this.entries.findIndex(
      ({ message }, index) => index >= start && message.role === "assistant",
    );
    if (assistantIndex < 0) return -1;
    return this.entries.findIndex(
      ({ message }, index) => index > assistantIndex && message.role !== "assistant" && message.role !== "tool",
    );
  }
}
