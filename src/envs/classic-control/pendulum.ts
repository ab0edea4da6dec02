import type { Env, EnvMetadata, RenderFrame, RenderMode, ResetOptions, ResetResult, StepResult } from "../env.js";
import type { JsonValue } from "../../core/json.js";
import { applyDefaults } from "../env-options.js";
import { Box } from "../spaces/box.js";
import { drawPendulum } from "./drawings.js";
import { ClassicControlEnv, toFloat32Array, readNumberOption } from "./classic-control-env.js";
import { pendulumText } from "./text.js";
import { cos, sin } from "./trigonometry.js";
import type { Registration } from "../registry/env-registry.js";
import type { Policy } from "../policy.js";
import { GridPolicy, listForces, makeSolverEnv } from "../solvers/grid-solver.js";

const MAX_SPEED = 8;
const MAX_TORQUE = 2;
const TIME_STEP = 0.05;

type PendulumState = readonly [angle: number, velocity: number];

/** Options of `PendulumEnv`. */
export interface PendulumOptions {
  /** Gravitational acceleration in m/s^2. */
  readonly g?: number;
}

/** Wraps an angle to [-pi, pi), 0 being upright. */
function normalizeAngle(angle: number): number {
  const fullTurn = 2 * Math.PI;
  const rest = (angle + Math.PI) % fullTurn;
  return (rest < 0 ? rest + fullTurn : rest) - Math.PI;
}

/**
 * Swing a pendulum up and hold it, with a motor too weak to lift it at once. Observation: cosine
 * and sine of the angle (0 is upright), angular velocity. Action: a torque. Equals Gymnasium's
 * Pendulum-v1.
 */
export class PendulumEnv extends ClassicControlEnv<PendulumState, Float32Array> {
  override readonly observationSpace = new Box([-1, -1, -MAX_SPEED], [1, 1, MAX_SPEED]);
  override readonly actionSpace = new Box(-MAX_TORQUE, MAX_TORQUE, { shape: [1] });
  override readonly metadata: EnvMetadata = { renderModes: ["ansi", "rgb_array"], renderFps: 30 };
  override readonly text = pendulumText;
  private readonly g: number;
  private lastTorque = 0;

  constructor(options: PendulumOptions = {}) {
    super();
    ({ g: this.g } = applyDefaults("Pendulum", options, { g: 10 }));
  }

  /**
   * Options `xInit` and `yInit` bound the initial angle and velocity symmetrically. Defaults: pi
   * and 1.
   */
  override reset({ seed, options }: ResetOptions = {}): ResetResult<Float32Array> {
    this.reseed(seed);
    const angle = readNumberOption(options, "xInit", Math.PI);
    const velocity = readNumberOption(options, "yInit", 1);
    this.state = [this.random.uniform(-angle, angle), this.random.uniform(-velocity, velocity)];
    this.lastTorque = 0;
    return { observation: this.observation(this.state), info: {} };
  }

  /** A torque beyond the bounds is clipped. The reward depends on the state before the step. */
  override step(action: ArrayLike<number>): StepResult<Float32Array> {
    const requestedTorque = this.checkForce(action);
    const state = this.requireState();
    const torque = Math.min(Math.max(requestedTorque, -MAX_TORQUE), MAX_TORQUE);
    const [angle, velocity] = state;
    const normalizedAngle = normalizeAngle(angle);
    // The torque and its factors are float32.
    const torqueCost = Math.fround(Math.fround(0.001) * Math.fround(torque * torque));
    const cost = normalizedAngle * normalizedAngle + 0.1 * (velocity * velocity) + torqueCost;
    const acceleration = ((3 * this.g) / 2) * sin(angle) + Math.fround(3 * torque);
    const speed = Math.min(Math.max(velocity + acceleration * TIME_STEP, -MAX_SPEED), MAX_SPEED);
    this.state = [angle + speed * TIME_STEP, speed];
    this.lastTorque = torque;
    return { observation: this.observation(this.state), reward: -cost, terminated: false, truncated: false, info: {} };
  }

  private observation([angle, velocity]: PendulumState): Float32Array {
    return toFloat32Array([cos(angle), sin(angle), velocity]);
  }

  protected override draw(mode: RenderMode, [angle]: PendulumState): RenderFrame {
    return drawPendulum(mode, angle, this.lastTorque);
  }

  protected override saveState(): JsonValue {
    return { state: super.saveState(), lastTorque: this.lastTorque };
  }

  protected override loadState(json: JsonValue): void {
    const { state, lastTorque } = json as { state: JsonValue; lastTorque: number };
    super.loadState(state);
    this.lastTorque = lastTorque;
  }
}

function createPendulumExpert(env: Env): Policy {
  const policy = new GridPolicy<Float32Array, Float32Array>({
    env: makeSolverEnv(env),
    axes: [
      { low: -Math.PI, high: Math.PI, points: 121 },
      { low: -8, high: 8, points: 101 },
    ],
    actions: listForces(2, 9),
    discount: 0.99,
    sweeps: 200,
    stateAt: (angle, velocity) => ({ state: [angle, velocity], lastTorque: 0 }),
    coordinates: ([cosine, sine, velocity]) => [Math.atan2(sine, cosine), velocity],
  });
  return (observation) => policy.act(observation as Float32Array);
}

export const pendulumEnvs: readonly Registration[] = [
  {
    id: "Pendulum-v1",
    entryPoint: (options) => new PendulumEnv(options),
    maxEpisodeSteps: 200,
    summary: "swing a pendulum up and hold it",
    knownReturns: { random: -1232, best: -140.7, basis: "measured" },
    expert: createPendulumExpert,
  },
];
