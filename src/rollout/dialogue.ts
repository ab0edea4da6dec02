import { LlamaGymError } from "../errors.js";
import type { Conversation, ConversationState } from "../text/index.js";
import type { PromptWriter } from "./prompt-writer.js";
import type { ContextPolicy, DialogueSettings } from "./settings.js";

/** What a dialogue needs to go on after it was saved; JSON. */
export interface DialogueState {
  readonly conversation: ConversationState | null;
  readonly shown: string | null;
}

/**
 * What a model is told in one episode: the system prompt, then observations and replies by turns, as many of the earlier ones
 * as its settings and the context allow.
 */
export class Dialogue {
  /** The whole history; null where a prompt shows no earlier turn. */
  private readonly conversation: Conversation | null;
  /** The observation that waits for a reply. */
  private shown: string | null = null;
  private forgotten = 0;

  constructor(
    private readonly writer: PromptWriter,
    private readonly systemPrompt: string | undefined,
    private readonly settings: DialogueSettings,
  ) {
    this.conversation = settings.historyTurns > 0 ? writer.conversation() : null;
  }

  /** Turns that were left out because the context was full. */
  get forgottenTurns(): number {
    return this.forgotten;
  }

  /** Shows an observation, in place of one that got no reply. */
  show(shown: string): void {
    const isRepeated = this.shown !== null;
    this.shown = shown;
    const { conversation } = this;
    if (conversation === null) return;
    if (isRepeated) {
      const { entries, ...rest } = conversation.getState();
      const replied = entries.findLastIndex(({ sampled }) => sampled !== null);
      conversation.setState({ ...rest, entries: entries.slice(0, replied + 1) });
    }
    if (conversation.messages.length === 0) conversation.add(...this.writer.opening(this.systemPrompt, shown));
    else conversation.add({ role: "user", content: shown });
    while (conversation.replyCountShown > this.settings.historyTurns && this.dropOldestTurn());
  }

  /**
   * The tokens of the next prompt, with room for a reply behind it: where the context is full, the oldest turns are left out or,
   * by the policy, CONTEXT_OVERFLOW is thrown.
   */
  prompt(
    room: (prompt: readonly number[]) => number,
    policy: ContextPolicy = this.settings.contextPolicy,
  ): readonly number[] {
    let ids = this.read();
    for (let newTokens = room(ids); ids.length + newTokens > this.settings.maxContext; newTokens = room(ids)) {
      if (policy === "error" || !this.dropOldestTurn()) throw this.overflow(ids.length, newTokens);
      this.forgotten++;
      ids = this.read();
    }
    return ids;
  }

  /** Keeps what the model replied. */
  accept(tokens: readonly number[]): void {
    this.shown = null;
    this.conversation?.appendReply(tokens);
  }

  getState(): DialogueState {
    return { conversation: this.conversation?.getState() ?? null, shown: this.shown };
  }

  setState({ conversation, shown }: DialogueState): void {
    this.shown = shown;
    if (conversation !== null) this.conversation?.setState(conversation);
  }

  private read(): readonly number[] {
    if (this.shown === null)
      throw new LlamaGymError("INVALID_STATE", "A dialogue needs an observation before a prompt.");
    return this.conversation?.promptIds() ?? this.writer.singleTurn(this.systemPrompt, this.shown);
  }

  /** Leaves out the oldest turn, but not the system prompt; false when only the last turn is left. */
  private dropOldestTurn(): boolean {
    const { conversation } = this;
    if (conversation === null || conversation.dropOldestTurns() === 0) return false;
    const { entries, ...rest } = conversation.getState();
    const [{ message }] = entries;
    if (message.role === "system") return true;
    // A template without a system message had the system prompt in the turn that is gone.
    const [opening] = this.writer.opening(this.systemPrompt, message.content as string);
    conversation.setState({ ...rest, entries: [{ message: opening, sampled: null }, ...entries.slice(1)] });
    return true;
  }

  private overflow(promptTokens: number, newTokens: number): LlamaGymError {
    const { maxContext, contextPolicy } = this.settings;
    const advice =
      contextPolicy === "error"
        ? 'Set contextPolicy to "drop-oldest", or historyTurns to a small number.'
        : "Not even the last turn alone fits: shorten the system prompt or the observation.";
    return new LlamaGymError(
      "CONTEXT_OVERFLOW",
      `A prompt of ${promptTokens} tokens and a reply of ${newTokens} need more than the context of ${maxContext}. ${advice}`,
    );
  }
}
