import type { TextInterface } from "../text-interface.js";
import { createChoiceText } from "../text-parsing.js";
import { invalidArgument } from "../../core/errors.js";
import type { RenderFrame, RenderMode } from "../env.js";
import { checkProbability, applyDefaults } from "../env-options.js";
import { formatValue } from "../spaces/space.js";
import { drawFrozenLake } from "./drawings.js";
import { checkMap, FROZEN_LAKE_MAPS, generateRandomMap } from "./frozen-lake-map.js";
import { moveWithin, tabulate, type Move, TabularEnv, type Transition, type TransitionTable } from "./tabular-env.js";
import type { Registration } from "../registry/env-registry.js";
import { createTabularExpert } from "../solvers/tabular-solver.js";

const CHOICES = ["left", "down", "right", "up"];
const NEIGHBORS = [
  ["Left", 0, -1],
  ["down", 1, 0],
  ["right", 0, 1],
  ["up", -1, 0],
] as const;
const TILE_NAMES: Readonly<Record<string, string>> = { S: "ice", F: "ice", H: "hole", G: "goal" };

/** Describes the position and the adjacent tiles; rows and columns count from 0. */
export function createFrozenLakeText(desc: readonly string[], isSlippery: boolean): TextInterface<number, number> {
  const columns = desc[0].length;
  const slipperyNote = isSlippery ? " The ice is slippery: a move may go to either side instead." : "";
  return createChoiceText({
    systemPrompt: `Cross the frozen lake to the goal and avoid the holes.${slipperyNote} Answer left, down, right or up.`,
    formatObservation: (state: number) => {
      const [row, column] = [Math.floor(state / columns), state % columns];
      const neighbors = NEIGHBORS.map(([name, down, right]) => {
        return `${name} ${TILE_NAMES[desc[row + down]?.[column + right]] ?? "edge"}`;
      });
      return `You are at row ${row}, column ${column}. ${neighbors.join(", ")}.`;
    },
    names: CHOICES,
  });
}

/** Left, down, right, up: the actions in their order. */
const MOVES: readonly Move[] = [
  [0, -1],
  [1, 0],
  [0, 1],
  [-1, 0],
];

/** Options of `FrozenLakeEnv`. */
export interface FrozenLakeOptions {
  /** Custom map; overrides `mapName`. */
  readonly desc?: readonly string[] | null;
  /** "4x4", "8x8", or null for a random 8x8 map. */
  readonly mapName?: string | null;
  /** Whether a move may slip to either side. */
  readonly isSlippery?: boolean;
  /** Probability that a slippery move goes in its own direction. */
  readonly successRate?: number;
  /** Rewards of the goal, a hole, and other tiles. */
  readonly rewardSchedule?: readonly [goal: number, hole: number, other: number];
}

/**
 * Cross a frozen lake from start to goal without falling into a hole. Observation: the tile, row by
 * row. Actions: left, down, right, up. Equals Gymnasium's FrozenLake-v1.
 */
export class FrozenLakeEnv extends TabularEnv {
  /** The map's rows. */
  readonly desc: readonly string[];
  override readonly text: TextInterface<number, number>;

  constructor(options: FrozenLakeOptions = {}) {
    const { desc: customMap = null, mapName = "4x4", rewardSchedule = [1, 0, 0], ...others } = options;
    const otherNames = ["desc", "mapName", "rewardSchedule"];
    const rules = applyDefaults("FrozenLake", others, { isSlippery: true, successRate: 1 / 3 }, otherNames);
    checkProbability("FrozenLake", "successRate", rules.successRate);
    const isSchedule =
      Array.isArray(rewardSchedule) && rewardSchedule.length === 3 && rewardSchedule.every(Number.isFinite);
    if (!isSchedule)
      throw invalidArgument(
        `FrozenLake: rewardSchedule must be three numbers (goal, hole, other), got ${formatValue(rewardSchedule)}.`,
      );
    const desc = customMap ?? getNamedMap(mapName);
    checkMap(desc);
    const starts = Array.from(desc.join(""), (letter) => (letter === "S" ? 1 : 0));
    const count = starts.filter((start) => start === 1).length;
    super(
      buildTransitions(desc, rules.isSlippery ? rules.successRate : undefined, rewardSchedule),
      starts.map((start) => start / count),
    );
    this.desc = desc;
    this.text = createFrozenLakeText(desc, rules.isSlippery);
  }

  protected override draw(mode: RenderMode, state: number): RenderFrame {
    return drawFrozenLake(mode, this.desc, state);
  }
}

function getNamedMap(mapName: string | null): readonly string[] {
  if (mapName === null) return generateRandomMap();
  const map = FROZEN_LAKE_MAPS[mapName];
  if (map !== undefined) return map;
  throw invalidArgument(
    `FrozenLake has no map "${mapName}". Its maps: ${Object.keys(FROZEN_LAKE_MAPS).join(", ")}; give another as desc.`,
  );
}

/** `successRate` undefined means that moves never slip. */
function buildTransitions(
  desc: readonly string[],
  successRate: number | undefined,
  [goal, hole, other]: readonly [number, number, number],
): TransitionTable {
  const [rows, columns] = [desc.length, desc[0].length];
  const createOutcome = (row: number, column: number, action: number, probability: number): Transition => {
    const [newRow, newColumn] = moveWithin(row, column, MOVES[action], rows, columns);
    const letter = desc[newRow][newColumn];
    const reward = letter === "G" ? goal : letter === "H" ? hole : other;
    return { probability, state: newRow * columns + newColumn, reward, terminated: letter === "G" || letter === "H" };
  };
  return tabulate(rows * columns, (state) => {
    const [row, column] = [Math.floor(state / columns), state % columns];
    return tabulate(MOVES.length, (action) => {
      if ("GH".includes(desc[row][column])) return [{ probability: 1, state, reward: 0, terminated: true }];
      if (successRate === undefined) return [createOutcome(row, column, action, 1)];
      const sideProbability = (1 - successRate) / 2;
      return [
        createOutcome(row, column, (action + 3) % 4, sideProbability),
        createOutcome(row, column, action, successRate),
        createOutcome(row, column, (action + 1) % 4, sideProbability),
      ];
    });
  });
}

const createFrozenLake = (options: object) => new FrozenLakeEnv(options);

export const frozenLakeEnvs: readonly Registration[] = [
  {
    id: "FrozenLake-v1",
    entryPoint: createFrozenLake,
    options: { mapName: "4x4" },
    maxEpisodeSteps: 100,
    rewardThreshold: 0.7,
    summary: "cross slippery ice to the goal",
    knownReturns: { random: 0.0139, best: 0.7442, basis: "exact" },
    expert: createTabularExpert,
  },
  {
    id: "FrozenLake8x8-v1",
    entryPoint: createFrozenLake,
    options: { mapName: "8x8" },
    maxEpisodeSteps: 200,
    rewardThreshold: 0.85,
    summary: "cross a larger lake",
    knownReturns: { random: 0.0019, best: 0.9132, basis: "exact" },
    expert: createTabularExpert,
  },
];
