import type { Info } from "../../envs/index.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import type { JsonSchema } from "../../generation/index.js";
import type { Extraction } from "./extraction.js";

/**
 * The methods that connect an environment to a language model. Users implement them by extending
 * `Agent`.
 */
export interface AgentInterface<Observation = unknown, Action = unknown> {
  /**
   * Returns the description of the task, which starts each conversation, in a game that of the
   * seat; undefined for none.
   */
  getSystemPrompt(seat?: number): string | undefined;
  /** Formats an observation as text. */
  formatObservation(observation: Observation, info: Info): string;
  /** Extracts the action from a completion; undefined if it contains none. */
  extractAction(
    response: string,
    observation: Observation,
    info: Info,
  ): MaybePromise<Action | Extraction<Action> | undefined>;
  /**
   * Formats the whole prompt of a turn as one message, in place of system prompt, history and
   * observation.
   */
  formatPrompt?(observation: Observation, info: Info): string;
  /** Returns the choices that a completion is constrained to; undefined for none. */
  getChoices?(observation: Observation, info: Info): readonly string[] | undefined;
  /** Returns the regular expression that a completion is constrained to; undefined for none. */
  getPattern?(observation: Observation, info: Info): string | RegExp | undefined;
  /** Returns the JSON schema that a completion is constrained to; undefined for none. */
  getSchema?(observation: Observation, info: Info): JsonSchema | undefined;
  /** Returns what only a teacher's prompt has in this turn; undefined for nothing. */
  getTeacherHint?(observation: Observation, info: Info): string | undefined;
}
