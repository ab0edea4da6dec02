import { invalidArgument } from "../../core/errors.js";
import type { JsonObject } from "../../core/json.js";
import { RandomStream } from "../../core/random/random-stream.js";
import { checkLevel, drawItem, findReasoningTask, scoreCompletion } from "./tasks.js";

/** Options of `createReasoningDataset`. */
export interface ReasoningDatasetOptions {
  /** Number of rows. Default 500. */
  readonly size?: number;
  /** Row i is drawn from the seed and i. Default 0. */
  readonly seed?: number;
  /** Default: the task's own, with Reasoning Gym's settings. */
  readonly level?: number;
}

/** A row for `GrpoTrainer`; other columns than the prompt are passed to reward functions. */
export type ReasoningRow = {
  readonly prompt: string;
  readonly answer: string;
  readonly metadata: JsonObject;
  readonly task: string;
};

/**
 * Creates the rows of a reasoning task for `GrpoTrainer`; `reasoningReward` scores their
 * completions.
 */
export function createReasoningDataset(
  name: string,
  { size = 500, seed = 0, level }: ReasoningDatasetOptions = {},
): ReasoningRow[] {
  const task = findReasoningTask(name);
  const checkedLevel = checkLevel(task, level);
  if (!Number.isSafeInteger(size) || size < 1)
    throw invalidArgument(`createReasoningDataset: size must be a positive integer, got ${size}.`);
  return Array.from({ length: size }, (_, i) => {
    const { question, answer, metadata } = drawItem(task, checkedLevel, new RandomStream(seed, [i]));
    return { prompt: question, answer, metadata, task: task.name };
  });
}

/**
 * Scores completions of `createReasoningDataset`'s rows from 0 to 1; a reward function of
 * `GrpoTrainer`.
 */
export function reasoningReward(batch: {
  readonly completions: readonly string[];
  readonly [column: string]: unknown;
}): number[] {
  const columns = batch as unknown as { [Name in keyof ReasoningRow]?: readonly ReasoningRow[Name][] };
  return batch.completions.map((completion, i) => {
    const [task, answer, metadata] = [columns.task?.[i], columns.answer?.[i], columns.metadata?.[i]];
    if (task === undefined || answer === undefined || metadata === undefined)
      throw invalidArgument("reasoningReward needs the columns task, answer and metadata of createReasoningDataset.");
    return scoreCompletion(findReasoningTask(task), completion, { answer, metadata });
  });
}
