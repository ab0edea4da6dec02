import { invalidArgument } from "../../core/errors.js";
import {
  Env,
  type EnvMetadata,
  type RenderFrame,
  type RenderMode,
  type ResetOptions,
  type ResetResult,
  type StepResult,
} from "../env.js";
import type { Info } from "../info.js";
import type { JsonValue } from "../../core/json.js";
import { Discrete } from "../spaces/discrete.js";

/** A move on a grid, rows counted downwards. */
export type Move = readonly [down: number, right: number];

/** Returns the position after a move, clipped to the grid. */
export function moveWithin(
  row: number,
  column: number,
  [down, right]: Move,
  rows: number,
  columns: number,
): [row: number, column: number] {
  return [Math.min(Math.max(row + down, 0), rows - 1), Math.min(Math.max(column + right, 0), columns - 1)];
}

/** Creates `count` values from their index. */
export function tabulate<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

/** One outcome of an action. */
export interface Transition {
  readonly probability: number;
  readonly state: number;
  readonly reward: number;
  readonly terminated: boolean;
}

/** The outcomes of every action in every state: table[state][action]. */
export type TransitionTable = readonly (readonly (readonly Transition[])[])[];

/** A Markov decision process given as a table; states and actions are numbered from 0. */
export abstract class TabularEnv extends Env<number, number> {
  override readonly observationSpace: Discrete;
  override readonly actionSpace: Discrete;
  override readonly metadata: EnvMetadata = { renderModes: ["ansi", "rgb_array"], renderFps: 4 };
  /** The outcomes of every action in every state. */
  readonly transitions: TransitionTable;
  /** Probability that an episode starts in each state. */
  readonly initialDistribution: readonly number[];
  protected state: number | undefined;
  protected lastAction: number | undefined;
  private readonly initialSums: readonly number[];

  constructor(transitions: TransitionTable, initialDistribution: readonly number[]) {
    super();
    this.transitions = transitions;
    this.initialDistribution = initialDistribution;
    this.observationSpace = new Discrete(transitions.length);
    this.actionSpace = new Discrete(transitions[0].length);
    let sum = 0;
    this.initialSums = initialDistribution.map((probability) => (sum += probability));
  }

  override reset({ seed }: ResetOptions = {}): ResetResult<number> {
    this.reseed(seed);
    const draw = this.random.random();
    const state = Math.max(
      0,
      this.initialSums.findIndex((sum) => sum > draw),
    );
    this.state = state;
    this.lastAction = undefined;
    return { observation: state, info: this.info(1, state) };
  }

  override step(action: number): StepResult<number> {
    this.checkAction(action);
    if (this.state === undefined) throw this.notResetError();
    const outcome = this.drawOutcome(this.transitions[this.state][action]);
    const state = this.nextState(this.state, outcome.state);
    this.state = state;
    this.lastAction = action;
    const { reward, terminated } = outcome;
    return { observation: state, reward, terminated, truncated: false, info: this.info(outcome.probability, state) };
  }

  /** Draws a state; subclasses that render override it. */
  protected draw(mode: RenderMode, _state: number): RenderFrame {
    throw invalidArgument(`${this.constructor.name} cannot render "${mode}": it has no draw().`);
  }

  override render(mode: RenderMode): RenderFrame {
    if (this.state === undefined) throw this.notResetError();
    return this.draw(mode, this.state);
  }

  /** Adjusts the new state beyond the table. */
  protected nextState(_from: number, to: number): number {
    return to;
  }

  protected info(probability: number, _state: number): Info {
    return { prob: probability };
  }

  /**
   * Returns the first outcome whose cumulative probability exceeds a draw; the first one when
   * rounding leaves none.
   */
  private drawOutcome(outcomes: readonly Transition[]): Transition {
    const draw = this.random.random();
    let sum = 0;
    for (const outcome of outcomes) {
      sum += outcome.probability;
      if (sum > draw) return outcome;
    }
    return outcomes[0];
  }

  protected override saveState(): JsonValue {
    return { state: this.state ?? null, lastAction: this.lastAction ?? null };
  }

  protected override loadState(json: JsonValue): void {
    const { state, lastAction } = json as { state: number | null; lastAction: number | null };
    this.state = state ?? undefined;
    this.lastAction = lastAction ?? undefined;
  }
}
