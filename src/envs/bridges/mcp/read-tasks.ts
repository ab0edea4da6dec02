import { readFile, stat } from "node:fs/promises";
import { errorMessage, invalidArgument, LlamaGymError } from "../../../core/errors.js";
import { isJsonObject, type JsonValue } from "../../../core/json.js";
import { MAX_TASK_FILE_BYTES } from "./mcp-limits.js";

/**
 * A task of an agent: its prompt, the answer where it is known, and anything that the reward reads.
 */
export interface AgentTask {
  readonly prompt: string;
  readonly [field: string]: JsonValue;
}

/**
 * Reads tasks from a JSONL file: one object with a `prompt` per line. Also for `tasks` of a
 * GatewayTrainer.
 * @throws FILE_NOT_FOUND, FILE_CORRUPT with the first line that is invalid.
 */
export async function readTasks(path: string): Promise<AgentTask[]> {
  const text = await readText(path);
  const lines = text.split(/\r?\n/).map((line, i) => ({ line, number: i + 1 }));
  const tasks = lines.flatMap(({ line, number }) => (line.trim() === "" ? [] : [parseTask(line, `${path}:${number}`)]));
  if (tasks.length > 0) return tasks;
  throw new LlamaGymError("FILE_CORRUPT", `${path} has no tasks. Write one {"prompt": "..."} per line.`);
}

/** @throws INVALID_ARGUMENT unless `tasks` are prompts, or objects with one. */
export function checkTasks(tasks: readonly (string | AgentTask)[]): AgentTask[] {
  const list = tasks.map((task) => (typeof task === "string" ? { prompt: task } : task));
  if (list.length > 0 && list.every(isTask)) return list;
  throw invalidArgument('`tasks` must be a list of at least one prompt, or of objects with one: [{ prompt: "..." }].');
}

async function readText(path: string): Promise<string> {
  try {
    const { size } = await stat(path);
    if (size <= MAX_TASK_FILE_BYTES) return await readFile(path, "utf8");
  } catch (error) {
    throw new LlamaGymError("FILE_NOT_FOUND", `The tasks ${path} cannot be read: ${errorMessage(error)}`, {
      cause: error,
    });
  }
  throw new LlamaGymError("FILE_CORRUPT", `${path} has more than ${MAX_TASK_FILE_BYTES} bytes.`);
}

function parseTask(line: string, position: string): AgentTask {
  try {
    const task: unknown = JSON.parse(line);
    if (isTask(task)) return task;
  } catch {
    // Reported below.
  }
  throw new LlamaGymError(
    "FILE_CORRUPT",
    `${position} is not a task, such as {"prompt": "What is 2 + 2?", "answer": "4"}.`,
  );
}

const isTask = (task: unknown): task is AgentTask => isJsonObject(task) && typeof task.prompt === "string";
