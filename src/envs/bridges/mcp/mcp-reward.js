import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { errorMessage, invalidArgument, LlamaGymError } from "../../../core/errors.js";
import { isReward, REWARD_RULE } from "../../reward-limit.js";
const FILE_REFERENCE = /^(?<file>.+?)(?:#(?<name>[^#]+))?$/;
/** Returns the reward function. @throws INVALID_ARGUMENT without one, ENV_INVALID for a file without it. */
export async function resolveReward(reward, tasks) {
    const score = await findReward(reward, tasks);
    return async (episode) => {
        let value;
        try {
            value = await score(episode);
        }
        catch (error) {
            if (error instanceof LlamaGymError)
                throw error;
            const message = `The reward function threw: ${errorMessage(error)}`;
            throw new LlamaGymError("REWARD_FAILED", message, { cause: error });
        }
        const { reward, terminated = false } = typeof value === "number" ? { reward: value } : value;
        if (isReward(reward))
            return { reward, terminated };
        throw new LlamaGymError("REWARD_FAILED", `The reward of an MCP environment is ${String(reward)}; it must be ${REWARD_RULE}.`);
    };
}
async function findReward(reward, tasks) {
    if (typeof reward === "function")
        return reward;
    if (reward === "none")
        return () => 0;
    if (reward === "result")
        return readResultReward;
    if (reward !== undefined)
        return loadReward(reward);
    if (tasks.every(({ answer }) => answer !== undefined))
        return ({ task, answer }) => (answer !== undefined && normalize(answer) === normalize(task.answer) ? 1 : 0);
    throw invalidArgument('An MCP environment needs a reward: tasks with an `answer`, or `reward` (a function, FILE#export, or "result" for servers ' +
        'that give one with their results). With a judge alone, or to look at its tools, set reward to "none".');
}
/** The `reward` of a result's structured content, whose `done` ends the episode; 0 without one. */
const readResultReward = ({ steps }) => {
    const { reward, done } = steps.at(-1).result.structuredContent ?? {};
    return { reward: typeof reward === "number" ? reward : 0, terminated: done === true };
};
async function loadReward(reference) {
    const { file, name = "default" } = FILE_REFERENCE.exec(reference)?.groups ?? {};
    let exports;
    try {
        exports = (await import(pathToFileURL(resolve(file)).href));
    }
    catch (error) {
        throw new LlamaGymError("ENV_INVALID", `The reward ${reference} failed to import: ${errorMessage(error)}`, {
            cause: error,
        });
    }
    const value = exports[name];
    if (typeof value === "function")
        return value;
    throw new LlamaGymError("ENV_INVALID", `${file} exports no function ${name}. Export the reward, or name it: FILE#export.`);
}
const normalize = (answer) => (typeof answer === "string" ? answer : JSON.stringify(answer)).trim().toLowerCase();
