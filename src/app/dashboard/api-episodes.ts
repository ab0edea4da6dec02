/** Recorded and played episodes, as JSON between the dashboard's server and page. */

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
}

/** `GET /api/runs/:run/episodes?before=ID&after=ID&limit=100&step=`: newest first. */
export interface EpisodeList {
  readonly episodes: readonly EpisodeRow[];
  readonly total: number;
  /** Steps (updates) with recorded episodes, ascending. */
  readonly steps: readonly number[];
  /** What is unreadable in the recording; null if nothing is. */
  readonly problem: string | null;
}

/** `GET /api/runs/:run/groups?step=`: the groups of one update (the newest by default). */
export interface GroupList {
  readonly step: number;
  readonly steps: readonly number[];
  readonly groups: readonly Group[];
}

/** Episodes that started alike and are compared with each other. */
export interface Group {
  readonly group: number;
  readonly hasSignal: boolean;
  readonly members: readonly EpisodeDetail[];
}

/** `GET /api/runs/:run/episodes/:id`: an episode with its turns; parts of other updates are joined. */
export interface EpisodeDetail {
  readonly row: EpisodeRow;
  readonly turns: readonly TurnDetail[];
  /** Texts of all token ids in `turns`. */
  readonly vocabulary: Vocabulary;
  /** The state after the last turn. */
  readonly final: { readonly observation: string | null; readonly render: string | null };
}

/** Texts of token ids. */
export interface Vocabulary {
  readonly texts: Readonly<Record<number, string>>;
  /** Ids of special tokens. */
  readonly special: readonly number[];
}

/** A prompt and its completion. Arrays "per token" have one entry per token of `tokens`; null where unknown. */
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
  readonly entropies: readonly (number | null)[] | null;
  readonly values: readonly (number | null)[] | null;
  readonly advantages: readonly (number | null)[] | null;
  /** Targets of the critic. */
  readonly returns: readonly (number | null)[] | null;
  /** Per token: probability at the update's last pass over the turn divided by that when sampled. */
  readonly ratios: readonly (number | null)[] | null;
  /** Per token: 1 where the ratio was clipped. */
  readonly clipped: readonly (0 | 1)[] | null;
  /** Per token: "f" forced (the only token allowed), "t" trained, "m" masked (not trained). */
  readonly marks: string;
  /** Per token: number of tokens allowed; null for an unconstrained completion. */
  readonly allowedCounts: readonly number[] | null;
  /** Per token: the most probable of the allowed tokens with their probabilities; an empty list where unknown. */
  readonly alternatives: readonly (readonly Alternative[])[] | null;
  /** For an action sampled by its score: all candidates. */
  readonly candidates: readonly { readonly text: string; readonly probability: number | null }[] | null;
}

/** A token that could have been sampled; without a probability where only the constraint is known. */
export interface Alternative {
  readonly token: number;
  readonly probability: number | null;
}

/** Which model plays: a checkpoint of a run. */
export interface PlayModel {
  readonly run: string;
  /** Name of a `Checkpoint`. Default "latest". */
  readonly checkpoint?: string;
}

/** `POST /api/play` */
export interface PlayRequest extends PlayModel {
  readonly seed?: number;
}

/** State of an episode played by hand; every route below `/api/play` answers with it. */
export interface PlayState {
  readonly session: string;
  readonly env: string;
  readonly model: string;
  readonly seed: number;
  readonly observation: string;
  readonly render: string | null;
  readonly prompt: readonly number[];
  /** The environment's choices with the model's probabilities; null where it does not list them. */
  readonly actions: readonly { readonly text: string; readonly probability: number | null }[] | null;
  readonly turns: readonly TurnDetail[];
  readonly vocabulary: Vocabulary;
  readonly return: number;
  readonly isDone: boolean;
}

/** `POST /api/play/:session/step`: with a completion it is taken as written; without one the model samples it. */
export interface PlayStepRequest {
  readonly completion?: string;
  /** Replaces the observation's text before the model reads it. */
  readonly observation?: string;
  /** 0 is greedy. Default as in training. */
  readonly temperature?: number;
}

/** `POST /api/play/:session/reset` */
export interface PlayResetRequest {
  readonly seed?: number;
}

/** `POST /api/play/:session/chat`: answered as a text stream of the reply. */
export interface ChatRequest {
  readonly messages: readonly { readonly role: "system" | "user" | "assistant"; readonly content: string }[];
  readonly temperature?: number;
  readonly maxNewTokens?: number;
}

/** `POST /api/compare`: the same start played by two models. */
export interface CompareRequest {
  readonly a: PlayModel;
  readonly b: PlayModel;
  readonly seed: number;
  /** 0 is greedy. Default 0. */
  readonly temperature?: number;
  readonly maxTurns?: number;
}

export interface CompareResponse {
  readonly a: EpisodeDetail;
  readonly b: EpisodeDetail;
  /** Index of the first turn whose completions differ, and of the first differing token; null if none does. */
  readonly partsAt: { readonly turn: number; readonly token: number } | null;
}
