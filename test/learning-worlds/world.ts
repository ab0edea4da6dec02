import type { JsonValue } from "../../src/core/json.js";
import type { RandomStream } from "../../src/core/random/random-stream.js";

/** What an action may lead to. */
export interface Outcome {
  readonly probability: number;
  readonly state: JsonValue;
  readonly reward: number;
  /** Whether the task ends. */
  readonly isEnd: boolean;
}

/** A small task with listed states, so that its best return is computed instead of measured. */
export interface World {
  readonly id: string;
  /** What makes the task hard, for tables. */
  readonly tests: string;
  readonly systemPrompt: string;
  /** Step at which an episode is truncated. */
  readonly maxEpisodeSteps: number;
  /** Number of earlier turns that the best action depends on. */
  readonly historyTurns?: number;
  readonly start: readonly { readonly probability: number; readonly state: JsonValue }[];
  /**
   * Returns the observation; `random` may only choose among wordings that the best action does not
   * depend on.
   */
  describe(state: JsonValue, random: RandomStream): string;
  /** Returns the texts of the actions. */
  actions(state: JsonValue): readonly string[];
  step(state: JsonValue, action: string): readonly Outcome[];
  /**
   * How completions name actions: as one of the listed choices (default), as free text, or as JSON.
   */
  readonly format?: "choices" | "text" | { readonly jsonSchema: Readonly<Record<string, unknown>> };
}

/** Fields of a world whose states have a known type. */
export interface WorldOf<State extends JsonValue> extends Omit<World, "start" | "describe" | "actions" | "step"> {
  readonly start: readonly { readonly probability: number; readonly state: State }[];
  readonly describe: (state: State, random: RandomStream) => string;
  readonly actions: (state: State) => readonly string[];
  readonly step: (state: State, action: string) => readonly (Outcome & { readonly state: State })[];
}

/** Checks the type of the states of a world. */
export const defineWorld = <State extends JsonValue>(world: WorldOf<State>): World => world;

/** Returns the integers from `start` up to `stop`, without it. */
export const range = (start: number, stop: number): number[] =>
  Array.from({ length: stop - start }, (_, i) => start + i);

/** Returns states that are equally likely. */
export const uniform = <State extends JsonValue>(states: readonly State[]) =>
  states.map((state) => ({ probability: 1 / states.length, state }));

/** Returns an outcome that ends the task. */
export const end = <State extends JsonValue>(state: State, reward: number) => [
  { probability: 1, state, reward, isEnd: true },
];

/** Returns an outcome after which the task continues. */
export const go = <State extends JsonValue>(state: State, reward = 0, probability = 1) => ({
  probability,
  state,
  reward,
  isEnd: false,
});
