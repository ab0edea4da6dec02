import type { Goal, SingleGoal } from "./mission.js";
import {
  areAdjacent,
  DROP,
  EMPTY,
  FORWARD,
  getCellAhead,
  getOffset,
  isPassable,
  LEFT,
  NO_OBJECT,
  PICK_UP,
  RIGHT,
  TOGGLE,
  WALL,
  type GridAgent,
  type World,
} from "./world.js";

type CellTest = (cell: number) => boolean;

/** An action to take as soon as the cell ahead is a certain one. */
interface Plan {
  readonly isTarget: CellTest;
  readonly action: number;
}

/** What is left to do. */
interface Task {
  /** Cells of which the agent must be able to be next to one, for each part that is left. */
  readonly needs: readonly CellTest[];
  /** The next part; undefined when the hands must be empty for it. */
  readonly plan: Plan | undefined;
}

/**
 * Returns the next action towards a goal. Ways are shortest; things are moved only where nothing
 * leads around them.
 */
export function chooseExpertAction(world: World, goal: Goal): number {
  const single = goal.type !== "sequence" ? goal : goal.isFirstReached ? goal.second : goal.first;
  const { needs, plan } = planTask(world, single);
  const blocked = needs.find((need) => !isReachable(world, need));
  if (blocked === undefined && plan !== undefined) return follow(world, plan) ?? LEFT;
  return (blocked && clearTheWay(world, blocked)) ?? putDown(world, single);
}

function planTask(world: World, goal: SingleGoal): Task {
  const { carrying, cells } = world;
  const isTarget: CellTest = (cell) => goal.target.things.includes(cells[cell]);
  const fetch = (cell: CellTest): Plan | undefined =>
    carrying === NO_OBJECT ? { isTarget: cell, action: PICK_UP } : undefined;
  switch (goal.type) {
    case "go to": {
      // Any action succeeds ahead of the place, and a cell that is not empty makes this one
      // harmless.
      const isPlace: CellTest = (cell) => goal.target.places.includes(cell);
      return { needs: [isPlace], plan: { isTarget: isPlace, action: DROP } };
    }
    case "pick up":
      return { needs: [isTarget], plan: fetch(isTarget) };
    case "put": {
      const isFreePlace: CellTest = (cell) =>
        cells[cell] === EMPTY && goal.nextTo!.places.some((place) => areAdjacent(world, cell, place));
      if (goal.target.things.includes(carrying))
        return { needs: [isFreePlace], plan: { isTarget: isFreePlace, action: DROP } };
      return { needs: [isTarget, isFreePlace], plan: fetch(isTarget) };
    }
    case "open":
      return planOpen(world, goal, isTarget, fetch);
  }
}

/** Opens a door with what the agent carries, or fetches the key, or takes it out of its box. */
function planOpen(
  world: World,
  { target }: SingleGoal,
  isTarget: CellTest,
  fetch: (cell: CellTest) => Plan | undefined,
): Task {
  const { cells, things } = world;
  const isKey = (number: number) =>
    things[number]?.kind === "key" && target.things.some((door) => things[door].color === things[number].color);
  const opensNow: CellTest = (cell) => isTarget(cell) && canOpen(world, cells[cell]);
  if (cells.some((_, cell) => opensNow(cell)))
    return { needs: [opensNow], plan: { isTarget: opensNow, action: TOGGLE } };
  const isKeyCell: CellTest = (cell) => isKey(cells[cell]);
  if (cells.some((number) => isKey(number))) return { needs: [isTarget, isKeyCell], plan: fetch(isKeyCell) };
  const isBox: CellTest = (cell) => isKey(things[cells[cell]]?.contents ?? -1);
  return { needs: [isTarget, isBox], plan: { isTarget: isBox, action: TOGGLE } };
}

/** Whether the agent can open a door with what it carries. */
function canOpen({ things, carrying }: World, door: number): boolean {
  const { state, color } = things[door];
  const key = carrying === NO_OBJECT ? undefined : things[carrying];
  return state !== "locked" || (key?.kind === "key" && key.color === color);
}

/**
 * Returns the first action of a shortest way to a target cell ahead; undefined when something is in
 * the way.
 */
