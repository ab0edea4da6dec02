import type { Direction } from "./house-map.js";

/** A parsed command, with objects as words. */
export type ParsedCommand =
  | { readonly verb: "look" }
  | { readonly verb: "inventory" }
  | { readonly verb: "go"; readonly direction: Direction }
  | { readonly verb: "examine" | "take" | "drop" | "open" | "close" | "eat"; readonly object: string }
  | {
      readonly verb: "take" | "put" | "insert" | "unlock" | "lock";
      readonly object: string;
      /** Where from or into, or what with. */
      readonly other: string;
    }
  /** A known verb with a missing object. */
  | { readonly verb: "incomplete"; readonly question: string };

const ARTICLES = /\b(?:the|a|an|some|my)\s+/g;
const SHORT_DIRECTIONS: Readonly<Record<string, Direction>> = { n: "north", s: "south", e: "east", w: "west" };

/** Command patterns, most specific first, with a parser of their groups. */
const COMMAND_FORMS: readonly (readonly [RegExp, (first: string, second: string) => ParsedCommand])[] = [
  [/^(?:look|l|look around)$/, () => ({ verb: "look" })],
  [/^(?:inventory|inv|i)$/, () => ({ verb: "inventory" })],
  [
    /^(?:(?:go|walk|run|move|head)(?: to)? )?(north|south|east|west|n|s|e|w)$/,
    (word) => ({ verb: "go", direction: SHORT_DIRECTIONS[word[0]] }),
  ],
  [/^(?:go|walk|run|move|head)\b/, () => ({ verb: "incomplete", question: "Go where: north, south, east or west?" })],
  [
    /^(?:take|get|grab|remove|pick up) (.+?) (?:from|out of|off|off of) (.+)$/,
    (object, other) => ({ verb: "take", object, other }),
  ],
  [/^(?:take|get|grab|pick up) (.+)$/, (object) => ({ verb: "take", object })],
  [/^pick (.+) up$/, (object) => ({ verb: "take", object })],
  [/^(?:drop|discard|put down|leave) (.+)$/, (object) => ({ verb: "drop", object })],
  [/^put (.+) down$/, (object) => ({ verb: "drop", object })],
  [/^(?:put|place|insert|lay) (.+?) (?:into|inside|in) (.+)$/, (object, other) => ({ verb: "insert", object, other })],
  [/^(?:put|place|lay|set) (.+?) (?:onto|on top of|on) (.+)$/, (object, other) => ({ verb: "put", object, other })],
  [/^(?:put|place|insert|lay|set) (.+)$/, (object) => ({ verb: "incomplete", question: `Put the ${object} where?` })],
  [/^unlock (.+?) (?:with|using) (.+)$/, (object, other) => ({ verb: "unlock", object, other })],
  [/^unlock (.+)$/, (object) => ({ verb: "incomplete", question: `Unlock the ${object} with what?` })],
  [/^lock (.+?) (?:with|using) (.+)$/, (object, other) => ({ verb: "lock", object, other })],
  [/^lock (.+)$/, (object) => ({ verb: "incomplete", question: `Lock the ${object} with what?` })],
  [/^open (.+)$/, (object) => ({ verb: "open", object })],
  [/^(?:close|shut) (.+)$/, (object) => ({ verb: "close", object })],
  [/^(?:eat|taste|consume) (.+)$/, (object) => ({ verb: "eat", object })],
  [/^(?:examine|x|inspect|look at|look in|look on|check|read|search) (.+)$/, (object) => ({ verb: "examine", object })],
  [
    /^(take|get|grab|drop|put|place|insert|unlock|lock|open|close|shut|eat|examine|x)$/,
    (verb) => ({ verb: "incomplete", question: `What do you want to ${verb === "x" ? "examine" : verb}?` }),
  ],
];

/** Parses a command, ignoring case, articles and spaces; undefined for an unknown verb. */
export function parseCommand(command: string): ParsedCommand | undefined {
  const words = command
    .toLowerCase()
    .replace(/[.!?"]+/g, " ")
    .replace(ARTICLES, "")
    .replace(/\s+/g, " ")
    .trim();
  for (const [pattern, createCommand] of COMMAND_FORMS) {
    const found = pattern.exec(words);
    if (found !== null) return createCommand(found[1] ?? "", found[2] ?? "");
  }
  return undefined;
}
