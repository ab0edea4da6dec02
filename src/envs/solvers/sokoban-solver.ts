import { applyMove, countBoxesOnTarget, levelKey, type SokobanLevel } from "../tasks/sokoban-level.js";

/** Number of a level's moves: up, down, left, right. */
const MOVES = 4;

/** A level that was reached by a move from an earlier one. */
interface Reached {
  readonly level: SokobanLevel;
  readonly move?: number;
  readonly previous?: Reached;
}

/**
 * Finds the fewest moves that put all boxes on targets, by breadth-first search; undefined if the
 * level cannot be solved.
 */
export function solveSokoban(start: SokobanLevel): readonly number[] | undefined {
  const seen = new Set([levelKey(start)]);
  const queue: Reached[] = [{ level: start }];
  for (const reached of queue) {
    if (countBoxesOnTarget(reached.level) === start.boxes.length) return listMoves(reached);
    for (let move = 0; move < MOVES; move++) {
      const level = applyMove(reached.level, move);
      const key = levelKey(level);
      if (seen.has(key)) continue;
      seen.add(key);
      queue.push({ level, move, previous: reached });
    }
  }
  return undefined;
}

function listMoves(last: Reached): readonly number[] {
  const moves: number[] = [];
  for (let reached = last; reached.previous !== undefined; reached = reached.previous) moves.push(reached.move!);
  return moves.reverse();
}
