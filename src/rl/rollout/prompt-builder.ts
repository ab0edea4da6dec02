import { LlamaGymError } from "../../core/errors.js";
import type { Conversation, ConversationState } from "../../models/text/index.js";
import type { PromptRenderer } from "./prompt-renderer.js";
import type { ContextOverflow } from "../../generation/index.js";
import type { PromptSettings } from "./rollout-settings.js";

/** State of a PromptBuilder as JSON. */
export interface PromptBuilderState {
  readonly conversation: ConversationState | null;
  readonly observationText: string | null;
}

/**
 * Builds the prompts of an episode from its system prompt, observations and completions, with as
 * many of the earlier turns as the settings and the context allow.
 */
export class PromptBuilder {
  /** The history; null if prompts contain no earlier turns. */
  private readonly conversation: Conversation | null;
  /** The observation that awaits a completion. */
  private observationText: string | null = null;
  private numDropped = 0;

  constructor(
    private readonly renderer: PromptRenderer,
    private readonly systemPrompt: string | undefined,
    private readonly settings: PromptSettings,
  ) {
    this.conversation = settings.historyTurns > 0 ? renderer.startConversation() : null;
  }

  /** Number of turns dropped because the context was full. */
  get droppedTurns(): number {
    return this.numDropped;
  }

  /** Adds an observation; it replaces one without a completion. */
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
   * Builds the next prompt such that the reserved tokens fit into the context after it. If they do
   * not fit, drops the oldest turns.
   * @throws CONTEXT_OVERFLOW with "error", or if even the last turn alone does not fit.
   */
  build(
    reserveTokens: (promptTokens: readonly number[]) => number,
    onOverflow: ContextOverflow = this.settings.contextOverflow,
  ): readonly number[] {
    this.checkObservationLength();
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

  /** Adds the completion of the last observation. */
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

  /**
   * Refuses an observation that certainly exceeds the context before it is tokenized, which takes
   * seconds for megabytes.
   */
  private checkObservationLength(): void {
    const minTokens = this.renderer.tokenizer.minTokenCount(this.observationText ?? "");
    if (minTokens > this.settings.maxContextLength) throw this.overflowError(`at least ${minTokens}`, 0);
  }

  private renderPrompt(): readonly number[] {
    if (this.observationText === null)
      throw new LlamaGymError(
        "INVALID_STATE",
        "There is no observation to build a prompt from; call `addObservation` first.",
      );
    return this.conversation?.promptIds() ?? this.renderer.renderSingleTurn(this.systemPrompt, this.observationText);
  }

  /**
   * Drops the oldest turn but not the system prompt; returns false if only the last turn is left.
   */
  private dropOldestTurn(): boolean {
    const { conversation } = this;
    if (conversation === null || conversation.dropOldestTurns() === 0) return false;
    const { entries, ...rest } = conversation.getState();
    const [{ message }] = entries;
    if (message.role === "system") return true;
    // Without a system message the system prompt was part of the dropped turn.
    const [firstMessage] = this.renderer.firstMessages(this.systemPrompt, message.content as string);
    conversation.setState({ ...rest, entries: [{ message: firstMessage, sampled: null }, ...entries.slice(1)] });
    return true;
  }

  private overflowError(promptTokens: number | string, newTokens: number): LlamaGymError {
    const { maxContextLength, contextOverflow } = this.settings;
    const advice =
      contextOverflow === "error"
        ? 'Set contextOverflow to "drop-oldest", or historyTurns to a small number.'
        : "Even the last turn alone does not fit; shorten the system prompt or the observation.";
    return new LlamaGymError(
      "CONTEXT_OVERFLOW",
      `The prompt's ${promptTokens} tokens and ${newTokens} of the completion exceed the context of ${maxContextLength} tokens. ${advice}`,
    );
  }
}
