import { invalidArgument } from "../../core/errors.js";
import { findNearestName } from "../../core/suggest.js";
import { baseConversion, chainSum, countBits, countdown, gcd, lcm, simpleEquations } from "./arithmetic-tasks.js";
import { knightsKnaves, miniSudoku } from "./puzzle-tasks.js";
import { Draw } from "./reasoning-task.js";
import { caesarCipher, legCounting, letterCounting, numberSorting, spellBackward, wordSorting } from "./text-tasks.js";
/** All kinds of questions. */
export const REASONING_TASKS = [
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
export function findReasoningTask(name) {
    const found = REASONING_TASKS.find((task) => task.name === name);
    if (found !== undefined)
        return found;
    const names = REASONING_TASKS.map((task) => task.name);
    const near = findNearestName(name, names);
    const hint = near === undefined ? `The tasks: ${names.join(", ")}.` : `Did you mean "${near}"?`;
    throw invalidArgument(`There is no reasoning task "${name}". ${hint}`);
}
/** Returns the level of a task, its default where none is given. @throws INVALID_ARGUMENT for one that does not exist */
export function checkLevel({ name, levels, defaultLevel }, level = defaultLevel) {
    if (Number.isInteger(level) && level >= 0 && level < levels.length)
        return level;
    throw invalidArgument(`${name} has the levels 0 to ${levels.length - 1}, got ${level}.`);
}
/** Draws an item of a level. */
export function drawItem(task, level, random) {
    return task.createItem(new Draw(random, task.levels[level]));
}
/** Returns the answer that a completion gives: what the last answer tag holds, or all of it. */
export function extractAnswer(completion) {
    const tagged = [...completion.matchAll(/<answer>([\s\S]*?)<\/answer>/gi)].at(-1);
    return (tagged?.[1] ?? completion).trim();
}
/** Scores a completion from 0 to 1. */
export function scoreCompletion(task, completion, item) {
    return Math.min(1, Math.max(0, task.verify(extractAnswer(completion), item)));
}
