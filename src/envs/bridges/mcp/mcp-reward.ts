import { assets } from "#platform";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { errorMessage, invalidArgument, LlamaGymError } from "../../../core/errors.js";
import type { JsonValue } from "../../../core/json.js";
import type { MaybePromise } from "../../../core/maybe-promise.js";
import { isReward, REWARD_RULE } from "../../reward-limit.js";
import type { McpResult } from "./mcp-connection.js";
import type { AgentTask } from "./read-tasks.js";
import type { McpCall } from "./tool-call-space.js";

/** A message of an episode: the task's prompt, the model's calls and their results. */
export interface EpisodeMessage {
  readonly role: "user" | "assistant";
  readonly content: string;
}

/** An episode after a step. */
export interface McpEpisode {
  readonly task: AgentTask;
  /** All calls so far with their results. */
  readonly steps: readonly { readonly call: McpCall; readonly result: McpResult }[];
  /** Argument of the finishing call; undefined before it. */
  readonly answer: JsonValue | undefined;
  /** Whether the model has finished or the step limit is reached. */
  readonly isOver: boolean;
  readonly messages: readonly EpisodeMessage[];
}

/** Scores a step; `terminated: true` ends the episode. */
export type McpReward = (
  episode: McpEpisode,
) => MaybePromise<number | { readonly reward: number; readonly terminated?: boolean }>;

const FILE_REFERENCE = /^(?<file>.+?)(?:#(?<name>[^#]+))?$/;

/**
 * Returns the reward function. @throws INVALID_ARGUMENT without one, ENV_INVALID for a file without
 * it.
 */
export async function resolveReward(
  reward: McpReward | string | undefined,
  tasks: readonly AgentTask[],
): Promise<(episode: McpEpisode) => Promise<{ reward: number; terminated: boolean }>> {
  const score = await findReward(reward, tasks);
  return async (episode) => {
    let value: Awaited<ReturnType<McpReward>>;
    try {
      value = await score(episode);
    } catch (error) {
      if (error instanceof LlamaGymError) throw error;
      const message = `The reward function threw: ${errorMessage(error)}`;
      throw new LlamaGymError("REWARD_FAILED", message, { cause: error });
    }
    const { reward, terminated = false } = typeof value === "number" ? { reward: value } : value;
    if (isReward(reward)) return { reward, terminated };
    throw new LlamaGymError(
      "REWARD_FAILED",
      `The reward of an MCP environment is ${String(reward)}; it must be ${REWARD_RULE}.`,
    );
  };
}

async function findReward(reward: McpReward | string | undefined, tasks: readonly AgentTask[]): Promise<McpReward> {
  if (typeof reward === "function") return reward;
  if (reward === "none") return () => 0;
  if (reward === "result") return readResultReward;
  if (reward !== undefined) return loadReward(reward);
  if (tasks.every(({ answer }) => answer !== undefined))
    return ({ task, answer }) => (answer !== undefined && normalize(answer) === normalize(task.answer) ? 1 : 0);
  throw invalidArgument(
    'An MCP environment needs a reward: tasks with an `answer`, or `reward` (a function, FILE#export, or "result" for servers ' +
      'that give one with their results). With a judge alone, or to look at its tools, set reward to "none".',
  );
}

/** The `reward` of a result's structured content, whose `done` ends the episode; 0 without one. */
const readResultReward: McpReward = ({ steps }) => {
  const { reward, done } = steps.at(-1)!.result.structuredContent ?? {};
  return { reward: typeof reward === "number" ? reward : 0, terminated: done === true };
};

async function loadReward(reference: string): Promise<McpReward> {
  const { file, name = "default" } = FILE_REFERENCE.exec(reference)?.groups ?? {};
  let exports: Readonly<Record<string, unknown>>;
  try {
    exports = await assets.importModule(pathToFileURL(resolve(file)).href);
  } catch (error) {
    throw new LlamaGymError("ENV_INVALID", `The reward ${reference} failed to import: ${errorMessage(error)}`, {
      cause: error,
    });
  }
  const value = exports[name];
  if (typeof value === "function") return value as McpReward;
  throw new LlamaGymError(
    "ENV_INVALID",
    `${file} exports no function ${name}. Export the reward, or name it: FILE#export.`,
  );
}

const normalize = (answer: JsonValue): string =>
  (typeof answer === "string" ? answer : JSON.stringify(answer)).trim().toLowerCase();
