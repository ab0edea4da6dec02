import type { Info } from "../info.js";
import type { TextForm } from "../text-form.js";
import type { InfoName } from "./text-game.js";
import { lastNamedCommand } from "./last-named-command.js";

const SYSTEM_PROMPT = `You are playing a text adventure. Each turn you read what happens and type one command. \
Commands are short: go north, open door, take key, take key from table, unlock chest with key, put cup on shelf, \
insert cup into box, examine book, eat apple, look, inventory. Do the task that the game sets, in as few commands as \
you can. Answer with the command alone.`;

/** What commands are made of. */
export const COMMAND_CHARACTERS =
  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 '-,.?!àáâäçèéêëíïñóôöúûüß";
/** A longer text in a reply is thought about a command rather than one. */
export const MAX_COMMAND = 100;

/**
 * How a text game reads and is answered. Shown besides the feedback, where it does not say them itself and the infos hold them: the
 * task, the room, what is carried, and the admissible commands. With these an observation is all that the next command depends on.
 */
export const textWorldText: TextForm<string, string> = {
  systemPrompt: SYSTEM_PROMPT,
  formatObservation: (observation, info) => {
    const feedback = tidyFeedback(observation);
    const said = inOneLine(feedback);
    const unsaid = (name: InfoName) => {
      const text = info[name];
      return typeof text === "string" && !said.includes(inOneLine(text)) ? tidyFeedback(text) : "";
    };
    const commands = commandsIn(info);
    return [
      unsaid("objective"),
      feedback,
      unsaid("description"),
      unsaid("inventory"),
      commands.length === 0 ? "" : `Commands that you can use: ${commands.join("; ")}.`,
    ]
      .filter((part) => part !== "")
      .join("\n\n");
  },
  parseAction: (reply, _observation, info) => parseReply(reply, info === undefined ? [] : commandsIn(info)),
  formatAction: (command) => command,
  choices: (_observation, info) => commandsIn(info),
};

function inOneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

/** The feedback without the banner, the prompt, the status line and runs of empty lines. */
export function tidyFeedback(feedback: string): string {
  return feedback
    .replace(/\n>[^\n]*$/, "\n")
    .replace(/^[\s_|\\/$<>]*\$\$[\s_|\\/$<>]*\n/, "")
    .replace(/[ \t]+$/gm, "")
    .replace(/\n{3,}/g, "\n\n")
    .trim();
}

/**
 * The command that a reply means: the admissible one that it names last; else what follows "command:", "action:" or a
 * prompt last; else its only line.
 */
function parseReply(reply: string, admissible: readonly string[]): string | undefined {
  const named = lastNamedCommand(reply, admissible);
  if (named !== undefined) return named;
  const marked = [...reply.matchAll(/(?:(?:command|action)\s*:|^\s*>)\s*([^\n]+)/gim)].at(-1)?.[1];
  const lines = reply.split("\n").filter((line) => line.trim() !== "");
  const command = Array.from(marked ?? (lines.length === 1 ? lines[0] : ""), (character) =>
    COMMAND_CHARACTERS.includes(character) ? character : " ",
  ).join("");
  return command.trim() === "" || command.length > MAX_COMMAND ? undefined : command;
}

function commandsIn(info: Info): readonly string[] {
  const commands = info["admissibleCommands"];
  return Array.isArray(commands) ? (commands as readonly string[]) : [];
}
