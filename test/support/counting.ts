import { Agent } from "../../src/rl/agent/agent.js";
import { Env, type ResetOptions, type ResetResult, type StepResult } from "../../src/envs/env.js";
import type { JsonValue } from "../../src/core/json.js";
import { Discrete } from "../../src/envs/spaces/discrete.js";

export interface CountingOptions {
  /** Steps of an episode; 4 by default. */
  readonly length?: number;
  /** Steps of an episode that was started with a seed. */
  readonly lengthForSeed?: (seed: number) => number;
  /** Reward of a step, counted from 0; by default 1 for the action that was shown. */
  readonly reward?: (step: number, action: number) => number;
  /** Whether an episode is stopped rather than ended. */
  readonly isTruncated?: boolean;
  /** Whether it can be saved. */
  readonly isSaved?: boolean;
}

/** Shows a number from 0 to 9 in each step and pays for actions of its parity. */
export class CountingEnv extends Env<number, number> {
  override readonly observationSpace = new Discrete(10);
  override readonly actionSpace = new Discrete(2);
  /** Seeds that it was started with. */
  readonly seeds: number[] = [];
  private steps = 0;
  private current = 0;
  private length = 4;

  constructor(private readonly options: CountingOptions = {}) {
    super();
  }

  override reset({ seed }: ResetOptions = {}): ResetResult<number> {
    this.reseed(seed);
    if (seed !== undefined) this.seeds.push(Number(seed));
    const { length = 4, lengthForSeed } = this.options;
    this.length = lengthForSeed === undefined ? length : lengthForSeed(Number(seed));
    this.steps = 0;
    return { observation: this.nextObservation(), info: {} };
  }

  override step(action: number): StepResult<number> {
    const { reward, isTruncated = false } = this.options;
    const stepReward = reward?.(this.steps, action) ?? (action === this.current % 2 ? 1 : 0);
    this.steps++;
    const isDone = this.steps >= this.length;
    return {
      observation: this.nextObservation(),
      reward: stepReward,
      terminated: isDone && !isTruncated,
      truncated: isDone && isTruncated,
      info: {},
    };
  }

  protected override saveState(): JsonValue {
    if (this.options.isSaved === false) return super.saveState();
    const { steps, current, length } = this;
    return { steps, current, length };
  }

  protected override loadState(state: JsonValue): void {
    const { steps, current, length } = state as { steps: number; current: number; length: number };
    Object.assign(this, { steps, current, length });
  }

  private nextObservation(): number {
    this.current = this.random.integers(0, 10);
    return this.current;
  }
}

/** Says "even" or "odd" to a number. */
export class EvenOddAgent extends Agent<number, number> {
  override getSystemPrompt() {
    return "Say it.";
  }

  override formatObservation(observation: number) {
    return String(observation);
  }

  override getChoices() {
    return ["even", "odd"];
  }

  override extractAction(response: string) {
    return response === "odd" ? 1 : 0;
  }
}
