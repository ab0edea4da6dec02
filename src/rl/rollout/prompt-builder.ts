import { LlamaGymError } from "../../core/errors.js";
import type { Conversation, ConversationState } from "../../models/text/index.js";
import type { PromptRenderer } from "./prompt-renderer.js";
import type { ContextOverflow, PromptSettings } from "./rollout-settings.js";

/** What a dialogue needs to go on after it was saved; JSON. */
export interface PromptBuilderState {
  readonly conversation: ConversationState | null;
  readonly observationText: string | null;
}

/**
 * What a model is told in one episode: the system prompt, then observations and replies by turns, as many of the earlier ones
 * as its settings and the context allow.
 */
export class PromptBuilder {
  /** The whole history; null where a prompt shows no earlier turn. */
  private readonly conversation: Conversation | null;
  /** The observation that waits for a reply. */
  private observationText: string | null = null;
  private numDropped = 0;

  constructor(
    private readonly renderer: PromptRenderer,
    private readonly systemPrompt: string | undefined,
    private readonly settings: PromptSettings,
  ) {
    this.conversation = settings.historyTurns > 0 ? renderer.startConversation() : null;
  }

  /** Turns that were left out because the context was full. */
  get droppedTurns(): number {
    return this.numDropped;
  }

  /** Shows an observation, in place of one that got no reply. */
  addObservation(observationText: string): void {
    const replacesPrevious = this.observationText !== null;
    this.observationText = observationText;
    const { conversation } = this;
    if (conversation === null) return;
    if (replacesPrevious) {
      const { entries, ...rest } = conversation.getState();
      const lastSampled = entries.findLastIndex(({ sampled }) => sampled !== null);
      conversation.setState({ ...rest, entries: entries.slice(0, lastSampled + 1) });
    }
    if (conversation.messages.length === 0)
      conversation.add(...this.renderer.firstMessages(this.systemPrompt, observationText));
    else conversation.add({ role: "user", content: observationText });
    while (conversation.visibleTurnCount > this.settings.historyTurns && this.dropOldestTurn());
  }

  /**
   * The tokens of the next prompt, with room for a reply behind it: where the context is full, the oldest turns are left out or,
   * by the policy, CONTEXT_OVERFLOW is thrown.
   */
  build(
    reserveTokens: (promptTokens: readonly number[]) => number,
    onOverflow: ContextOverflow = this.settings.contextOverflow,
  ): readonly number[] {
    let ids = this.renderPrompt();
    for (
      let newTokens = reserveTokens(ids);
      ids.length + newTokens > this.settings.maxContextLength;
      newTokens = reserveTokens(ids)
    ) {
      if (onOverflow === "error" || !this.dropOldestTurn()) throw this.overflowError(ids.length, newTokens);
      this.numDropped++;
      ids = this.renderPrompt();
    }
    return ids;
  }

  /** Keeps what the model replied. */
  addCompletion(tokens: readonly number[]): void {
    this.observationText = null;
    this.conversation?.appendCompletion(tokens);
  }

  getState(): PromptBuilderState {
    return { conversation: this.conversation?.getState() ?? null, observationText: this.observationText };
  }

  setState({ conversation, observationText }: PromptBuilderState): void {
    this.observationText = observationText;
    if (conversation !== null) this.conversation?.setState(conversation);
  }

  private renderPrompt(): readonly number[] {
    if (this.observationText === null)
      throw new LlamaGymError("INVALID_STATE", "A dialogue needs an observation before a prompt.");
    return this.conversation?.promptIds() ?? this.renderer.renderSingleTurn(this.systemPrompt, this.observationText);
  }

  /** Leaves out the oldest turn, but not the system prompt; false when only the last turn is left. */
  private dropOldestTurn(): boolean {
    const { conversation } = this;
    if (conversation === null || conversation.dropOldestTurns() === 0) return false;
    const { entries, ...rest } = conversation.getState();
    const [{ message }] = entries;
    if (message.role === "system") return true;
    // A template without a system message had the system prompt in the turn that is gone.
    const [firstMessage] = this.renderer.firstMessages(this.systemPrompt, message.content as string);
    conversation.setState({ ...rest, entries: [{ message: firstMessage, sampled: null }, ...entries.slice(1)] });
    return true;
  }

  private overflowError(promptTokens: number, newTokens: number): LlamaGymError {
    const { maxContextLength, contextOverflow } = this.settings;
    const advice =
      contextOverflow === "error"
        ? 'Set contextOverflow to "drop-oldest", or historyTurns to a small number.'
        : "Not even the last turn alone fits: shorten the system prompt or the observation.";
    return new LlamaGymError(
      "CONTEXT_OVERFLOW",
      `A prompt of ${promptTokens} tokens and a reply of ${newTokens} need more than the context of ${maxContextLength}. ${advice}`,
    );
  }
}
