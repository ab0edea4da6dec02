import type { Variable } from "../logic/proposition.js";
import type { Direction } from "./house-map.js";
import type { PlayerView } from "./player-view.js";
import { PREPOSITIONS } from "./quest-plan.js";

type ObjectVerb = keyof typeof PREPOSITIONS;
type Verb = ObjectVerb | "look" | "inventory" | "go";

/** A rule's command with its objects, or the reason why there is none. */
export type ResolvedCommand =
  | { readonly refusal: string }
  | { readonly verb: Verb; readonly command: string; readonly object?: Variable; readonly other?: Variable };

const ARTICLES = /\b(?:the|a|an|some|my)\s+/g;
const SHORT_DIRECTIONS: Readonly<Record<string, Direction>> = { n: "north", s: "south", e: "east", w: "west" };

/**
 * Command patterns, most specific first, with their verb, or a question about what is missing.
 * Their groups are the objects.
 */
const COMMAND_FORMS: readonly (readonly [RegExp, Verb | ((object: string) => string)])[] = [
  [/^(?:look|l|look around)$/, "look"],
  [/^(?:inventory|inv|i)$/, "inventory"],
  [/^(?:(?:go|walk|run|move|head)(?: to)? )?(north|south|east|west|n|s|e|w)$/, "go"],
  [/^(?:go|walk|run|move|head)\b/, () => "Go where: north, south, east or west?"],
  [/^(?:take|get|grab|remove|pick up) (.+?) (?:from|out of|off|off of) (.+)$/, "take"],
  [/^(?:take|get|grab|pick up) (.+)$/, "take"],
  [/^pick (.+) up$/, "take"],
  [/^(?:drop|discard|put down|leave) (.+)$/, "drop"],
  [/^put (.+) down$/, "drop"],
  [/^(?:put|place|insert|lay) (.+?) (?:into|inside|in) (.+)$/, "insert"],
  [/^(?:put|place|lay|set) (.+?) (?:onto|on top of|on) (.+)$/, "put"],
  [/^(?:put|place|insert|lay|set) (.+)$/, (object) => `Put the ${object} where?`],
  [/^unlock (.+?) (?:with|using) (.+)$/, "unlock"],
  [/^unlock (.+)$/, (object) => `Unlock the ${object} with what?`],
  [/^lock (.+?) (?:with|using) (.+)$/, "lock"],
  [/^lock (.+)$/, (object) => `Lock the ${object} with what?`],
  [/^open (.+)$/, "open"],
  [/^(?:close|shut) (.+)$/, "close"],
  [/^(?:eat|taste|consume) (.+)$/, "eat"],
  [/^(?:examine|x|inspect|look at|look in|look on|check|read|search) (.+)$/, "examine"],
  [
    /^(take|get|grab|drop|put|place|insert|unlock|lock|open|close|shut|eat|examine|x)$/,
    (verb) => `What do you want to ${verb === "x" ? "examine" : verb}?`,
  ],
];

