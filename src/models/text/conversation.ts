import { LlamaGymError } from "../../core/errors.js";
import type { ChatOptions } from "./chat-renderer.js";
import { uniquePlaceholders } from "./jinja/chat-template.js";
import type { ChatMessage } from "./chat-messages.js";
import type { Tokenizer } from "./tokenizer.js";

/**
 * How the turns of a conversation share a sequence:
 * - "auto": they do as long as the chat template prints the earlier turns as they were sampled. Where it prints them
 *   otherwise (trims them, drops their reasoning, moves the system prompt), the turn starts a sequence of its own.
 * - "append": always; the model then sees what it sampled, even where its template would have shown it otherwise.
 * - "turns": never; each turn's prompt is rendered afresh.
 */
export type HistoryPolicy = "auto" | "append" | "turns";

/** How a conversation is rendered. */
export interface ConversationOptions extends ChatOptions {
  /** The messages that it starts with. */
  readonly messages?: readonly ChatMessage[];
  /** Default "auto". */
  readonly history?: HistoryPolicy;
  /** How every reply begins, such as "Action:": given to the model with the prompt, not sampled. Default "". */
  readonly completionPrefix?: string;
}

/** Where a sampled reply stands in its sequence: tokens [start, end). */
export interface ReplyRange {
  /** The number of the reply in the conversation, from 0. */
  readonly turn: number;
  readonly start: number;
  readonly end: number;
}

/** Prompt and reply tokens in the order in which a model sees them. */
export interface TokenSequence {
  readonly ids: readonly number[];
  /** For each token 1 when it was sampled in this sequence, else 0. */
  readonly mask: Uint8Array;
  readonly replies: readonly ReplyRange[];
}

/** A sequence on its way, and the text of its tokens. */
interface PartialTurn {
  readonly ids: readonly number[];
  readonly text: string;
  readonly replies: readonly ReplyRange[];
}

/** A sequence that waits for a reply, and the ids of the reply's prefix at its end. */
interface PendingPrompt extends PartialTurn {
  readonly prefixIds: readonly number[];
}

interface ConversationEntry {
  readonly message: ChatMessage;
  /** The ids of a sampled reply, with those of its prefix; null for a message that was given. */
  readonly sampled: readonly number[] | null;
}

/** All that a conversation's future depends on; JSON. */
export interface ConversationState {
  readonly entries: readonly { readonly message: ChatMessage; readonly sampled: readonly number[] | null }[];
  readonly draft: { readonly ids: readonly number[]; readonly text: string } | null;
  readonly turns: number;
}

/**
 * A conversation as token ids, for a sampler and a trainer. What is given is rendered and tokenised once, when it
 * comes; what is sampled stays as it was sampled and is never tokenised. One turn is: `add` messages, give `promptIds`
 * to the sampler, `appendReply` with what it sampled. `sequences` is what to train on.
 */
export class Conversation {
  private entries: ConversationEntry[];
  private readonly closed: PartialTurn[] = [];
  private draft: PartialTurn | null = null;
  private pending: PendingPrompt | null = null;
  private turns = 0;
  private readonly options: ChatOptions & { readonly now: Date };
  private readonly history: HistoryPolicy;
  private readonly completionPrefix: string;

  constructor(
    readonly tokenizer: Tokenizer,
    { messages = [], history = "auto", completionPrefix = "", ...options }: ConversationOptions = {},
  ) {
    this.entries = messages.map((message) => ({ message, sampled: null }));
    this.history = history;
    this.completionPrefix = completionPrefix;
    // A template that prints the time must print the same one in every turn.
    this.options = { ...options, now: options.now ?? new Date() };
  }

  /** The messages so far; sampled replies have their text as content. */
  get messages(): readonly ChatMessage[] {
    return this.entries.map(({ message }) => message);
  }

  /** Whether all replies so far stand in one sequence. */
  get isIncremental(): boolean {
    return this.closed.length === 0;
  }

