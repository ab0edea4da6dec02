import { afterEach, expect, it, vi } from "vitest";
import { Discrete, Env, type ResetResult, type StepResult } from "../../envs.js";
import { EpisodeRunner } from "./episode-runner.js";

/** Ends an episode after `length` steps. */
class LongEnv extends Env<number, number> {
  override readonly observationSpace = new Discrete(1);
  override readonly actionSpace = new Discrete(1);
  private steps = 0;

  constructor(private readonly length: number) {
    super();
  }

  override toString(): string {
    return `LongEnv(${this.length})`;
  }

  override reset(): ResetResult<number> {
    this.steps = 0;
    return { observation: 0, info: {} };
  }

  override step(): StepResult<number> {
    this.steps++;
    return { observation: 0, reward: 0, terminated: this.steps === this.length, truncated: false, info: {} };
  }
}

async function play(env: Env<number, number>, steps: number): Promise<void> {
  const runner = new EpisodeRunner(env);
  await runner.reset();
  for (let step = 0; step < steps; step++) await runner.step(0);
}

afterEach(() => {
  vi.restoreAllMocks();
});

it("warns once that episodes may have no end", async () => {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  await play(new LongEnv(10_000), 10_000);
  expect(warn).not.toHaveBeenCalled();
  for (let episode = 0; episode < 2; episode++) await play(new LongEnv(Infinity), 10_001);
  expect(warn).toHaveBeenCalledOnce();
  expect(warn.mock.calls[0][0]).toMatch(/LongEnv\(Infinity\).*10000 steps.*maxEpisodeSteps/u);
});
