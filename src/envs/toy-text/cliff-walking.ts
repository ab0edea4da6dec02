import type { RenderFrame, RenderMode } from "../env.js";
import { applyDefaults } from "../env-options.js";
import type { TextInterface } from "../text-interface.js";
import { CLIFF_COLUMNS, CLIFF_GOAL, CLIFF_ROWS, CLIFF_START, isCliff } from "./cliff-grid.js";
import { createCliffWalkingText } from "./cliff-walking-text.js";
import { drawCliffWalking } from "./drawings.js";
import { moveWithin, tabulate, type Move } from "./grid.js";
import { TabularEnv, type Transition, type TransitionTable } from "./tabular-env.js";
import type { Registration } from "../registry/env-registry.js";
import { createTabularExpert } from "../solvers/tabular-solver.js";

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
 * Walk from one end of a cliff to the other without falling (Sutton and Barto, example 6.6). Observation: the tile, row
 * by row. Actions: up, right, down, left. Equals Gymnasium's CliffWalking-v1.
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

  override render(mode: RenderMode): RenderFrame {
    if (this.state === undefined) throw this.notResetError();
    return drawCliffWalking(mode, this.state);
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