  /** The number of replies so far. */
  get turnCount(): number {
    return this.turns;
  }

  /** The number of sampled replies that the next prompt shows. */
  get visibleTurnCount(): number {
    return this.entries.filter(({ sampled }) => sampled !== null).length;
  }

  /** Adds messages that were not sampled: system, user, tool, or an assistant's given as an example. */
  add(...messages: readonly ChatMessage[]): void {
    this.pending = null;
    for (const message of messages) this.entries.push({ message, sampled: null });
  }

  /**
   * What to give to the sampler: the sequence so far, up to and with the header of the assistant's next message and
   * the reply's prefix.
   * Throws TEMPLATE_FAILED when the template refuses the messages.
   */
  promptIds(): readonly number[] {
    return this.preparePrompt().ids;
  }

  /** Appends what the sampler gave, with its end token or, if it was cut off, without. Returns the new message. */
  appendCompletion(ids: readonly number[]): ChatMessage {
    const invalid = ids.find((id) => !Number.isSafeInteger(id) || id < 0);
    if (invalid !== undefined) {
      throw new LlamaGymError("INVALID_ARGUMENT", `A reply has the token id ${invalid}. Ids are integers from 0 on.`);
    }
    const { ids: promptIds, text, replies, prefixIds } = this.preparePrompt();
    const range = { turn: this.turns++, start: promptIds.length, end: promptIds.length + ids.length };
    this.draft = {
      ids: [...promptIds, ...ids],
      text: text + this.tokenizer.decodeContinuation(ids),
      replies: [...replies, range],
    };
    this.pending = null;
    const message: ChatMessage = { role: "assistant", content: this.completionPrefix + this.decodeCompletion(ids) };
    this.entries.push({ message, sampled: [...prefixIds, ...ids] });
    return message;
  }

  /** The sequences with sampled tokens, in order. There is one, unless the template rewrote the history. */
  get sequences(): TokenSequence[] {
    const drafts = this.draft ? [...this.closed, this.draft] : this.closed;
    return drafts
      .filter(({ replies }) => replies.length > 0)
      .map(({ ids, replies }) => {
        const mask = new Uint8Array(ids.length);
        for (const { start, end } of replies) mask.fill(1, start, end);
        return { ids: [...ids], mask, replies };
      });
  }

  /**
   * Forgets the oldest turns, for a context that is full: from the first message that is not the system's, up to the
   * message after the given number of replies. The next prompt starts a new sequence; the replies that stay are in it
   * as they were sampled, but not to be trained again. Returns the number of messages dropped, 0 when only the last
   * turn is left.
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
    this.closeDraft();
    return end - first;
  }

  /** A copy that goes on on its own, for several replies to the same prompt. */
  fork(): Conversation {
    const { history, completionPrefix } = this;
    const copy = new Conversation(this.tokenizer, { ...this.options, history, completionPrefix });
    copy.entries = [...this.entries];
    copy.closed.push(...this.closed);
    copy.draft = this.draft;
    copy.pending = this.pending;
    copy.turns = this.turns;
    return copy;
  }

  /** What its prompts will be; replies that were trained or counted before are not in it. */
  getState(): ConversationState {
    const { entries, draft, turns } = this;
    return { entries: [...entries], draft: draft && { ids: draft.ids, text: draft.text }, turns };
  }

  /** Goes on from a saved state, as the conversation that gave it would. */
  setState({ entries, draft, turns }: ConversationState): void {
    this.entries = [...entries];
    this.closed.length = 0;
    this.draft = draft && { ...draft, replies: [] };
    this.turns = turns;
    this.pending = null;
  }

