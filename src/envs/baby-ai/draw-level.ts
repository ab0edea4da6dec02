import { LlamaGymError } from "../../core/errors.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import { LevelBuilder, LevelRejected, type Layout } from "./level-builder.js";
import { LEVELS, type Level } from "./levels.js";
import { buildMixed, isMixedValid, MIXED_KINDS, type MixedKind } from "./mixed-levels.js";
import { countNavigations, formatMission, isPutValid, startGoal, type Goal, type Mission } from "./mission.js";
import type { World } from "./world.js";

/** Names of the levels: minigrid's, and GLAM's two mixed ones. */
export const LEVEL_NAMES: readonly string[] = [...Object.keys(LEVELS), "MixedTrainLocal", "MixedTestLocal"];
const MAX_REJECTIONS = 1000;

/** The start of an episode. */
export type LevelStart = {
  readonly world: World;
  readonly goal: Goal;
  /** The mission's sentence. */
  readonly mission: string;
  readonly maxSteps: number;
};

/**
 * Draws a level by its name; `kind` is the task of a mixed level, drawn if it is not given.
 * @throws ENV_FAILED when too many draws in a row are not valid
 */
export function drawLevel(name: string, random: RandomStream, kind?: MixedKind): LevelStart {
  const attempt = Object.hasOwn(LEVELS, name)
    ? () => buildLevel(LEVELS[name], random)
    : () => drawMixed(random, kind ?? random.choice(MIXED_KINDS), name === "MixedTestLocal");
  return untilValid(name, () => {
    const { level, mission, maxSteps } = attempt();
    const { world, layout } = level;
    if (!isPutValid(world, layout, mission)) throw new LevelRejected();
    return {
      world,
      goal: startGoal(world, layout, mission),
      mission: formatMission(world, layout, mission),
      maxSteps: maxSteps ?? countSteps(layout, mission),
    };
  });
}

interface BuiltLevel {
  readonly level: LevelBuilder;
  readonly mission: Mission;
  readonly maxSteps?: number;
}

function buildLevel({ layout, build, maxSteps }: Level, random: RandomStream): BuiltLevel {
  const level = new LevelBuilder(random, layout);
  return { level, mission: build(level), maxSteps };
}

/**
 * Draws a mixed level until its sentence fits. GLAM lays the rooms once more before the first draw.
 */
function drawMixed(random: RandomStream, kind: MixedKind, isTest: boolean): BuiltLevel {
  const layout = { size: 8, columns: kind === "open" ? 2 : 1, rows: 1 };
  void new LevelBuilder(random, layout);
  for (let i = 0; i < MAX_REJECTIONS; i++) {
    const level = new LevelBuilder(random, layout);
    const mission = buildMixed(level, kind, isTest);
    if (isMixedValid(level, mission, isTest)) return { level, mission };
  }
  throw new LevelRejected();
}

function untilValid<T>(name: string, attempt: () => T): T {
  for (let i = 0; i < MAX_REJECTIONS; i++) {
    try {
      return attempt();
    } catch (error) {
      if (!(error instanceof LevelRejected)) throw error;
    }
  }
  throw new LlamaGymError("ENV_FAILED", `BabyAI rejected ${MAX_REJECTIONS} draws of level ${name} in a row.`);
}

function countSteps({ size, columns, rows }: Layout, mission: Mission): number {
  return size ** 2 * columns * rows * countNavigations(mission);
}
