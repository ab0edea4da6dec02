/** Recorded and played episodes, as JSON between the dashboard's server and page. */

import type { EpisodeDetail, EpisodeRow, TurnDetail, RecordedVocabulary } from "../../rl/tracking/index.js";

export type {
  EpisodeDetail,
  EpisodeRow,
  RecordedAlternative,
  RecordedEnd,
  TurnDetail,
  RecordedVocabulary,
} from "../../rl/tracking/index.js";

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
  readonly vocabulary: RecordedVocabulary;
  readonly return: number;
  readonly isDone: boolean;
}

/**
 * `POST /api/play/:session/step`: with a completion it is taken as written; without one the model
 * samples it.
 */
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
export interface PlayChatRequest {
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
  /**
   * Index of the first turn whose completions differ, and of the first differing token; null if
   * none does.
   */
  readonly partsAt: { readonly turn: number; readonly token: number } | null;
}
