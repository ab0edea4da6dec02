import { invalidArgument } from "../../core/errors.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import { createSeededStream } from "../seeded-stream.js";
import { formatValue } from "../spaces/space.js";

/** Maps by name: S start, F frozen, H hole, G goal. */
export const FROZEN_LAKE_MAPS: Readonly<Record<string, readonly string[]>> = {
  "4x4": ["SFFF", "FHFH", "FFFH", "HFFG"],
  "8x8": ["SFFFFFFF", "FFFFFFFF", "FFFHFFFF", "FFFFFHFF", "FFFHFFFF", "FHHFFFHF", "FHFFHFHF", "FFFHFFFG"],
};

/** Maximum number of tiles to draw, some seconds of work. */
const MAX_TILES = 30_000_000;

const DIRECTIONS = [
  [1, 0],
  [0, 1],
  [-1, 0],
  [0, -1],
];

/**
 * @throws INVALID_ARGUMENT when a map is not a rectangle of S, F, H and G with a start and a goal.
 */
export function checkMap(map: unknown): asserts map is readonly string[] {
  const rejectMap = (problem: string) => {
    throw invalidArgument(
      `FrozenLake: ${problem} A map is a list of equally long rows such as "SFFG", got ${formatValue(map)}.`,
    );
  };
  if (!Array.isArray(map) || map.length === 0 || map.some((row) => typeof row !== "string"))
    return rejectMap("desc must be a list of strings.");
  const rows = map as readonly string[];
  if (rows.some((row) => row.length === 0 || row.length !== rows[0].length))
    rejectMap("the rows of desc differ in length or are empty.");
  const unknown = rows.join("").match(/[^SFHG]/);
  if (unknown !== null)
    rejectMap(`desc has the unknown letter "${unknown[0]}"; use S (start), F (frozen), H (hole) and G (goal).`);
  for (const [letter, name] of [
    ["S", "start"],
    ["G", "goal"],
  ]) {
    if (!rows.some((row) => row.includes(letter))) rejectMap(`desc has no ${name} (${letter}).`);
  }
}

/** Returns whether a path without holes leads from the first corner to the goal. */
function hasPath(board: readonly (readonly string[])[]): boolean {
  const size = board.length;
  const frontier = [[0, 0]];
  const discovered = new Set<number>();
  for (let position = frontier.pop(); position !== undefined; position = frontier.pop()) {
    const [row, column] = position;
    if (discovered.has(row * size + column)) continue;
    discovered.add(row * size + column);
    for (const [down, right] of DIRECTIONS) {
      const letter = board[row + down]?.[column + right];
      if (letter === "G") return true;
      if (letter !== undefined && letter !== "H") frontier.push([row + down, column + right]);
    }
  }
  return false;
}

/**
 * Generates a random square map with a reachable goal, equal to Gymnasium's `generate_random_map`.
 * @param frozenProbability probability that a tile is frozen
 * @throws INVALID_ARGUMENT when such a map is too improbable
 */
export function generateRandomMap(size = 8, frozenProbability = 0.8, seed?: number | bigint): string[] {
  if (!(Number.isInteger(size) && size >= 2 && size <= 256))
    throw invalidArgument(`generateRandomMap: size must be an integer from 2 to 256, got ${size}.`);
  if (!(frozenProbability > 0))
    throw invalidArgument(`generateRandomMap: the probability must be above 0, got ${frozenProbability}.`);
  const { stream } = createSeededStream(seed);
  const frozen = Math.min(1, frozenProbability);
  const attempts = Math.ceil(MAX_TILES / size ** 2);
  for (let attempt = 0; attempt < attempts; attempt++) {
    const board = drawBoard(stream, size, frozen / (frozen + (1 - frozen)));
    if (hasPath(board)) return board.map((row) => row.join(""));
  }
  throw invalidArgument(
    `generateRandomMap: none of ${attempts} maps of size ${size} with probability ${frozenProbability} had a path; raise the probability.`,
  );
}

function drawBoard(stream: RandomStream, size: number, frozenProbability: number): string[][] {
  const drawTile = (): string => (stream.random() < frozenProbability ? "F" : "H");
  const board = Array.from({ length: size }, () => Array.from({ length: size }, drawTile));
  board[0][0] = "S";
  board[size - 1][size - 1] = "G";
  return board;
}
