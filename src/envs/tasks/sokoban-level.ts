import type { RandomStream } from "../../core/random/random-stream.js";

/** Ground of a cell. */
export type Ground = "wall" | "floor" | "target";

/** A level: its ground in row-major order, the cells of the boxes and of the player. */
export type SokobanLevel = {
  readonly size: number;
  readonly ground: readonly Ground[];
  readonly boxes: readonly number[];
  readonly player: number;
};

const WALL_PROBABILITY = 0.2;
/** Maximum number of states explored backwards from the solved level. */
const MAX_STATES = 10_000;
/** Minimum distance of a level from solved, as a fraction of the largest found. */
const MIN_DEPTH_FRACTION = 0.6;
/** Maximum number of rooms drawn. */
const MAX_ATTEMPTS = 500;

/** Returns the cell offsets of each direction: up, down, left, right. */
function getMoveOffsets(size: number): readonly number[] {
  return [-size, size, -1, 1];
}

/**
 * Generates a solvable level: boxes start on their targets and are pulled away, the inverse of
 * pushing. No box starts on a target. Returns undefined when the boxes do not fit.
 */
export function generateLevel(size: number, boxes: number, random: RandomStream): SokobanLevel | undefined {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const room = generateRoom(size, random);
    if (room.length < 2 * boxes + 2) continue;
    const cells = random.sampleIndices(room.length, boxes + 1).map((index) => room[index]);
    const targets = cells.slice(1);
    const ground = Array.from({ length: size * size }, (_, cell): Ground => {
      if (!room.includes(cell)) return "wall";
      return targets.includes(cell) ? "target" : "floor";
    });
    const level = pullBoxes({ size, ground, boxes: targets, player: cells[0] }, random);
    if (level !== undefined) return level;
  }
  return undefined;
}

/** Generates the floor cells of a connected room, surrounded by walls. */
function generateRoom(size: number, random: RandomStream): number[] {
  const isFloor = Array.from({ length: size * size }, (_, cell) => {
    const [row, column] = [Math.floor(cell / size), cell % size];
    const isBorder = row === 0 || column === 0 || row === size - 1 || column === size - 1;
    return !isBorder && random.random() >= WALL_PROBABILITY;
  });
  let largest: number[] = [];
  const seen = new Set<number>();
  for (const start of isFloor.keys()) {
    if (!isFloor[start] || seen.has(start)) continue;
    const area = [start];
    seen.add(start);
    for (const cell of area) {
      for (const offset of getMoveOffsets(size)) {
        const next = cell + offset;
        if (!isFloor[next] || seen.has(next)) continue;
        seen.add(next);
        area.push(next);
      }
    }
    if (area.length > largest.length) largest = area;
  }
  return largest;
}

/**
 * Finds a state among those farthest from solved, by breadth-first search over all moves and
 * pulls from the solved states. No box is on a target in it.
 */
function pullBoxes({ size, ground, boxes: targets }: SokobanLevel, random: RandomStream): SokobanLevel | undefined {
  const isFree = (cell: number, boxes: readonly number[]) => ground[cell] !== "wall" && !boxes.includes(cell);
  const states: { boxes: readonly number[]; player: number; depth: number }[] = [];
  const seen = new Set<string>();
  const add = (boxes: readonly number[], player: number, depth: number) => {
    const key = levelKey({ player, boxes });
    if (seen.has(key) || states.length >= MAX_STATES) return;
    seen.add(key);
    states.push({ boxes, player, depth });
  };
  for (const cell of ground.keys()) if (isFree(cell, targets)) add(targets, cell, 0);
  for (const { boxes, player, depth } of states) {
    for (const offset of getMoveOffsets(size)) {
      if (!isFree(player + offset, boxes)) continue;
      add(boxes, player + offset, depth + 1);
      const pulled = boxes.indexOf(player - offset);
      if (pulled >= 0) add(boxes.with(pulled, player), player + offset, depth + 1);
    }
  }
  const offTargetStates = states.filter(({ boxes }) => boxes.every((box) => ground[box] !== "target"));
  const maxDepth = Math.max(...offTargetStates.map(({ depth }) => depth));
  const candidates = offTargetStates.filter(({ depth }) => depth >= MIN_DEPTH_FRACTION * maxDepth);
  if (candidates.length === 0) return undefined;
  const { boxes, player } = random.choice(candidates);
  return { size, ground, boxes, player };
}

/** Returns a string that is equal for equal states of a level: boxes are interchangeable. */
export function levelKey({ player, boxes }: Pick<SokobanLevel, "player" | "boxes">): string {
  return `${player}:${[...boxes].sort((a, b) => a - b).join()}`;
}

/** Returns the level after a move, or the same one when the move is blocked. */
export function applyMove(level: SokobanLevel, action: number): SokobanLevel {
  const { size, ground, boxes, player } = level;
  const offset = getMoveOffsets(size)[action];
  const next = player + offset;
  const box = boxes.indexOf(next);
  const isBlocked = (cell: number) => ground[cell] === "wall" || boxes.includes(cell);
  if (ground[next] === "wall" || (box >= 0 && isBlocked(next + offset))) return level;
  return { ...level, player: next, boxes: box >= 0 ? boxes.with(box, next + offset) : boxes };
}

/** Returns the number of boxes on targets. */
export function countBoxesOnTarget({ ground, boxes }: SokobanLevel): number {
  return boxes.filter((box) => ground[box] === "target").length;
}
