import type { EnvMetadata, RenderFrame, RenderMode, ResetOptions, ResetResult, StepResult } from "../env.js";
import { applyDefaults } from "../env-options.js";
import { Box, Discrete } from "../spaces/index.js";
import { drawCartPole } from "./drawings.js";
import { ClassicControlEnv, toFloat32Array, readResetBounds } from "./classic-control-env.js";
import { cartPoleText, roundedCartPoleText } from "./text.js";
import { cos, sin } from "./trigonometry.js";
import type { Registration } from "../registry/env-registry.js";
import type { Policy } from "../policy.js";

const GRAVITY = 9.8;
const CART_MASS = 1;
const POLE_MASS = 0.1;
const TOTAL_MASS = POLE_MASS + CART_MASS;
const HALF_POLE_LENGTH = 0.5;
const POLE_MOMENT = POLE_MASS * HALF_POLE_LENGTH;
const FORCE_MAGNITUDE = 10;
/** Seconds per step. */
const TIME_STEP = 0.02;
const MAX_ANGLE = (12 * 2 * Math.PI) / 360;
const MAX_POSITION = 2.4;

/** Options of `CartPoleEnv`. */
export interface CartPoleOptions {
  /** Uses Sutton and Barto's rewards: 0 while the pole is upright, -1 when it falls. */
  readonly suttonBartoReward?: boolean;
  /**
   * Rounds the numbers of the prompts (0.5 m, 0.5 m/s, 1 degree, 15 degrees/s), so that prompts
   * recur; observations stay exact.
   */
  readonly roundedText?: boolean;
}

/**
 * Balance a pole on a cart by pushing the cart left or right (Barto, Sutton and Anderson 1983).
 * Observation: position, velocity, angle (radians), angular velocity. Equals Gymnasium's
 * CartPole-v1.
 */
export class CartPoleEnv extends ClassicControlEnv<readonly number[], number> {
  override readonly observationSpace = new Box(
    [-2 * MAX_POSITION, -Infinity, -2 * MAX_ANGLE, -Infinity],
    [2 * MAX_POSITION, Infinity, 2 * MAX_ANGLE, Infinity],
  );
  override readonly actionSpace = new Discrete(2);
  override readonly metadata: EnvMetadata = { renderModes: ["ansi", "rgb_array"], renderFps: 50 };
  override readonly text: typeof cartPoleText;
  private readonly suttonBartoReward: boolean;

  constructor(options: CartPoleOptions = {}) {
    super();
    const { suttonBartoReward, roundedText } = applyDefaults("CartPole", options, {
      suttonBartoReward: false,
      roundedText: false,
    });
    this.suttonBartoReward = suttonBartoReward;
    this.text = roundedText ? roundedCartPoleText : cartPoleText;
  }

  /** Options `low` and `high` bound the initial state. Defaults: -0.05 and 0.05. */
  override reset({ seed, options }: ResetOptions = {}): ResetResult<Float32Array> {
    this.reseed(seed);
    const [low, high] = readResetBounds(options, -0.05, 0.05);
    const { random } = this;
    this.state = [
      random.uniform(low, high),
      random.uniform(low, high),
      random.uniform(low, high),
      random.uniform(low, high),
    ];
    return { observation: toFloat32Array(this.state), info: {} };
  }

  override step(action: number): StepResult<Float32Array> {
    this.checkAction(action);
    const [x, xDot, theta, thetaDot] = this.requireState();
    const force = action === 1 ? FORCE_MAGNITUDE : -FORCE_MAGNITUDE;
    const sine = sin(theta);
    const cosine = cos(theta);
    // The equations of Florian (2007), https://coneural.org/florian/papers/05_cart_pole.pdf,
    // without friction.
    const push = (force + POLE_MOMENT * (thetaDot * thetaDot) * sine) / TOTAL_MASS;
    const thetaAcceleration =
      (GRAVITY * sine - cosine * push) / (HALF_POLE_LENGTH * (4 / 3 - (POLE_MASS * (cosine * cosine)) / TOTAL_MASS));
    const xAcceleration = push - (POLE_MOMENT * thetaAcceleration * cosine) / TOTAL_MASS;
    this.state = [
      x + TIME_STEP * xDot,
      xDot + TIME_STEP * xAcceleration,
      theta + TIME_STEP * thetaDot,
      thetaDot + TIME_STEP * thetaAcceleration,
    ];
    const terminated = Math.abs(this.state[0]) > MAX_POSITION || Math.abs(this.state[2]) > MAX_ANGLE;
    const reward = this.suttonBartoReward ? (terminated ? -1 : 0) : 1;
    return { observation: toFloat32Array(this.state), reward, terminated, truncated: false, info: {} };
  }

  protected override draw(mode: RenderMode, [position, , angle]: readonly number[]): RenderFrame {
    return drawCartPole(mode, position, angle);
  }
}

/** Pushes the cart under the pole, slightly ahead of its motion, and back to the center. */
const createCartPoleExpert = (): Policy => (observation) => {
  const [position, velocity, angle, angularVelocity] = observation as Float32Array;
  return angle + 0.5 * angularVelocity + 0.1 * velocity + 0.02 * position > 0 ? 1 : 0;
};

const createCartPole = (options: object) => new CartPoleEnv(options);

export const cartPoleEnvs: readonly Registration[] = [
  {
    id: "CartPole-v0",
    entryPoint: createCartPole,
    maxEpisodeSteps: 200,
    rewardThreshold: 195,
    summary: "balance a pole for 200 steps",
    knownReturns: { random: 22.6, best: 200, basis: "measured" },
    expert: createCartPoleExpert,
  },
  {
    id: "CartPole-v1",
    entryPoint: createCartPole,
    maxEpisodeSteps: 500,
    rewardThreshold: 475,
    summary: "balance a pole for 500 steps",
    knownReturns: { random: 22.1, best: 500, basis: "measured" },
    expert: createCartPoleExpert,
  },
];
