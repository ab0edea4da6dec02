import type { RandomStream } from "../../core/random/random-stream.js";

export const DIRECTIONS = ["north", "south", "east", "west"] as const;
export type Direction = (typeof DIRECTIONS)[number];

export const OPPOSITE: Readonly<Record<Direction, Direction>> = {
  north: "south",
  south: "north",
  east: "west",
  west: "east",
};
const OFFSETS: Readonly<Record<Direction, readonly [x: number, y: number]>> = {
  north: [0, -1],
  south: [0, 1],
  east: [1, 0],
  west: [-1, 0],
};
/** Probability of connecting two adjacent rooms that need no connection. */
const EXTRA_CONNECTION_PROBABILITY = 0.2;

/**
 * A connection between two rooms. Only bridges, without which some rooms are unreachable, get
 * doors.
 */
export interface Connection {
  readonly from: number;
  readonly to: number;
  readonly direction: Direction;
  readonly isBridge: boolean;
}

/** Connected rooms 0 to rooms - 1 on a grid; each connection is listed once. */
export function generateMap(rooms: number, random: RandomStream): Connection[] {
  const cells = new Map<string, number>([["0,0", 0]]);
  const positions: (readonly [number, number])[] = [[0, 0]];
  const getNeighbor = ([x, y]: readonly [number, number], direction: Direction): readonly [number, number] => {
    const [dx, dy] = OFFSETS[direction];
    return [x + dx, y + dy];
  };
  const connections: { from: number; to: number; direction: Direction }[] = [];
  while (positions.length < rooms) {
    const from = random.integers(positions.length);
    const direction = random.choice(DIRECTIONS);
    const position = getNeighbor(positions[from], direction);
    if (cells.has(position.join())) continue;
    cells.set(position.join(), positions.length);
    connections.push({ from, to: positions.length, direction });
    positions.push(position);
  }
  for (const [from, position] of positions.entries()) {
    for (const direction of ["south", "east"] as const) {
      const to = cells.get(getNeighbor(position, direction).join());
      if (to === undefined || connections.some((connection) => connects(connection, from, to))) continue;
      if (random.random() < EXTRA_CONNECTION_PROBABILITY) connections.push({ from, to, direction });
    }
  }
  return connections.map((connection) => ({ ...connection, isBridge: isBridge(connection, connections, rooms) }));
}

/** An exit of a room. */
interface MapExit {
  readonly direction: Direction;
  readonly to: number;
  readonly connection: Connection;
}

export function listExits(room: number, connections: readonly Connection[]): MapExit[] {
  return connections.flatMap((connection) => {
    const { from, to, direction } = connection;
    if (from === room) return [{ direction, to, connection }];
    return to === room ? [{ direction: OPPOSITE[direction], to: from, connection }] : [];
  });
}

type Ends = Pick<Connection, "from" | "to">;

/** Returns the distance to each room; Infinity for unreachable ones. */
export function computeDistances(room: number, connections: readonly Ends[], rooms: number): number[] {
  const distances = Array.from({ length: rooms }, () => Infinity);
  distances[room] = 0;
  const queue = [room];
  for (const here of queue) {
    for (const { from, to } of connections) {
      const next = from === here ? to : to === here ? from : here;
      if (distances[next] !== Infinity) continue;
      distances[next] = distances[here] + 1;
      queue.push(next);
    }
  }
  return distances;
}

function connects({ from, to }: Ends, a: number, b: number): boolean {
  return (from === a && to === b) || (from === b && to === a);
}

function isBridge(connection: Ends, connections: readonly Ends[], rooms: number): boolean {
  const others = connections.filter((other) => other !== connection);
  return computeDistances(connection.from, others, rooms)[connection.to] === Infinity;
}
