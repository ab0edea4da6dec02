import { invalidArgument } from "../../core/errors.js";
import type { RenderFrame, RenderMode, Env } from "../env.js";
import { applyDefaults } from "../env-options.js";
import type { Info } from "../info.js";
import type { Policy } from "../policy.js";
import type { Registration } from "../registry/env-registry.js";
import { Box, Dict, Discrete, Text } from "../spaces/index.js";
import { TaskEnv, type TaskStep } from "../tasks/task-env.js";
import type { TextInterface } from "../text-interface.js";
import { drawLevel, LEVEL_NAMES, type LevelStart } from "./draw-level.js";
import { drawBabyAi } from "./drawing.js";
import { chooseExpertAction } from "./expert.js";
import { KNOWN_RETURNS } from "./known-returns.js";
import { MIXED_KINDS, type MixedKind } from "./mixed-levels.js";
import { verifyGoal } from "./mission.js";
import { createBabyAiText, formatScene, type PastTurn } from "./text.js";
import { observe, VIEW_SIZE, type BabyAiObservation } from "./view.js";
import { ACTIONS, applyAction } from "./world.js";

/** Options of `BabyAiEnv`. */
export interface BabyAiOptions {
  /** Name of a level, such as "GoToLocal" or "PutNextS5N2". */
  readonly level?: string;
  /** Task of a mixed level; null draws one for each episode. */
  readonly kind?: MixedKind | null;
  /**
   * Number of observations in the text, 1 to 3: the present one and those before it with their
   * actions.
   */
  readonly observations?: number;
}

type BabyAiState = LevelStart & { readonly steps: number; readonly history: readonly PastTurn[] };

const MAX_OBSERVATIONS = 3;
/** Longer than the longest sentence of a mission. */
const MISSION_LENGTH = 100;

/**
 * Follow an instruction in a grid of rooms: go to, pick up, open or put things. Levels, draws and
 * rewards equal minigrid's BabyAI and GLAM's mixed levels. Observation: the 7x7 view, the direction
 * and the mission. Actions: left, right, forward, pick up, drop, toggle. Reward: 1 - 0.9 steps /
 * limit at success, else 0.
 */
export class BabyAiEnv extends TaskEnv<BabyAiObservation, number, BabyAiState> {
  override readonly metadata = { renderModes: ["ansi", "rgb_array"] as const, renderFps: 10 };
  override readonly observationSpace = new Dict<BabyAiObservation>({
    image: new Box(0, 255, { shape: [VIEW_SIZE, VIEW_SIZE, 3], dtype: "uint8" }),
    direction: new Discrete(4),
    mission: new Text(MISSION_LENGTH, { charset: "abcdefghijklmnopqrstuvwxyz, " }),
  });
  override readonly actionSpace = new Discrete(ACTIONS.length);
  override readonly text: TextInterface<BabyAiObservation, number> = createBabyAiText();
  private readonly level: string;
  private readonly kind: MixedKind | undefined;
  private readonly observations: number;

  constructor({ kind = null, ...options }: BabyAiOptions = {}) {
    super();
    const defaults = { level: "GoToLocal", observations: 1 };
    const { level, observations } = applyDefaults("BabyAI", options, defaults, ["kind"]);
    if (!LEVEL_NAMES.includes(level))
      throw invalidArgument(`BabyAI has no level "${level}". Its levels: ${LEVEL_NAMES.join(", ")}.`);
    if (!(Number.isInteger(observations) && observations >= 1 && observations <= MAX_OBSERVATIONS))
      throw invalidArgument(`BabyAI: option observations must be 1, 2 or ${MAX_OBSERVATIONS}, got ${observations}.`);
    if (kind !== null && !MIXED_KINDS.includes(kind))
      throw invalidArgument(
        `BabyAI: option kind must be one of ${MIXED_KINDS.join(", ")} or null, got ${JSON.stringify(kind)}.`,
      );
    if (kind !== null && !level.startsWith("Mixed"))
      throw invalidArgument(`BabyAI: option kind is for mixed levels; ${level} has one kind of task.`);
    this.level = level;
    this.kind = kind ?? undefined;
    this.observations = observations;
  }

  /**
   * Returns the expert's action in the present state: a shortest way to the goal, except around
   * obstacles.
   */
  chooseExpertAction(): number {
    const { world, goal } = this.currentState;
    return chooseExpertAction(world, goal);
  }

  protected override start(): BabyAiState {
    return { ...drawLevel(this.level, this.random, this.kind), steps: 0, history: [] };
  }

  protected override observe({ world, mission }: BabyAiState): BabyAiObservation {
    return { image: observe(world), direction: world.agent.direction, mission };
  }

  protected override describe({ history }: BabyAiState): Info {
    return this.observations > 1 ? { history } : {};
  }

  protected override advance(state: BabyAiState, action: number): TaskStep<BabyAiState> {
    const world = applyAction(state.world, action);
    const { goal, isReached } = verifyGoal(state.goal, world, action);
    const steps = state.steps + 1;
    const past = this.observations > 1 ? { scene: formatScene(observe(state.world)), action } : undefined;
    const history = past === undefined ? [] : [...state.history, past].slice(1 - this.observations);
    return {
      state: { ...state, world, goal, steps, history },
      reward: isReached ? 1 - 0.9 * (steps / state.maxSteps) : 0,
      terminated: isReached,
      truncated: steps >= state.maxSteps,
      isSuccess: isReached,
    };
  }

  override render(mode: RenderMode): RenderFrame {
    const { world, mission } = this.currentState;
    return drawBabyAi(mode, world, mission);
  }
}

const createExpert = (env: Env): Policy => {
  const babyAi = env.unwrapped as BabyAiEnv;
  return () => babyAi.chooseExpertAction();
};

/** The levels that are registered; other sizes are options. */
export const babyAiEnvs: readonly Registration[] = Object.entries(KNOWN_RETURNS).map(([level, { random, best }]) => ({
  id: `BabyAI-${level}-v0`,
  entryPoint: (options) => new BabyAiEnv(options),
  options: { level },
  summary: "follow instructions in a grid of rooms",
  knownReturns: { random, best, basis: "measured" },
  expert: createExpert,
}));
