import type { Info, TextInterface } from "../envs/index.js";
import type { InfoName } from "./text-game.js";

const SYSTEM_PROMPT = `You are playing a text adventure. Each turn you read what happens and type one command. \
Commands are short: go north, open door, take key, take key from table, unlock chest with key, put cup on shelf, \
insert cup into box, examine book, eat apple, look, inventory. Do the task that the game sets, in as few commands as \
you can. Answer with the command alone.`;

const COMPACT_SYSTEM_PROMPT = "You are playing a text adventure. Answer with the next command of the task.";

export const COMMAND_CHARACTERS =
  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 '-,.?!àáâäçèéêëíïñóôöúûüß";
const ARTICLES = /\b(?:the|a|an)\s+/g;
/** Longer text in a completion is not a command. */
export const MAX_COMMAND_LENGTH = 100;

/**
 * Text interface of text games. Adds to the feedback, from the info and unless the feedback
 * contains them: the task, the room, the inventory and the admissible commands, so that an
 * observation determines the next command.
 */
export const textWorldText: TextInterface<string, string> = {
  systemPrompt: SYSTEM_PROMPT,
  formatObservation: (observation, info) =>
    joinParagraphs([
      ...formatScene(observation, info),
      formatCommands("Commands that you can use", getCommands(info, "admissibleCommands")),
    ]),
  parseAction: (completion, _observation, info) =>
    parseCompletion(completion, info === undefined ? [] : getCommands(info, "admissibleCommands")),
  formatAction: (command) => command,
  choices: (_observation, info) => getCommands(info, "admissibleCommands"),
};

/**
 * Text interface with shorter prompts: the system prompt has no list of commands, and the
 * observation has the commands of the episode so far in place of the admissible ones.
 */
export const compactTextWorldText: TextInterface<string, string> = {
  ...textWorldText,
  systemPrompt: COMPACT_SYSTEM_PROMPT,
  formatObservation: (observation, info) =>
    joinParagraphs([
      ...formatScene(observation, info),
      formatCommands("Commands so far", getCommands(info, "commands")),
    ]),
};

/**
 * Formats the feedback, and the task, the room and the inventory unless the feedback contains them.
 */
function formatScene(observation: string, info: Info): string[] {
  const feedback = cleanFeedback(observation);
  const collapsedFeedback = collapseWhitespace(feedback);
  const formatIfMissing = (name: InfoName) => {
    const text = info[name];
    return typeof text === "string" && !collapsedFeedback.includes(collapseWhitespace(text)) ? cleanFeedback(text) : "";
  };
  return [formatIfMissing("objective"), feedback, formatIfMissing("description"), formatIfMissing("inventory")];
}

function formatCommands(label: string, commands: readonly string[]): string {
  return commands.length === 0 ? "" : `${label}: ${commands.join("; ")}.`;
}

function joinParagraphs(paragraphs: readonly string[]): string {
  return paragraphs.filter((paragraph) => paragraph !== "").join("\n\n");
}

function collapseWhitespace(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

/** Removes the banner, the prompt, the status line and repeated empty lines from feedback. */
export function cleanFeedback(feedback: string): string {
  return feedback
    .replace(/\n>[^\n]*$/, "\n")
    .replace(/^[\s_|\\/$<>]*\$\$[\s_|\\/$<>]*\n/, "")
    .replace(/[ \t]+$/gm, "")
    .replace(/\n{3,}/g, "\n\n")
    .trim();
}

/**
 * Parses the command of a completion: the admissible command named last, else the text after the
 * last "command:", "action:" or prompt, else its only line.
 */
function parseCompletion(completion: string, admissible: readonly string[]): string | undefined {
  const namedCommand = findLastCommand(completion, admissible);
  if (namedCommand !== undefined) return namedCommand;
  const markedCommand = [...completion.matchAll(/(?:(?:command|action)\s*:|^\s*>)\s*([^\n]+)/gim)].at(-1)?.[1];
  const lines = completion.split("\n").filter((line) => line.trim() !== "");
  const command = Array.from(markedCommand ?? (lines.length === 1 ? lines[0] : ""), (character) =>
    COMMAND_CHARACTERS.includes(character) ? character : " ",
  ).join("");
  return command.trim() === "" || command.length > MAX_COMMAND_LENGTH ? undefined : command;
}

function getCommands(info: Info, name: InfoName | "commands"): readonly string[] {
  const commands = info[name];
  return Array.isArray(commands) ? (commands as readonly string[]) : [];
}

/**
 * Finds the last command in a text, ignoring case and articles; of two that end at the same
 * position, the longer one ("take key from table" does not name "take key").
 */
function findLastCommand(text: string, commands: readonly string[]): string | undefined {
  const normalizedText = normalizeWords(text);
  let best: { command: string; start: number; end: number } | undefined;
  for (const command of commands) {
    const phrase = ` ${normalizeWords(command).trim()} `;
    const start = normalizedText.lastIndexOf(phrase);
    if (start < 0) continue;
    const end = start + phrase.length;
    // A command within a longer one does not count.
    const isWithin = best !== undefined && start >= best.start && end <= best.end;
    const surrounds = best !== undefined && start <= best.start && end >= best.end;
    if (best === undefined || surrounds || (!isWithin && end > best.end)) best = { command, start, end };
  }
  return best?.command;
}

/** Normalizes to lower-case words with one space around each. */
function normalizeWords(text: string): string {
  return ` ${text
    .toLowerCase()
    .replace(/[^a-z0-9'-]+/g, " ")
    .replace(ARTICLES, "")
    .trim()} `;
}
