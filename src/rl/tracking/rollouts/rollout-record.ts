/**
 * Recorded episodes: the contents of rollouts.jsonl (docs/rollouts.md). Numbers that are not finite
 * are null. Imports nothing: the dashboard's page uses these types.
 */

/** How a part of an episode ends; "partial" parts continue in the next update. */
export type RecordedEnd = "terminated" | "truncated" | "partial";

/** A recorded episode, or the part of one that an update trained. */
export interface EpisodeRow {
  /** "STEP.INDEX". */
  readonly id: string;
  /** The update that trained it. */
  readonly step: number;
  readonly envSlot: number | null;
  readonly group: number | null;
  /** Sum of the rewards of its turns. */
  readonly return: number | null;
  readonly turns: number;
  readonly tokens: number;
  readonly end: RecordedEnd;
  /** Whether it begins with the first turn of an episode. */
  readonly startsEpisode: boolean;
  /** Seed of the environment, where the episode was started with one. */
  readonly seed: number | null;
  /** Mean advantage; null where the algorithm gave none. */
  readonly advantage: number | null;
  /** Whether its group, or it alone, has advantages other than 0. */
  readonly hasSignal: boolean;
  /** In self-play, the seat whose turns these are. */
  readonly seat?: number;
  /**
   * In self-play, who moved for the other seats: "self", "past", "adapter", "random" or "minimax".
   */
  readonly opponent?: string;
}

/** An episode with its turns. The dashboard joins the parts that several updates trained. */
export interface EpisodeDetail {
  readonly row: EpisodeRow;
  readonly turns: readonly TurnDetail[];
  /** Texts of all token ids in `turns`. */
  readonly vocabulary: RecordedVocabulary;
  /** The state after the last turn. */
  readonly final: { readonly observation: string | null; readonly render: string | null };
}

/** Texts of token ids. */
export interface RecordedVocabulary {
  readonly texts: Readonly<Record<number, string>>;
  /** Ids of special tokens. */
  readonly special: readonly number[];
}

/**
 * A prompt and its completion. Arrays "per token" have one entry per token of `tokens`; null where
 * unknown.
 */
export interface TurnDetail {
  /** The update that trained it; 0 outside of training. */
  readonly step: number;
  readonly observation: string | null;
  /** The environment as text (its "ansi" rendering) before the turn. May contain terminal codes. */
  readonly render: string | null;
  readonly prompt: readonly number[];
  readonly tokens: readonly number[];
  readonly text: string;
  readonly finishReason: string;
  /** Whether an action was extracted, and how. */
  readonly isValid: boolean;
  readonly extraction: string | null;
  readonly action: string | null;
  readonly reward: number | null;
  /** Sum of the rewards from this turn on, undiscounted. */
  readonly returnToGo: number | null;
  /** Value of the state before the completion. */
  readonly value: number | null;
  /** Mean over the completion's trained tokens. */
  readonly advantage: number | null;
  /** Per token, in nats, under the distribution it was sampled from. */
  readonly logProbs: readonly (number | null)[];
  readonly refLogProbs: readonly (number | null)[] | null;
  /** Absent without a teacher. */
  readonly teacherLogProbs?: readonly (number | null)[] | null;
  readonly entropies: readonly (number | null)[] | null;
  readonly values: readonly (number | null)[] | null;
  readonly advantages: readonly (number | null)[] | null;
  /** Targets of the critic. */
  readonly returns: readonly (number | null)[] | null;
  /**
   * Per token: probability at the update's last pass over the turn divided by that when sampled.
   */
  readonly ratios: readonly (number | null)[] | null;
  /** Per token: 1 where the ratio was clipped. */
  readonly clipped: readonly (0 | 1)[] | null;
  /** Per token: "f" forced (the only token allowed), "t" trained, "m" masked (not trained). */
  readonly marks: string;
  /**
   * Per token: number of tokens allowed, 0 for an unconstrained token; null for an unconstrained
   * completion.
   */
  readonly allowedCounts: readonly number[] | null;
  /**
   * Per token: the most probable of the allowed tokens with their probabilities; an empty list
   * where unknown.
   */
  readonly alternatives: readonly (readonly RecordedAlternative[])[] | null;
  /** For an action sampled by its score: all candidates. */
  readonly candidates: readonly { readonly text: string; readonly probability: number | null }[] | null;
}

/**
 * A token that could have been sampled; without a probability where only the constraint is known.
 */
export interface RecordedAlternative {
  readonly token: number;
  readonly probability: number | null;
}
