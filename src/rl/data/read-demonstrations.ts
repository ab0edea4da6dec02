import { readExample } from "./read-examples.js";
import { readRows, type InvalidLine } from "./read-rows.js";
import type { SftExample } from "./sft-example.js";
import type { Info } from "../../envs/index.js";
import { LlamaGymError } from "../../core/errors.js";
import type { ChatMessage } from "../../models/text/index.js";

/** A demonstrated turn. */
export interface DemonstrationTurn {
  /** The user message. */
  readonly observationText: string;
  readonly completion: string;
  /** Observation passed to the agent's parser; default: `observationText`. */
  readonly observation?: unknown;
  readonly info?: Info;
}

/** A demonstrated episode, or part of one. */
export interface Demonstration {
  /** Default: the agent's system prompt. */
  readonly systemPrompt?: string;
  readonly turns: readonly DemonstrationTurn[];
  readonly return?: number;
  /** Location for error messages, such as "demos.jsonl, line 3". */
  readonly source?: string;
}

/** Demonstrations read from a file, with its invalid lines. */
export interface DemonstrationFile {
  readonly demonstrations: readonly Demonstration[];
  readonly invalidLines: readonly InvalidLine[];
}

/**
 * Reads demonstrations from a JSONL file: { messages } for an episode, or a prompt and a completion
 * under the keys of `readExamples` for a single turn. `return` ranks the episode, `infos` has the
 * environment's info of each turn.
 * @throws FILE_NOT_FOUND, FILE_READ_FAILED, and, unless invalid lines are skipped, FILE_CORRUPT
 * with the line number.
 */
export async function readDemonstrations(
  path: string,
  options: { readonly onInvalidLine?: "error" | "skip" } = {},
): Promise<DemonstrationFile> {
  const { values, invalidLines } = await readRows(path, options, (fields, source): Demonstration => {
    const { systemPrompt, turns } = parseMessages(getMessages(readExample(fields, "chat").example));
    const infos = Array.isArray(fields.infos) ? (fields.infos as readonly Info[]) : [];
    return {
      systemPrompt,
      turns: turns.map((turn, i) => (infos[i] === undefined ? turn : { ...turn, info: infos[i] })),
      return: typeof fields.return === "number" ? fields.return : undefined,
      source,
    };
  });
  if (values.length > 0) return { demonstrations: values, invalidLines };
  const reason = invalidLines.length === 0 ? "it is empty" : `all of its ${invalidLines.length} lines are invalid`;
  throw new LlamaGymError("FILE_CORRUPT", `${path} contains no demonstration: ${reason}.`);
}

function getMessages(example: SftExample): readonly ChatMessage[] {
  const unsupported = ["tools", "variables"].find((name) => name in example);
  if (unsupported !== undefined)
    throw new Error(`a demonstration must not have ${unsupported === "tools" ? "tools" : "chat_template_kwargs"}.`);
  if ("messages" in example) return example.messages;
  const { prompt, completion } = "tokens" in example ? { prompt: "", completion: "" } : example;
  if (typeof prompt !== "string" && typeof completion !== "string") return [...prompt, ...completion];
  throw new Error('a demonstration needs "messages", or a prompt and a completion.');
}

/** Pairs each assistant message with the user messages since the previous one. */
function parseMessages(messages: readonly ChatMessage[]): Pick<Demonstration, "systemPrompt" | "turns"> {
  const system: string[] = [];
  const turns: DemonstrationTurn[] = [];
  let userMessages: string[] = [];
  for (const { role, content, weight = 1 } of messages) {
    if (weight === 0 && role === "assistant") throw new Error("a demonstration must not have answers of weight 0.");
    if (typeof content !== "string") throw new Error(`the ${role} message must be text.`);
    if (role === "system") system.push(content);
    else if (role === "user") userMessages.push(content);
    else if (role !== "assistant") throw new Error(`messages must not have the role "${role}".`);
    else if (userMessages.length === 0) throw new Error("an assistant message must follow a user message.");
    else {
      turns.push({ observationText: userMessages.join("\n\n"), completion: content });
      userMessages = [];
    }
  }
  return { systemPrompt: system.length === 0 ? undefined : system.join("\n\n"), turns };
}
