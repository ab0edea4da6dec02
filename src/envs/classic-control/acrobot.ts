import type {
  EnvMetadata,
  EnvOptions,
  RenderFrame,
  RenderMode,
  ResetOptions,
  ResetResult,
  StepResult,
} from "../env.js";
import { applyDefaults } from "../env-options.js";
import { Box, Discrete } from "../spaces/index.js";
import { drawAcrobot } from "./drawings.js";
import { cosFloat32, sinFloat32 } from "./float32-trigonometry.js";
import { ClassicControlEnv, toFloat32Array, readResetBounds } from "./classic-control-env.js";
import { acrobotText } from "./text.js";
import { cos, sin } from "./trigonometry.js";
import type { Registration } from "../registry/env-registry.js";
import type { Policy } from "../policy.js";

const TIME_STEP = 0.2;
const LINK_LENGTH = 1;
const LINK_MASS = 1;
/** From a link's joint to its center of mass. */
const LINK_CENTER = 0.5;
const LINK_INERTIA = 1;
const GRAVITY = 9.8;
const MAX_VELOCITY_1 = 4 * Math.PI;
const MAX_VELOCITY_2 = 9 * Math.PI;

/** Angles of the first link (0 hangs down) and of the second to the first, and their velocities. */
type AcrobotState = readonly [angle1: number, angle2: number, velocity1: number, velocity2: number];

/**
 * Swing the tip of two hanging links above the bar, with a motor in the joint between them (Sutton
 * 1996). Observation: cosine and sine of both angles, both velocities. Actions: torque -1, 0, 1.
 * Equals Gymnasium's Acrobot-v1.
 */
export class AcrobotEnv extends ClassicControlEnv<AcrobotState, number> {
  override readonly observationSpace = new Box(
    [-1, -1, -1, -1, -MAX_VELOCITY_1, -MAX_VELOCITY_2],
    [1, 1, 1, 1, MAX_VELOCITY_1, MAX_VELOCITY_2],
  );
  override readonly actionSpace = new Discrete(3);
  override readonly metadata: EnvMetadata = { renderModes: ["ansi", "rgb_array"], renderFps: 15 };
  override readonly text = acrobotText;

  constructor(options: EnvOptions = {}) {
    super();
    applyDefaults("Acrobot", options, {});
  }

  /** Options `low` and `high` bound the initial state. Defaults: -0.1 and 0.1. */
  override reset({ seed, options }: ResetOptions = {}): ResetResult<Float32Array> {
    this.reseed(seed);
    const [low, high] = readResetBounds(options, -0.1, 0.1);
    const draw = () => Math.fround(this.random.uniform(low, high));
    const [angle1, angle2, velocity1, velocity2] = [draw(), draw(), draw(), draw()];
    this.state = [angle1, angle2, velocity1, velocity2];
    // The initial state is float32 in Gymnasium, so its sines are float32 too.
    const observation = toFloat32Array([
      cosFloat32(angle1),
      sinFloat32(angle1),
      cosFloat32(angle2),
      sinFloat32(angle2),
      velocity1,
      velocity2,
    ]);
    return { observation, info: {} };
  }

  override step(action: number): StepResult<Float32Array> {
    this.checkAction(action);
    const [angle1, angle2, velocity1, velocity2] = integrateRungeKutta(this.requireState(), action - 1);
    this.state = [
      wrapAngle(angle1),
      wrapAngle(angle2),
      Math.min(Math.max(velocity1, -MAX_VELOCITY_1), MAX_VELOCITY_1),
      Math.min(Math.max(velocity2, -MAX_VELOCITY_2), MAX_VELOCITY_2),
    ];
    const [first, second, ...velocities] = this.state;
    const cosine = cos(first);
    const terminated = -cosine - cos(second + first) > 1;
    const observation = toFloat32Array([cosine, sin(first), cos(second), sin(second), ...velocities]);
    return { observation, reward: terminated ? 0 : -1, terminated, truncated: false, info: {} };
  }

  protected override draw(mode: RenderMode, [angle1, angle2]: AcrobotState): RenderFrame {
    return drawAcrobot(mode, angle1, angle2);
  }
}

/**
 * Computes the time derivative of the state, as in Sutton and Barto's book (the paper omits two
 * terms).
 */
function computeDerivatives([angle1, angle2, velocity1, velocity2]: AcrobotState, torque: number): AcrobotState {
  const m = LINK_MASS;
  const l = LINK_LENGTH;
  const lc = LINK_CENTER;
  const inertia = LINK_INERTIA;
  const sine2 = sin(angle2);
  const cosine2 = cos(angle2);
  const d1 = m * lc ** 2 + m * (l ** 2 + lc ** 2 + 2 * l * lc * cosine2) + inertia + inertia;
  const d2 = m * (lc ** 2 + l * lc * cosine2) + inertia;
  const phi2 = m * lc * GRAVITY * cos(angle1 + angle2 - Math.PI / 2);
  const phi1 =
    -m * l * lc * (velocity2 * velocity2) * sine2 -
    2 * m * l * lc * velocity2 * velocity1 * sine2 +
    (m * lc + m * l) * GRAVITY * cos(angle1 - Math.PI / 2) +
    phi2;
  const acceleration2 =
    (torque + (d2 / d1) * phi1 - m * l * lc * (velocity1 * velocity1) * sine2 - phi2) /
    (m * lc ** 2 + inertia - (d2 * d2) / d1);
  const acceleration1 = -(d2 * acceleration2 + phi1) / d1;
  return [velocity1, velocity2, acceleration1, acceleration2];
}

/** Integrates one step with the classical fourth-order Runge-Kutta method. */
function integrateRungeKutta(start: AcrobotState, torque: number): AcrobotState {
  const advance = (slope: AcrobotState, time: number): AcrobotState => [
    start[0] + time * slope[0],
    start[1] + time * slope[1],
    start[2] + time * slope[2],
    start[3] + time * slope[3],
  ];
  const k1 = computeDerivatives(start, torque);
  const k2 = computeDerivatives(advance(k1, TIME_STEP / 2), torque);
  const k3 = computeDerivatives(advance(k2, TIME_STEP / 2), torque);
  const k4 = computeDerivatives(advance(k3, TIME_STEP), torque);
  const weightedSlope = (i: 0 | 1 | 2 | 3) => k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i];
  return advance([weightedSlope(0), weightedSlope(1), weightedSlope(2), weightedSlope(3)], TIME_STEP / 6);
}

/** Wraps an angle to [-pi, pi]. */
function wrapAngle(angle: number): number {
  let wrapped = angle;
  while (wrapped > Math.PI) wrapped -= 2 * Math.PI;
  while (wrapped < -Math.PI) wrapped += 2 * Math.PI;
  return wrapped;
}

/**
 * Applies torque with the second link's swing and the first link's lean; the weights come from a
 * random search.
 */
const createAcrobotExpert = (): Policy => (observation) => {
  const [, sine1, , sine2, , velocity2] = observation as Float32Array;
  return 0.6 * velocity2 + 1.7 * sine1 + 0.1 * sine2 > 0 ? 2 : 0;
};

export const acrobotEnvs: readonly Registration[] = [
  {
    id: "Acrobot-v1",
    entryPoint: (options) => new AcrobotEnv(options),
    maxEpisodeSteps: 500,
    rewardThreshold: -100,
    summary: "swing a two-link robot up",
    knownReturns: { random: -498.5, best: -75.8, basis: "measured" },
    expert: createAcrobotExpert,
  },
];
