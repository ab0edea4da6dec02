import {
  Env,
  type EnvMetadata,
  type RenderFrame,
  type RenderMode,
  type ResetOptions,
  type ResetResult,
  type StepResult,
} from "../env.js";
import type { JsonValue } from "../json.js";
import { withDefaults } from "../options.js";
import { Box } from "../spaces/box.js";
import { drawMountainCar } from "./drawings.js";
import { checkForce } from "./force.js";
import { MAX_POSITION, MAX_SPEED, MIN_POSITION, type MountainCarOptions } from "./mountain-car.js";
import { continuousMountainCarText } from "./mountain-car-text.js";
import { float32Array } from "./float32-array.js";
import { resetBounds } from "./reset-bounds.js";
import { cos } from "./trigonometry.js";

const GOAL_POSITION = 0.45;
const POWER = 0.0015;
const GRAVITY = 0.0025;
/** The precision of a step: the bounds are rounded like everything else. */
const inPrecision = (round: (value: number) => number) => ({
  round,
  speed: round(MAX_SPEED),
  left: round(MIN_POSITION),
  right: round(MAX_POSITION),
  goal: round(GOAL_POSITION),
});
const IN_DOUBLE = inPrecision((value) => value);
const IN_FLOAT32 = inPrecision(Math.fround);

/**
 * The mountain car with any force between -1 and 1, and a price for force. Observation: position, velocity. Equals
 * Gymnasium's MountainCarContinuous-v0, whose state is double at reset and float32 after the first step.
 */
export class ContinuousMountainCarEnv extends Env<Float32Array, Float32Array> {
  override readonly observationSpace = new Box([MIN_POSITION, -MAX_SPEED], [MAX_POSITION, MAX_SPEED]);
  override readonly actionSpace = new Box(-1, 1, { shape: [1] });
  override readonly metadata: EnvMetadata = { renderModes: ["ansi", "rgb_array"], renderFps: 30 };
  override readonly text = continuousMountainCarText;
  private readonly goalVelocity: number;
  private state: readonly [position: number, velocity: number] | undefined;
  private isFirstStep = true;

  constructor(options: MountainCarOptions = {}) {
    super();
    ({ goalVelocity: this.goalVelocity } = withDefaults("MountainCarContinuous", options, { goalVelocity: 0 }));
  }

  /** Options `low` and `high` bound the first position, -0.6 and -0.4 when not said. */
  override reset({ seed, options }: ResetOptions = {}): ResetResult<Float32Array> {
    this.reseed(seed);
    const [low, high] = resetBounds(options, -0.6, -0.4);
    this.state = [this.random.uniform(low, high), 0];
    this.isFirstStep = true;
    return { observation: float32Array(this.state), info: {} };
  }

  /** A force beyond the bounds acts as the bound, but costs what it is. */
  override step(action: ArrayLike<number>): StepResult<Float32Array> {
    const wanted = checkForce(this, action);
    if (this.state === undefined) throw this.notReset();
    const { round, speed, left, right, goal } = this.isFirstStep ? IN_DOUBLE : IN_FLOAT32;
    this.isFirstStep = false;
    const pull = acceleration(wanted, round(3 * this.state[0]));
    let velocity = Math.min(Math.max(round(this.state[1] + round(pull)), -speed), speed);
    const position = Math.min(Math.max(round(this.state[0] + velocity), left), right);
    if (position === left && velocity < 0) velocity = 0;
    const terminated = position >= goal && velocity >= round(this.goalVelocity);
    const reward = (terminated ? 100 : 0) - wanted * wanted * 0.1;
    const observation = float32Array([position, velocity]);
    this.state = [observation[0], observation[1]];
    return { observation, reward, terminated, truncated: false, info: {} };
  }

  override render(mode: RenderMode): RenderFrame {
    if (this.state === undefined) throw this.notReset();
    return drawMountainCar(mode, this.state[0], GOAL_POSITION);
  }

  protected override saveState(): JsonValue {
    return { state: this.state ?? null, isFirstStep: this.isFirstStep };
  }

  protected override loadState(json: JsonValue): void {
    const { state, isFirstStep } = json as { state: [number, number] | null; isFirstStep: boolean };
    this.state = state ?? undefined;
    this.isFirstStep = isFirstStep;
  }
}

/** In float32 while the force is in bounds; a bound itself is a double in Gymnasium, and so is all that follows. */
function acceleration(force: number, angle: number): number {
  const weight = GRAVITY * cos(angle);
  if (Math.abs(force) > 1) return Math.sign(force) * POWER - weight;
  return Math.fround(Math.fround(force * Math.fround(POWER)) - Math.fround(weight));
}
