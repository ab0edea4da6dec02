import type { Env, EnvMetadata, RenderFrame, RenderMode, ResetOptions, ResetResult, StepResult } from "../env.js";
import { applyDefaults } from "../env-options.js";
import { Box, Discrete } from "../spaces/index.js";
import { drawMountainCar } from "./drawings.js";
import { ClassicControlEnv, toFloat32Array, readResetBounds } from "./classic-control-env.js";
import { mountainCarText } from "./text.js";
import { cos } from "./trigonometry.js";
import type { Registration } from "../registry/env-registry.js";
import type { Policy } from "../policy.js";
import { GridPolicy, makeSolverEnv } from "../solvers/grid-solver.js";

export const MIN_POSITION = -1.2;
export const MAX_POSITION = 0.6;
export const MAX_SPEED = 0.07;
const GOAL_POSITION = 0.5;
const FORCE = 0.001;
const GRAVITY = 0.0025;

export type CarState = readonly [position: number, velocity: number];

/** Options of `MountainCarEnv`. */
export interface MountainCarOptions {
  /** Minimum speed at the goal. */
  readonly goalVelocity?: number;
}

const clip = (value: number, low: number, high: number) => Math.min(Math.max(value, low), high);

/**
 * Drive an underpowered car out of a valley by swinging (Moore 1990). Observation: position,
 * velocity. Actions: push left, not at all, right. Equals Gymnasium's MountainCar-v0.
 */
export class MountainCarEnv extends ClassicControlEnv<CarState, number> {
  override readonly observationSpace = new Box([MIN_POSITION, -MAX_SPEED], [MAX_POSITION, MAX_SPEED]);
  override readonly actionSpace = new Discrete(3);
  override readonly metadata: EnvMetadata = { renderModes: ["ansi", "rgb_array"], renderFps: 30 };
  override readonly text = mountainCarText;
  private readonly goalVelocity: number;

  constructor(options: MountainCarOptions = {}) {
    super();
    ({ goalVelocity: this.goalVelocity } = applyDefaults("MountainCar", options, { goalVelocity: 0 }));
  }

  /** Options `low` and `high` bound the initial position. Defaults: -0.6 and -0.4. */
  override reset({ seed, options }: ResetOptions = {}): ResetResult<Float32Array> {
    this.reseed(seed);
    const [low, high] = readResetBounds(options, -0.6, -0.4);
    this.state = [this.random.uniform(low, high), 0];
    return { observation: toFloat32Array(this.state), info: {} };
  }

  override step(action: number): StepResult<Float32Array> {
    this.checkAction(action);
    const [lastPosition, lastSpeed] = this.requireState();
    const pull = (action - 1) * FORCE + cos(3 * lastPosition) * -GRAVITY;
    const speed = clip(lastSpeed + pull, -MAX_SPEED, MAX_SPEED);
    const position = clip(lastPosition + speed, MIN_POSITION, MAX_POSITION);
    const velocity = position === MIN_POSITION && speed < 0 ? 0 : speed;
    this.state = [position, velocity];
    const terminated = position >= GOAL_POSITION && velocity >= this.goalVelocity;
    return { observation: toFloat32Array(this.state), reward: -1, terminated, truncated: false, info: {} };
  }

  protected override draw(mode: RenderMode, [position]: CarState): RenderFrame {
    return drawMountainCar(mode, position, GOAL_POSITION);
  }
}

function createMountainCarExpert(env: Env): Policy {
  const policy = new GridPolicy<Float32Array, number>({
    env: makeSolverEnv(env),
    axes: [
      { low: MIN_POSITION, high: MAX_POSITION, points: 121 },
      { low: -MAX_SPEED, high: MAX_SPEED, points: 101 },
    ],
    actions: [0, 1, 2],
    discount: 0.9999,
    sweeps: 150,
    stateAt: (position, velocity) => [position, velocity],
    coordinates: ([position, velocity]) => [position, velocity],
  });
  return (observation) => policy.act(observation as Float32Array);
}

export const mountainCarEnvs: readonly Registration[] = [
  {
    id: "MountainCar-v0",
    entryPoint: (options) => new MountainCarEnv(options),
    maxEpisodeSteps: 200,
    rewardThreshold: -110,
    summary: "rock a car up a hill",
    knownReturns: { random: -200, best: -99.1, basis: "measured" },
    expert: createMountainCarExpert,
  },
];
