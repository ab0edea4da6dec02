import type { RenderFrame, RenderMode } from "../env.js";
import { withDefaults } from "../options.js";
import type { TextForm } from "../text-form.js";
import { CLIFF_COLUMNS, CLIFF_GOAL, CLIFF_ROWS, CLIFF_START, isCliff } from "./cliff-grid.js";
import { cliffWalkingText } from "./cliff-walking-text.js";
import { drawCliffWalking } from "./drawings.js";
import { moveWithin, tabulate, type Move } from "./grid.js";
import { TabularEnv, type Transition, type TransitionTable } from "./tabular-env.js";

const STATES = CLIFF_ROWS * CLIFF_COLUMNS;
/** Up, right, down, left: the actions in their order. */
const MOVES: readonly Move[] = [
  [-1, 0],
  [0, 1],
  [1, 0],
  [0, -1],
];

export interface CliffWalkingOptions {
  /** Whether a move may slip to one of its two sides, each as likely as the move itself. */
  readonly isSlippery?: boolean;
}

/**
 * Walk from one end of a cliff to the other without falling (Sutton and Barto, example 6.6). Observation: the tile, row
 * by row. Actions: up, right, down, left. Equals Gymnasium's CliffWalking-v1.
 */
export class CliffWalkingEnv extends TabularEnv {
  override readonly text: TextForm<number, number>;

  constructor(options: CliffWalkingOptions = {}) {
    const { isSlippery } = withDefaults("CliffWalking", options, { isSlippery: false });
    super(
      cliffTransitions(isSlippery),
      tabulate(STATES, (state) => (state === CLIFF_START ? 1 : 0)),
    );
    this.text = cliffWalkingText(isSlippery);
  }

  override render(mode: RenderMode): RenderFrame {
    if (this.state === undefined) throw this.notReset();
    return drawCliffWalking(mode, this.state);
  }
}

function cliffTransitions(isSlippery: boolean): TransitionTable {
  const outcome = (state: number, action: number, probability: number): Transition => {
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
  return tabulate(STATES, (state) =>
    tabulate(MOVES.length, (action) => {
      if (!isSlippery) return [outcome(state, action, 1)];
      return [(action + 3) % 4, action, (action + 1) % 4].map((taken) => outcome(state, taken, 1 / 3));
    }),
  );
}