/** Resolves a command, ignoring case, articles and spaces, against the visible objects. */
export function resolveCommand(command: string, view: PlayerView): ResolvedCommand {
  if (command.trim() === "") return { refusal: "Say what you want to do." };
  const lowerCase = command.toLowerCase().replace(/[.!?"]+/g, " ");
  const words = lowerCase.replace(ARTICLES, "").replace(/\s+/g, " ").trim();
  for (const [pattern, form] of COMMAND_FORMS) {
    const found = pattern.exec(words);
    if (found === null) continue;
    const [, first = "", second] = found;
    return typeof form === "string" ? resolveVerb(form, first, second, view) : { refusal: form(first) };
  }
  return { refusal: "You cannot do that here: it is no command." };
}

function resolveVerb(verb: Verb, first: string, second: string | undefined, view: PlayerView): ResolvedCommand {
  if (verb === "look" || verb === "inventory") return { verb, command: verb };
  if (verb === "go") return resolveGo(SHORT_DIRECTIONS[first[0]], view);
  const object = findObject(first, view);
  if ("refusal" in object) return object;
  const other = second === undefined ? undefined : findObject(second, view);
  if (other !== undefined && "refusal" in other) return other;
  // On a container means into it, as into a supporter means on it.
  const verbByType = { put: { c: "insert" }, insert: { s: "put" } } as Record<string, Record<string, ObjectVerb>>;
  return resolveObjects(verbByType[verb]?.[other?.type ?? ""] ?? verb, object, other, view);
}

function resolveGo(direction: Direction, view: PlayerView): ResolvedCommand {
  const exit = view.exits().find((candidate) => candidate.direction === direction);
  if (exit === undefined) return { refusal: `There is no way ${direction} from here.` };
  const { door } = exit;
  const state = door === undefined ? "open" : view.getLockState(door.name);
  if (door === undefined || state === "open") return { verb: "go", command: `go ${direction}` };
  return { refusal: `The ${view.getName(door)} in the ${direction} is ${state}.` };
}

function findObject(words: string, view: PlayerView): Variable | { readonly refusal: string } {
  const objects = view.findByWords(words);
  if (objects.length === 0) return { refusal: `You see no ${words} here.` };
  if (objects.length === 1) return objects[0];
  const names = objects.map((object) => `the ${view.getName(object)}`);
  return { refusal: `Which do you mean: ${names.slice(0, -1).join(", ")} or ${names[names.length - 1]}?` };
}

function resolveObjects(
  verb: ObjectVerb,
  object: Variable,
  other: Variable | undefined,
  view: PlayerView,
): ResolvedCommand {
  const name = view.getName(object);
  const refusal = findRefusal(verb, object, other, view);
  if (refusal !== undefined) return { refusal };
  const location = view.locate(object.name);
  const holder = location === undefined || location.relation === "at" ? undefined : location.place;
  const second = verb === "take" ? holder : other;
  const end = second === undefined ? "" : ` ${PREPOSITIONS[verb]} ${view.getName(second)}`;
  return { verb, command: `${verb} ${name}${end}`, object, other: second };
}

/** Returns why a command is impossible. */
function findRefusal(
  verb: ObjectVerb,
  object: Variable,
  other: Variable | undefined,
  view: PlayerView,
): string | undefined {
  const name = view.getName(object);
  const otherName = other === undefined ? "" : view.getName(other);
  const state = view.getLockState(object.name);
  const isCarried = (thing: Variable) => view.locate(thing.name)?.place.name === "I";
  const notCarried = isCarried(object) ? undefined : `You are not carrying the ${name}.`;
  switch (verb) {
    case "take":
      if (["c", "s", "d"].includes(object.type)) return `The ${name} cannot be moved.`;
      if (isCarried(object)) return `You have the ${name} already.`;
      return other === undefined || view.listContents(other.name).includes(object)
        ? undefined
        : `The ${name} is not there.`;
    case "drop":
      return notCarried;
    case "eat":
      return object.type === "f" ? notCarried : `The ${name} is nothing to eat.`;
    case "open":
      if (state === undefined) return `The ${name} cannot be opened.`;
      if (state === "open") return `The ${name} is open already.`;
      return state === "locked" ? `The ${name} is locked.` : undefined;
    case "close":
      if (state === undefined) return `The ${name} cannot be closed.`;
      return state === "open" ? undefined : `The ${name} is closed already.`;
    case "put":
      return notCarried ?? (other?.type === "s" ? undefined : `You cannot put anything on the ${otherName}.`);
    case "insert":
      if (notCarried !== undefined) return notCarried;
      if (other?.type !== "c") return `You cannot put anything into the ${otherName}.`;
      return view.getLockState(other.name) === "open" ? undefined : `The ${otherName} is not open.`;
    case "lock":
    case "unlock":
      if (state === undefined || other === undefined) return `The ${name} has no lock.`;
      if (!isCarried(other)) return `You are not carrying the ${otherName}.`;
      if (!view.keyFits(other.name, object.name)) return `The ${otherName} does not fit the ${name}.`;
      if (verb === "unlock") return state === "locked" ? undefined : `The ${name} is not locked.`;
      if (state === "locked") return `The ${name} is locked already.`;
      return state === "open" ? `Close the ${name} first.` : undefined;
    case "examine":
      return undefined;
  }
}
