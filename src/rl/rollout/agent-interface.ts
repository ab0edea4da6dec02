import type { Info } from "../../envs/info.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import type { JsonSchema } from "../../generation/constraints/json-schema/keywords.js";
import type { Extraction } from "./extraction.js";

/** What an agent is told, shown and understood to answer. `Agent` is the class that users extend. */
export interface AgentInterface<Observation = unknown, Action = unknown> {
  /** The task, said once at the start of a conversation; undefined for none. */
  getSystemPrompt(): string | undefined;
  /** How an observation reads. */
  formatObservation(observation: Observation, info: Info): string;
  /** The action that a reply means, or how it was found; undefined when it means none. */
  extractAction(
    response: string,
    observation: Observation,
    info: Info,
  ): MaybePromise<Action | Extraction<Action> | undefined>;
  /** The whole prompt of a turn in one message, in place of system prompt, history and observation. */
  formatPrompt?(observation: Observation, info: Info): string;
  /** The replies that are possible, for an agent whose replies are held to them; undefined for a free reply. */
  getChoices?(observation: Observation, info: Info): readonly string[] | undefined;
  /** The regular expression that the whole reply matches, for an agent whose replies are held to one. */
  getPattern?(observation: Observation, info: Info): string | RegExp | undefined;
  /** The JSON schema that allows the whole reply, for an agent whose replies are held to one. */
  getSchema?(observation: Observation, info: Info): JsonSchema | undefined;
}
