import { choicesFor, type Env, type ResetResult, type StepResult } from "../../../../src/envs/index.js";
import { RandomStream } from "../../../../src/tensor/random.js";

/** A moment of an environment that was played at random. */
export interface PlayedMoment {
  readonly observation: unknown;
  readonly info: Readonly<Record<string, unknown>>;
  /** The observation as text. */
  readonly text: string;
  /** The replies that are in form. */
  readonly replies: readonly string[];
}

/** Plays episodes with random actions, each for at most so many steps; the same numbers always give the same moments. */
export function playedMoments(env: Env, episodes: number, steps: number): readonly PlayedMoment[] {
  const form = env.text!;
  const random = new RandomStream(episodes);
  const moments: PlayedMoment[] = [];
  for (let seed = 0; seed < episodes; seed++) {
    let now = env.reset({ seed }) as ResetResult<unknown>;
    for (let step = 0; step < steps; step++) {
      const { observation, info } = now;
      const replies = choicesFor(form, observation, info) ?? [];
      moments.push({ observation, info, text: form.formatObservation(observation, info), replies });
      const next = env.step(form.parseAction(random.choice(replies), observation, info)) as StepResult<unknown>;
      if (next.terminated || next.truncated) break;
      now = next;
    }
  }
  return moments;
}
