import type { TextInterface } from "../text-interface.js";
import { createChoiceText } from "../text-parsing.js";
import { CLIFF_COLUMNS, CLIFF_GOAL, CLIFF_ROWS, isCliff, CLIFF_START } from "./grids.js";
import type { RenderFrame, RenderMode } from "../env.js";
import { applyDefaults } from "../env-options.js";
import { drawCliffWalking } from "./drawings.js";
import { moveWithin, tabulate, type Move, TabularEnv, type Transition, type TransitionTable } from "./tabular-env.js";
import type { Registration } from "../registry/env-registry.js";
import { createTabularExpert } from "../solvers/tabular-solver.js";

const CHOICES = ["up", "right", "down", "left"];
const NEIGHBORS = [
  ["Up", -1, 0],
  ["right", 0, 1],
  ["down", 1, 0],
  ["left", 0, -1],
] as const;

function describeTile(row: number, column: number): string {
  if (row < 0 || row >= CLIFF_ROWS || column < 0 || column >= CLIFF_COLUMNS) return "edge";
  const state = row * CLIFF_COLUMNS + column;
  if (isCliff(state)) return "cliff";
  return state === CLIFF_GOAL ? "goal" : "ground";
}

/** Describes the position and the adjacent tiles; rows and columns count from 0. */
function createCliffWalkingText(isSlippery: boolean): TextInterface<number, number> {
  const slipperyNote = isSlippery ? " The ground is slippery: a move may go to either side instead." : "";
  return createChoiceText({
    systemPrompt: `Walk to the goal at row ${CLIFF_ROWS - 1}, column ${CLIFF_COLUMNS - 1} in few steps. Stepping into the cliff costs 100 and sends you back to the start.${slipperyNote} Answer up, right, down or left.`,
    formatObservation: (state: number) => {
      const [row, column] = [Math.floor(state / CLIFF_COLUMNS), state % CLIFF_COLUMNS];
      const neighbors = NEIGHBORS.map(([name, down, right]) => `${name} ${describeTile(row + down, column + right)}`);
      return `You are at row ${row}, column ${column}. ${neighbors.join(", ")}.`;
    },
    names: CHOICES,
  });
}

const NUM_STATES = CLIFF_ROWS * CLIFF_COLUMNS;
/** Up, right, down, left: the actions in their order. */
const MOVES: readonly Move[] = [
  [-1, 0],
  [0, 1],
  [1, 0],
  [0, -1],
];

/** Options of `CliffWalkingEnv`. */
export interface CliffWalkingOptions {
  /** Whether a move may slip to either side, each with the same probability as the move. */
  readonly isSlippery?: boolean;
}

/**
 * Walk from one end of a cliff to the other without falling (Sutton and Barto, example 6.6).
 * Observation: the tile, row by row. Actions: up, right, down, left. Equals Gymnasium's
 * CliffWalking-v1.
 */
export class CliffWalkingEnv extends TabularEnv {
  override readonly text: TextInterface<number, number>;

  constructor(options: CliffWalkingOptions = {}) {
    const { isSlippery } = applyDefaults("CliffWalking", options, { isSlippery: false });
    super(
      buildTransitions(isSlippery),
      tabulate(NUM_STATES, (state) => (state === CLIFF_START ? 1 : 0)),
    );
    this.text = createCliffWalkingText(isSlippery);
  }

  protected override draw(mode: RenderMode, state: number): RenderFrame {
    return drawCliffWalking(mode, state);
  }
}

function buildTransitions(isSlippery: boolean): TransitionTable {
  const createOutcome = (state: number, action: number, probability: number): Transition => {
    const [row, column] = moveWithin(
      Math.floor(state / CLIFF_COLUMNS),
      state % CLIFF_COLUMNS,
      MOVES[action],
      CLIFF_ROWS,
      CLIFF_COLUMNS,
    );
    const next = row * CLIFF_COLUMNS + column;
    if (isCliff(next)) return { probability, state: CLIFF_START, reward: -100, terminated: false };
    return { probability, state: next, reward: -1, terminated: next === CLIFF_GOAL };
  };
  return tabulate(NUM_STATES, (state) =>
    tabulate(MOVES.length, (action) => {
      if (!isSlippery) return [createOutcome(state, action, 1)];
      return [(action + 3) % 4, action, (action + 1) % 4].map((takenAction) =>
        createOutcome(state, takenAction, 1 / 3),
      );
    }),
  );
}

const createCliffWalking = (options: object) => new CliffWalkingEnv(options);

export const cliffWalkingEnvs: readonly Registration[] = [
  {
    id: "CliffWalking-v1",
    entryPoint: createCliffWalking,
    summary: "walk along a cliff",
    knownReturns: { random: -65375.13, best: -13, basis: "exact" },
    expert: createTabularExpert,
  },
  {
    id: "CliffWalkingSlippery-v1",
    entryPoint: createCliffWalking,
    options: { isSlippery: true },
    summary: "walk along a slippery cliff",
    knownReturns: { random: -65375.13, best: -64.71, basis: "exact" },
    expert: createTabularExpert,
  },
];
