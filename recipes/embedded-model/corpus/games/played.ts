import { getChoices, type Env, type ResetResult, type StepResult } from "../../../../src/envs.js";
import { RandomStream } from "../../../../src/core/random/random-stream.js";

/** A moment of an environment that was played at random. */
export interface RecordedObservation {
  readonly observation: unknown;
  readonly info: Readonly<Record<string, unknown>>;
  /** The observation as text. */
  readonly text: string;
  /** The replies that are in form. */
  readonly validCompletions: readonly string[];
}

/**
 * Plays episodes with random actions, each for at most so many steps; the same numbers always give
 * the same moments.
 */
export function recordObservations(env: Env, episodes: number, steps: number): readonly RecordedObservation[] {
  const form = env.text!;
  const random = new RandomStream(episodes);
  const moments: RecordedObservation[] = [];
  for (let seed = 0; seed < episodes; seed++) {
    let now = env.reset({ seed }) as ResetResult<unknown>;
    for (let step = 0; step < steps; step++) {
      const { observation, info } = now;
      const validCompletions = getChoices(form, observation, info) ?? [];
      moments.push({ observation, info, text: form.formatObservation(observation, info), validCompletions });
      const next = env.step(
        form.parseAction(random.choice(validCompletions), observation, info),
      ) as StepResult<unknown>;
      if (next.terminated || next.truncated) break;
      now = next;
    }
  }
  return moments;
}