function follow(world: World, { isTarget, action }: Plan): number | undefined {
  const way = search(world, isTarget);
  return way?.obstacles === 0 ? (way.firstAction ?? action) : undefined;
}

/** Whether the agent can be next to a cell without moving anything. */
const isReachable = (world: World, isTarget: CellTest) => search(world, isTarget)?.obstacles === 0;

/** Drops what the agent carries where it blocks nothing, or else where it blocks least. */
function putDown(world: World, goal: SingleGoal): number {
  const { cells, carrying } = world;
  const counts = new Map<number, number>();
  const countObstacles = (cell: number): number => {
    const after = { ...world, carrying: NO_OBJECT, cells: cells.with(cell, carrying) };
    const ways = planTask(after, goal).needs.map((need) => search(after, need)?.obstacles ?? Infinity);
    return ways.reduce((sum, obstacles) => sum + obstacles, 0);
  };
  const getCount = (cell: number): number => {
    if (cells[cell] !== EMPTY) return Infinity;
    const count = counts.get(cell) ?? countObstacles(cell);
    counts.set(cell, count);
    return count;
  };
  const dropAt = (isTarget: CellTest) => follow(world, { isTarget, action: DROP });
  const isClear = dropAt((cell) => getCount(cell) === 0);
  if (isClear !== undefined) return isClear;
  // The search above has visited every cell that the agent can drop at.
  const least = Math.min(...counts.values());
  return dropAt((cell) => cells[cell] === EMPTY && counts.get(cell) === least) ?? LEFT;
}

/**
 * Opens or picks up the first obstacle on a way to a cell; undefined when the hands are full or
 * there is no way.
 */
function clearTheWay(world: World, isTarget: CellTest): number | undefined {
  const { cells, things, carrying } = world;
  const obstacle = search(world, isTarget)?.firstObstacle;
  if (obstacle === undefined) return undefined;
  const isDoor = things[cells[obstacle]].kind === "door";
  if (!isDoor && carrying !== NO_OBJECT) return undefined;
  return follow(world, { isTarget: (cell) => cell === obstacle, action: isDoor ? TOGGLE : PICK_UP });
}

/** A way to a cell ahead. */
interface Way {
  /** Undefined where the cell is ahead already. */
  readonly firstAction: number | undefined;
  readonly firstObstacle: number | undefined;
  /** Number of closed doors and things on it. */
  readonly obstacles: number;
}

/**
 * Finds a way with the fewest obstacles to a target cell ahead, breadth-first over positions and
 * directions.
 */
function search(world: World, isTarget: CellTest): Way | undefined {
  const { width, cells, things } = world;
  const getKey = ({ x, y, direction }: GridAgent) => (y * width + x) * 4 + direction;
  const seen = new Set<number>();
  let layer: { agent: GridAgent; way: Way }[] = [
    { agent: world.agent, way: { firstAction: undefined, firstObstacle: undefined, obstacles: 0 } },
  ];
  while (layer.length > 0) {
    // Ways with one obstacle more.
    const nextLayer: typeof layer = [];
    for (const { agent, way } of layer) {
      if (seen.has(getKey(agent))) continue;
      seen.add(getKey(agent));
      const ahead = getCellAhead(world, agent);
      if (isTarget(ahead)) return way;
      const turn = (action: number, direction: number) =>
        layer.push({ agent: { ...agent, direction }, way: { ...way, firstAction: way.firstAction ?? action } });
      const [dx, dy] = getOffset(agent.direction);
      const moved = { ...agent, x: agent.x + dx, y: agent.y + dy };
      const firstAction = way.firstAction ?? FORWARD;
      if (isPassable(world, ahead)) layer.push({ agent: moved, way: { ...way, firstAction } });
      else if (cells[ahead] !== WALL && things[cells[ahead]].state !== "locked") {
        const firstObstacle = way.firstObstacle ?? ahead;
        nextLayer.push({ agent: moved, way: { firstAction, firstObstacle, obstacles: way.obstacles + 1 } });
      }
      turn(LEFT, (agent.direction + 3) % 4);
      turn(RIGHT, (agent.direction + 1) % 4);
    }
    layer = nextLayer;
  }
  return undefined;
}
