export const CLIFF_ROWS = 4;
export const CLIFF_COLUMNS = 12;
/** The lower left corner; the goal is the lower right one. */
export const CLIFF_START = (CLIFF_ROWS - 1) * CLIFF_COLUMNS;
export const CLIFF_GOAL = CLIFF_ROWS * CLIFF_COLUMNS - 1;
/** Returns whether a state is in the cliff, between start and goal. */
export const isCliff = (state) => state > CLIFF_START && state < CLIFF_GOAL;
