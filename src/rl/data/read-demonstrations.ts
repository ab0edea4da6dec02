import { readExample, readJsonLines, type InvalidLine } from "./read-examples.js";
import type { SftExample } from "./sft-example.js";
import type { Info } from "../../envs/info.js";
import { LlamaGymError } from "../../core/errors.js";
import type { ChatMessage } from "../../models/text/index.js";

/** A turn as someone played it. */
export interface DemonstrationTurn {
  /** What was shown: the user's message. */
  readonly observationText: string;
  readonly completion: string;
  /** What the agent's parser is given with the reply; the shown text where this is not known. */
  readonly observation?: unknown;
  readonly info?: Info;
}

/** An episode, or a part of one, as someone played it. */
export interface Demonstration {
  /** The agent's own unless given. */
  readonly systemPrompt?: string;
  readonly turns: readonly DemonstrationTurn[];
  readonly return?: number;
  /** Where it stands in a file, for messages: "demos.jsonl, line 3". */
  readonly source?: string;
}

export interface DemonstrationFile {
  readonly demonstrations: readonly Demonstration[];
  readonly invalidLines: readonly InvalidLine[];
}

/**
 * Reads demonstrations from a file with one JSON object a line: { messages } for an episode, or a prompt and a completion under the
 * names that `readExamples` knows for a single turn; a "return" beside them ranks the episode, "infos" has the environment's info of
 * each turn. Throws FILE_NOT_FOUND, FILE_READ_FAILED, and FILE_CORRUPT with the line's number unless broken lines are skipped.
 */
export async function readDemonstrations(
  path: string,
  options: { readonly onInvalidLine?: "error" | "skip" } = {},
): Promise<DemonstrationFile> {
  const { values, invalidLines } = await readJsonLines(path, options, (fields, line): Demonstration => {
    const { systemPrompt, turns } = parseMessages(getMessages(readExample(fields, "chat")));
    const infos = Array.isArray(fields.infos) ? (fields.infos as readonly Info[]) : [];
    return {
      systemPrompt,
      turns: turns.map((turn, i) => (infos[i] === undefined ? turn : { ...turn, info: infos[i] })),
      return: typeof fields.return === "number" ? fields.return : undefined,
      source: `${path}, line ${line}`,
    };
  });
  if (values.length > 0) return { demonstrations: values, invalidLines };
  const reason = invalidLines.length === 0 ? "it is empty" : `none of its ${invalidLines.length} lines can be used`;
  throw new LlamaGymError("FILE_CORRUPT", `There is no demonstration in ${path}: ${reason}.`);
}

function getMessages(example: SftExample): readonly ChatMessage[] {
  if ("messages" in example) return example.messages;
  const { prompt, completion } = "tokens" in example ? { prompt: "", completion: "" } : example;
  if (typeof prompt !== "string" && typeof completion !== "string") return [...prompt, ...completion];
  throw new Error('a demonstration needs what was shown and the reply: "messages", or a prompt and a completion.');
}

/** Each reply with what was shown since the one before. */
function parseMessages(messages: readonly ChatMessage[]): Pick<Demonstration, "systemPrompt" | "turns"> {
  const system: string[] = [];
  const turns: DemonstrationTurn[] = [];
  let userMessages: string[] = [];
  for (const { role, content } of messages) {
    if (typeof content !== "string") throw new Error(`the message of the ${role} is no text.`);
    if (role === "system") system.push(content);
    else if (role === "user") userMessages.push(content);
    else if (role !== "assistant") throw new Error(`demonstrations have no messages of the role "${role}".`);
    else if (userMessages.length === 0) throw new Error("a reply has no message of the user before it.");
    else {
      turns.push({ observationText: userMessages.join("\n\n"), completion: content });
      userMessages = [];
    }
  }
  return { systemPrompt: system.length === 0 ? undefined : system.join("\n\n"), turns };
}
