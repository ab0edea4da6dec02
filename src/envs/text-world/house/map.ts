import type { RandomStream } from "../../../tensor/random.js";

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
/** How often two rooms that happen to lie side by side are joined too. */
const EXTRA_JOINT = 0.2;

/** An opening between two rooms. Without a bridge some rooms could not be reached: only bridges get doors. */
export interface Joint {
  readonly from: number;
  readonly to: number;
  readonly direction: Direction;
  readonly isBridge: boolean;
}

/** Rooms 0 ... rooms - 1 on a grid, all joined; each joint stands here once. */
export function drawMap(rooms: number, random: RandomStream): Joint[] {
  const cells = new Map<string, number>([["0,0", 0]]);
  const places: (readonly [number, number])[] = [[0, 0]];
  const neighbour = ([x, y]: readonly [number, number], direction: Direction): readonly [number, number] => {
    const [dx, dy] = OFFSETS[direction];
    return [x + dx, y + dy];
  };
  const joints: { from: number; to: number; direction: Direction }[] = [];
  while (places.length < rooms) {
    const from = random.integers(places.length);
    const direction = random.choice(DIRECTIONS);
    const place = neighbour(places[from], direction);
    if (cells.has(place.join())) continue;
    cells.set(place.join(), places.length);
    joints.push({ from, to: places.length, direction });
    places.push(place);
  }
  for (const [from, place] of places.entries()) {
    for (const direction of ["south", "east"] as const) {
      const to = cells.get(neighbour(place, direction).join());
      if (to === undefined || joints.some((joint) => joins(joint, from, to))) continue;
      if (random.random() < EXTRA_JOINT) joints.push({ from, to, direction });
    }
  }
  return joints.map((joint) => ({ ...joint, isBridge: isBridge(joint, joints, rooms) }));
}

/** The rooms next to one, with the direction to go and the joint passed. */
export function exitsOf(room: number, joints: readonly Joint[]): { direction: Direction; to: number; joint: Joint }[] {
  return joints.flatMap((joint) => {
    if (joint.from === room) return [{ direction: joint.direction, to: joint.to, joint }];
    if (joint.to === room) return [{ direction: OPPOSITE[joint.direction], to: joint.from, joint }];
    return [];
  });
}

/** How many rooms away each room is; Infinity where there is no way. */
export function distancesFrom(room: number, joints: readonly Pick<Joint, "from" | "to">[], rooms: number): number[] {
  const distances = Array.from({ length: rooms }, () => Infinity);
  distances[room] = 0;
  const queue = [room];
  for (const here of queue) {
    for (const { from, to } of joints) {
      const next = from === here ? to : to === here ? from : here;
      if (distances[next] !== Infinity) continue;
      distances[next] = distances[here] + 1;
      queue.push(next);
    }
  }
  return distances;
}

function joins(joint: { from: number; to: number }, a: number, b: number): boolean {
  return (joint.from === a && joint.to === b) || (joint.from === b && joint.to === a);
}

function isBridge(joint: { from: number; to: number }, joints: readonly { from: number; to: number }[], rooms: number) {
  const others = joints.filter((other) => other !== joint);
  return distancesFrom(joint.from, others, rooms)[joint.to] === Infinity;
}
