import { invalidArgument } from "../../core/errors.js";
import { findNearestName } from "../../core/suggest.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import { baseConversion, chainSum, countBits, countdown, gcd, lcm, simpleEquations } from "./arithmetic-tasks.js";
import { knightsKnaves, miniSudoku } from "./puzzle-tasks.js";
import { Draw, type ReasoningItem, type ReasoningTask } from "./reasoning-task.js";
import { caesarCipher, legCounting, letterCounting, numberSorting, spellBackward, wordSorting } from "./text-tasks.js";

/** All kinds of questions. */
export const REASONING_TASKS: readonly ReasoningTask[] = [
  chainSum,
  gcd,
  spellBackward,
  letterCounting,
  numberSorting,
  baseConversion,
  countdown,
  legCounting,
  simpleEquations,
  knightsKnaves,
  lcm,
  countBits,
  caesarCipher,
  wordSorting,
  miniSudoku,
];

/** Returns a kind of question by name. @throws INVALID_ARGUMENT for an unknown one */
export function findReasoningTask(name: string): ReasoningTask {
  const found = REASONING_TASKS.find((task) => task.name === name);
  if (found !== undefined) return found;
  const names = REASONING_TASKS.map((task) => task.name);
  const near = findNearestName(name, names);
  const hint = near === undefined ? `The tasks: ${names.join(", ")}.` : `Did you mean "${near}"?`;
  throw invalidArgument(`There is no reasoning task "${name}". ${hint}`);
}

/**
 * Returns the level of a task, its default where none is given. @throws INVALID_ARGUMENT for one
 * that does not exist
 */
export function checkLevel({ name, levels, defaultLevel }: ReasoningTask, level: number = defaultLevel): number {
  if (Number.isInteger(level) && level >= 0 && level < levels.length) return level;
  throw invalidArgument(`${name} has the levels 0 to ${levels.length - 1}, got ${level}.`);
}

/** Draws an item of a level. */
export function drawItem(task: ReasoningTask, level: number, random: RandomStream): ReasoningItem {
  return task.createItem(new Draw(random, task.levels[level]));
}

/** Returns the answer that a completion gives: what the last answer tag holds, or all of it. */
export function extractAnswer(completion: string): string {
  const tagged = [...completion.matchAll(/<answer>([\s\S]*?)<\/answer>/gi)].at(-1);
  return (tagged?.[1] ?? completion).trim();
}

/** Scores a completion from 0 to 1. */
export function scoreCompletion(
  task: ReasoningTask,
  completion: string,
  item: Omit<ReasoningItem, "question">,
): number {
  return Math.min(1, Math.max(0, task.verify(extractAnswer(completion), item)));
}
