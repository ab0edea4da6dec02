import { LlamaGymError, invalidArgument } from "../../core/errors.js";
import type { Info } from "../info.js";
import { readCounts } from "../env-options.js";
import { Box, Discrete } from "../spaces/index.js";
import type { TextInterface } from "../text-interface.js";
import { createChoiceText } from "../text-parsing.js";
import { TaskEnv, type TaskStep } from "./task-env.js";
import type { Registration } from "../registry/env-registry.js";
import type { Policy } from "../policy.js";
import { solveSokoban } from "../solvers/sokoban-solver.js";
import { applyMove, countBoxesOnTarget, generateLevel, type Ground, type SokobanLevel } from "./sokoban-level.js";

const MOVES = ["up", "down", "left", "right"];
/** Conventional characters of wall, floor, target, box, box on target, player, player on target. */
const CELL_SYMBOLS = ["#", "-", ".", "$", "*", "@", "+"];
/** Schrader's gym-sokoban. */
const REWARDS = { step: -0.1, boxOn: 1, boxOff: -1, solved: 10 };

/** Options of `SokobanEnv`. */
export interface SokobanOptions {
  /** Number of rows and columns including the walls, 5 to 16. */
  readonly size?: number;
  readonly boxes?: number;
}

/**
 * Push boxes onto their targets in random solvable levels. Observation: 0 wall, 1 floor, 2 target,
 * 3 box, 4 box on target, 5 player, 6 player on target. Actions: up, down, left, right, which also
 * push. Reward: -0.1 per step, 1 for a box pushed onto a target, -1 for one pushed off, 10 for the
 * last.
 */
export class SokobanEnv extends TaskEnv<Uint8Array, number, SokobanLevel> {
  override readonly observationSpace: Box<"uint8">;
  override readonly actionSpace = new Discrete(MOVES.length);
  override readonly text: TextInterface<Uint8Array, number>;
  private readonly size: number;
  private readonly boxes: number;

  constructor(options: SokobanOptions = {}) {
    super();
    const { size, boxes } = readCounts("Sokoban", options, { size: [6, 5, 16], boxes: [1, 1, 39] });
    if (boxes > (size - 2) ** 2 / 5)
      throw invalidArgument(`Sokoban takes at most one box for five inner cells; got size ${size}, boxes ${boxes}.`);
    this.size = size;
    this.boxes = boxes;
    this.observationSpace = new Box(0, CELL_SYMBOLS.length - 1, { shape: [size, size], dtype: "uint8" });
    this.text = createSokobanText(size);
  }

  protected override start(): SokobanLevel {
    const level = generateLevel(this.size, this.boxes, this.random);
    if (level !== undefined) return level;
    throw new LlamaGymError("ENV_FAILED", `Sokoban could not place ${this.boxes} boxes. Increase the size.`);
  }

  protected override observe({ ground, boxes, player }: SokobanLevel): Uint8Array {
    return Uint8Array.from(ground, (kind, cell) => {
      if (kind === "wall") return 0;
      const onTarget = kind === "target" ? 1 : 0;
      if (boxes.includes(cell)) return 3 + onTarget;
      return (cell === player ? 5 : 1) + onTarget;
    });
  }

  protected override describe(level: SokobanLevel): Info {
    return { boxesOnTarget: countBoxesOnTarget(level) };
  }

  protected override advance(level: SokobanLevel, action: number): TaskStep<SokobanLevel> {
    const state = applyMove(level, action);
    const boxesGained = countBoxesOnTarget(state) - countBoxesOnTarget(level);
    const isSolved = countBoxesOnTarget(state) === state.boxes.length;
    const boxReward = boxesGained > 0 ? REWARDS.boxOn : boxesGained < 0 ? REWARDS.boxOff : 0;
    const reward = REWARDS.step + boxReward + (isSolved ? REWARDS.solved : 0);
    return { state, reward, terminated: isSolved, isSuccess: isSolved };
  }
}

function createSokobanText(size: number): TextInterface<Uint8Array, number> {
  return createChoiceText({
    systemPrompt:
      "Push every box ($) onto a target (.). # is a wall, - is floor, @ is you, * is a box on a target, + is you on a target. You can push one box at a time and never pull. Answer up, down, left or right.",
    formatObservation: (cells: Uint8Array) =>
      Array.from({ length: size }, (_, row) =>
        Array.from(cells.subarray(row * size, (row + 1) * size), (cell) => CELL_SYMBOLS[cell]).join(""),
      ).join("\n"),
    names: MOVES,
  });
}

/** Returns the level that an observation shows. */
function readLevel(cells: Uint8Array): SokobanLevel {
  const indices = [...cells.keys()];
  return {
    size: Math.sqrt(cells.length),
    ground: Array.from(cells, (cell): Ground => (cell === 0 ? "wall" : cell % 2 === 0 ? "target" : "floor")),
    boxes: indices.filter((i) => cells[i] === 3 || cells[i] === 4),
    player: indices.find((i) => cells[i] >= 5)!,
  };
}

/** Plays a shortest solution; up, where there is none. */
const createSokobanExpert = (): Policy => (observation) => solveSokoban(readLevel(observation as Uint8Array))?.[0] ?? 0;

export const sokobanEnvs: readonly Registration[] = [
  {
    id: "Sokoban-v0",
    entryPoint: (options) => new SokobanEnv(options),
    maxEpisodeSteps: 100,
    summary: "push boxes onto targets",
    knownReturns: { random: -6.1, best: 10.2, basis: "measured" },
    expert: createSokobanExpert,
  },
];
