import type { Env, EnvMetadata, RenderFrame, RenderMode, ResetOptions, ResetResult, StepResult } from "../env.js";
import type { JsonValue } from "../../core/json.js";
import { applyDefaults } from "../env-options.js";
import { Box } from "../spaces/box.js";
import { drawMountainCar } from "./drawings.js";
import { MAX_POSITION, MAX_SPEED, MIN_POSITION, type CarState, type MountainCarOptions } from "./mountain-car.js";
import { ClassicControlEnv, toFloat32Array, readResetBounds } from "./classic-control-env.js";
import { continuousMountainCarText } from "./text.js";
import { cos } from "./trigonometry.js";
import type { Registration } from "../registry/env-registry.js";
import type { Policy } from "../policy.js";
import { GridPolicy, listForces, makeSolverEnv } from "../solvers/grid-solver.js";

const GOAL_POSITION = 0.45;
const POWER = 0.0015;
const GRAVITY = 0.0025;
/** Bounds in float32, the precision of a step. */
const createConstants = (round: (value: number) => number) => ({
  round,
  speed: round(MAX_SPEED),
  left: round(MIN_POSITION),
  right: round(MAX_POSITION),
  goal: round(GOAL_POSITION),
});
const DOUBLE_CONSTANTS = createConstants((value) => value);
const FLOAT32_CONSTANTS = createConstants(Math.fround);

/**
 * MountainCar with a continuous force in [-1, 1] and a cost for force. Observation: position,
 * velocity. Equals Gymnasium's MountainCarContinuous-v0, whose state is double at reset and float32
 * after the first step.
 */
export class ContinuousMountainCarEnv extends ClassicControlEnv<CarState, Float32Array> {
  override readonly observationSpace = new Box([MIN_POSITION, -MAX_SPEED], [MAX_POSITION, MAX_SPEED]);
  override readonly actionSpace = new Box(-1, 1, { shape: [1] });
  override readonly metadata: EnvMetadata = { renderModes: ["ansi", "rgb_array"], renderFps: 30 };
  override readonly text = continuousMountainCarText;
  private readonly goalVelocity: number;
  private isFirstStep = true;

  constructor(options: MountainCarOptions = {}) {
    super();
    ({ goalVelocity: this.goalVelocity } = applyDefaults("MountainCarContinuous", options, { goalVelocity: 0 }));
  }

  /** Options `low` and `high` bound the initial position. Defaults: -0.6 and -0.4. */
  override reset({ seed, options }: ResetOptions = {}): ResetResult<Float32Array> {
    this.reseed(seed);
    const [low, high] = readResetBounds(options, -0.6, -0.4);
    this.state = [this.random.uniform(low, high), 0];
    this.isFirstStep = true;
    return { observation: toFloat32Array(this.state), info: {} };
  }

  /** A force beyond the bounds is clipped, but its cost is not. */
  override step(action: ArrayLike<number>): StepResult<Float32Array> {
    const force = this.checkForce(action);
    const [lastPosition, lastVelocity] = this.requireState();
    const { round, speed, left, right, goal } = this.isFirstStep ? DOUBLE_CONSTANTS : FLOAT32_CONSTANTS;
    this.isFirstStep = false;
    const acceleration = computeAcceleration(force, round(3 * lastPosition));
    let velocity = Math.min(Math.max(round(lastVelocity + round(acceleration)), -speed), speed);
    const position = Math.min(Math.max(round(lastPosition + velocity), left), right);
    if (position === left && velocity < 0) velocity = 0;
    const terminated = position >= goal && velocity >= round(this.goalVelocity);
    const reward = (terminated ? 100 : 0) - force * force * 0.1;
    const observation = toFloat32Array([position, velocity]);
    this.state = [observation[0], observation[1]];
    return { observation, reward, terminated, truncated: false, info: {} };
  }

  protected override draw(mode: RenderMode, [position]: CarState): RenderFrame {
    return drawMountainCar(mode, position, GOAL_POSITION);
  }

  protected override saveState(): JsonValue {
    return { state: super.saveState(), isFirstStep: this.isFirstStep };
  }

  protected override loadState(json: JsonValue): void {
    const { state, isFirstStep } = json as { state: JsonValue; isFirstStep: boolean };
    super.loadState(state);
    this.isFirstStep = isFirstStep;
  }
}

/**
 * In float32 while the force is in bounds; Gymnasium's bounds are doubles, and so is the state
 * after them.
 */
function computeAcceleration(force: number, angle: number): number {
  const weight = GRAVITY * cos(angle);
  if (Math.abs(force) > 1) return Math.sign(force) * POWER - weight;
  return Math.fround(Math.fround(force * Math.fround(POWER)) - Math.fround(weight));
}

function createContinuousMountainCarExpert(env: Env): Policy {
  const policy = new GridPolicy<Float32Array, Float32Array>({
    env: makeSolverEnv(env),
    axes: [
      { low: MIN_POSITION, high: MAX_POSITION, points: 121 },
      { low: -MAX_SPEED, high: MAX_SPEED, points: 101 },
    ],
    actions: listForces(1, 9),
    discount: 0.9999,
    sweeps: 400,
    stateAt: (position, velocity) => ({ state: [position, velocity], isFirstStep: false }),
    coordinates: ([position, velocity]) => [position, velocity],
  });
  return (observation) => policy.act(observation as Float32Array);
}

export const continuousMountainCarEnvs: readonly Registration[] = [
  {
    id: "MountainCarContinuous-v0",
    entryPoint: (options) => new ContinuousMountainCarEnv(options),
    maxEpisodeSteps: 999,
    rewardThreshold: 90,
    summary: "rock a car up a hill with a continuous force",
    knownReturns: { random: -32.9, best: 98.2, basis: "measured" },
    expert: createContinuousMountainCarExpert,
  },
];
