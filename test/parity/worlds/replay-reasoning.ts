import { REASONING_TASKS, drawItem } from "../../../src/envs/reasoning/tasks.js";
import type { ReasoningTask } from "../../../src/envs/reasoning/reasoning-task.js";
import { RandomStream } from "../../../src/core/random/random-stream.js";
import { VERIFIERS, type Solution } from "../../../src/envs/reasoning/verifiers.js";
import type { Comparison } from "./comparison.js";

/** Items of one generator, with the scores of several answers. */
export interface ReasoningCase {
  readonly generator: string;
  /** Lengths of the answers over 200 items. */
  readonly shape: { readonly answer_chars: { readonly mean: number } };
  readonly items: (Solution & { readonly scores: [answer: string | null, score: number][] })[];
}

const TASKS = new Map(REASONING_TASKS.map((task) => [task.name, task]));
const NUM_ITEMS = 200;

/**
 * Scores every recorded answer again, and compares the shape of own items at Reasoning Gym's
 * settings.
 */
export function* replayReasoning({ generator, items, shape }: ReasoningCase): Generator<Comparison> {
  const verify = VERIFIERS[generator];
  const task = TASKS.get(generator);
  if (task !== undefined) yield compareShape(task, shape);
  for (const [i, item] of items.entries())
    for (const [answer, expected] of item.scores)
      yield { where: `item ${i}, ${JSON.stringify(answer)}`, actual: verify(answer, item), expected };
}

export const isReasoningSupported = ({ generator }: ReasoningCase): boolean => Object.hasOwn(VERIFIERS, generator);

/**
 * Compares the mean length of answers; texts and word lists are own ones, so a quarter of it may
 * differ.
 */
function compareShape(task: ReasoningTask, { answer_chars: { mean } }: ReasoningCase["shape"]): Comparison {
  const random = new RandomStream(0);
  const total = Array.from({ length: NUM_ITEMS }, () => drawItem(task, task.defaultLevel, random).answer.length);
  const ownMean = total.reduce((sum, length) => sum + length, 0) / NUM_ITEMS;
  const isNear = Math.abs(ownMean - mean) <= 0.25 * mean;
  return { where: `answers of ${ownMean} characters instead of ${mean}`, actual: isNear, expected: true };
}