  /** The sequence up to the next reply. */
  private preparePrompt(): PendingPrompt {
    if (this.pending) return this.pending;
    const continued = this.draft && this.continueDraft(this.draft, this.entries.length);
    if (this.draft && !continued) this.closeDraft();
    const { ids, text, replies } = continued ?? this.startDraft();
    const prefixIds =
      this.completionPrefix === "" ? [] : this.tokenizer.encodeContinuation(this.completionPrefix, ids.at(-1));
    this.pending = { ids: [...ids, ...prefixIds], text: text + this.completionPrefix, replies, prefixIds };
    return this.pending;
  }

  private closeDraft(): void {
    if (this.draft) this.closed.push(this.draft);
    this.draft = null;
    this.pending = null;
  }

  /** A new sequence with the whole conversation; earlier replies stand in it as they were sampled where they can. */
  private startDraft(): PartialTurn {
    const count = this.entries.length;
    const last = this.entries.findLastIndex(({ sampled }) => sampled !== null);
    if (last < 0 || this.history === "turns") return this.renderDraft(count);
    let draft: PartialTurn | null = null;
    this.entries.forEach(({ sampled }, index) => {
      if (!sampled) return;
      const { ids, text }: PartialTurn = (draft && this.continueDraft(draft, index)) ?? this.renderDraft(index);
      draft = { ids: [...ids, ...sampled], text: text + this.tokenizer.decodeContinuation(sampled), replies: [] };
    });
    return (draft && this.continueDraft(draft, count)) ?? this.renderDraft(count);
  }

  private renderDraft(count: number): PartialTurn {
    const text = this.render(this.messages.slice(0, count));
    return { ids: this.tokenizer.encode(text, { addSpecialTokens: false }), text, replies: [] };
  }

  /** The sequence with what came after its last reply, null when the template prints its earlier part otherwise. */
  private continueDraft(draft: PartialTurn, count: number): PartialTurn | null {
    if (this.history === "turns") return null;
    const messages = this.messages.slice(0, count);
    const added =
      this.history === "append"
        ? this.renderAfterCompletion(draft, count)
        : removePrefix(draft.text, this.render(messages));
    if (added === null) return null;
    const ids = this.tokenizer.encodeContinuation(added, draft.ids.at(-1));
    return { ids: [...draft.ids, ...ids], text: draft.text + added, replies: draft.replies };
  }

  /** What the template prints after the last sampled reply, whatever it does to the reply itself. */
  private renderAfterCompletion({ text, ids }: PartialTurn, count: number): string | null {
    const messages = this.messages.slice(0, count);
    const index = this.entries.slice(0, count).findLastIndex(({ sampled }) => sampled !== null);
    if (index < 0) return removePrefix(text, this.render(messages));
    const [placeholder] = uniquePlaceholders(text);
    const rendered = this.render(
      messages.map((message, i) => (i === index ? { ...message, content: placeholder } : message)),
    );
    const position = rendered.indexOf(placeholder);
    if (position < 0) return null;
    const closing = rendered.slice(position + placeholder.length);
    // The template's end token comes once, also when the model has already said it.
    const last = ids.at(-1);
    const end = last !== undefined && this.tokenizer.isSpecial(last) ? (this.tokenizer.idToToken(last) ?? "") : "";
    const start = closing.length - closing.trimStart().length;
    return end !== "" && closing.startsWith(end, start) ? closing.slice(start + end.length) : closing;
  }

  private render(messages: readonly ChatMessage[]): string {
    return this.tokenizer.applyChatTemplate(messages, { ...this.options, addGenerationPrompt: true });
  }

  private decodeCompletion(ids: readonly number[]): string {
    const last = ids.at(-1);
    const hasEndToken =
      last !== undefined && (this.tokenizer.isSpecial(last) || this.tokenizer.eosTokenIds.includes(last));
    return this.tokenizer.decodeContinuation(hasEndToken ? ids.slice(0, -1) : ids);
  }

  /** Where the turn after the one at `start` begins; -1 when there is none. */
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

/** What follows the beginning of a text, null when the text begins otherwise. */
function removePrefix(prefix: string, text: string): string | null {
  return text.startsWith(prefix) ? text.slice(prefix.length) : null;
}
