import type { Variable } from "../logic/proposition.js";
import type { ParsedCommand } from "./parse-command.js";
import type { PlayerView } from "./player-view.js";

type Verb = Exclude<ParsedCommand["verb"], "incomplete">;

/** Either a refusal, or the rule's command and its objects. */
export type ResolvedCommand =
  | { readonly refusal: string }
  | { readonly verb: Verb; readonly command: string; readonly object?: Variable; readonly other?: Variable };

/** Resolves a parsed command against the visible objects. */
export function resolveCommand(command: ParsedCommand, scene: PlayerView): ResolvedCommand {
  if (command.verb === "incomplete") return { refusal: command.question };
  if (command.verb === "look" || command.verb === "inventory") return { verb: command.verb, command: command.verb };
  if (command.verb === "go") return resolveGo(command.direction, scene);
  const object = findObject(command.object, scene);
  if ("refusal" in object) return object;
  if (!("other" in command)) return resolveOneObject(command.verb, object.thing, scene);
  const other = findObject(command.other, scene);
  if ("refusal" in other) return other;
  return resolveTwoObjects(command.verb, object.thing, other.thing, scene);
}

function resolveGo(direction: string, scene: PlayerView): ResolvedCommand {
  const exit = scene.exits().find((candidate) => candidate.direction === direction);
  if (exit === undefined) return { refusal: `There is no way ${direction} from here.` };
  const { door } = exit;
  if (door !== undefined && scene.getLockState(door.name) !== "open") {
    return { refusal: `The ${scene.getName(door)} in the ${direction} is ${scene.getLockState(door.name)}.` };
  }
  return { verb: "go", command: `go ${direction}` };
}

type FoundObject = { readonly refusal: string } | { readonly thing: Variable };

function findObject(words: string, scene: PlayerView): FoundObject {
  const things = scene.findByWords(words);
  if (things.length === 0) return { refusal: `You see no ${words} here.` };
  if (things.length === 1) return { thing: things[0] };
  const names = things.map((thing) => `the ${scene.getName(thing)}`);
  return { refusal: `Which do you mean: ${names.slice(0, -1).join(", ")} or ${names[names.length - 1]}?` };
}

function resolveOneObject(verb: Verb, object: Variable, scene: PlayerView): ResolvedCommand {
  const name = scene.getName(object);
  const accepted: ResolvedCommand = { verb, command: `${verb} ${name}`, object };
  const lock = scene.getLockState(object.name);
  switch (verb) {
    case "take":
      return resolveTake(object, undefined, scene);
    case "drop":
      return isCarried(object, scene) ? accepted : rejectNotCarried(name);
    case "eat":
      if (object.type !== "f") return { refusal: `The ${name} is nothing to eat.` };
      return isCarried(object, scene) ? accepted : rejectNotCarried(name);
    case "open":
      if (lock === undefined) return { refusal: `The ${name} cannot be opened.` };
      if (lock === "open") return { refusal: `The ${name} is open already.` };
      return lock === "locked" ? { refusal: `The ${name} is locked.` } : accepted;
    case "close":
      if (lock === undefined) return { refusal: `The ${name} cannot be closed.` };
      return lock === "open" ? accepted : { refusal: `The ${name} is closed already.` };
    default:
      return accepted;
  }
}

function resolveTwoObjects(verb: Verb, object: Variable, other: Variable, scene: PlayerView): ResolvedCommand {
  const name = scene.getName(object);
  const otherName = scene.getName(other);
  switch (verb) {
    case "take":
      return resolveTake(object, other, scene);
    case "put":
      // On a container means into it, as into a supporter means on it.
      if (other.type === "c") return resolveTwoObjects("insert", object, other, scene);
      if (!isCarried(object, scene)) return rejectNotCarried(name);
      if (other.type !== "s") return { refusal: `You cannot put anything on the ${otherName}.` };
      return { verb, command: `put ${name} on ${otherName}`, object, other };
    case "insert":
      if (other.type === "s") return resolveTwoObjects("put", object, other, scene);
      if (!isCarried(object, scene)) return rejectNotCarried(name);
      if (other.type !== "c") return { refusal: `You cannot put anything into the ${otherName}.` };
      if (scene.getLockState(other.name) !== "open") return { refusal: `The ${otherName} is not open.` };
      return { verb, command: `insert ${name} into ${otherName}`, object, other };
    default:
      return resolveLock(verb, object, other, scene);
  }
}

function resolveLock(verb: Verb, object: Variable, key: Variable, scene: PlayerView): ResolvedCommand {
  const name = scene.getName(object);
  const lock = scene.getLockState(object.name);
  if (lock === undefined) return { refusal: `The ${name} has no lock.` };
  if (!isCarried(key, scene)) return rejectNotCarried(scene.getName(key));
  if (!scene.keyFits(key.name, object.name)) return { refusal: `The ${scene.getName(key)} does not fit the ${name}.` };
  if (verb === "unlock" && lock !== "locked") return { refusal: `The ${name} is not locked.` };
  if (verb === "lock" && lock === "locked") return { refusal: `The ${name} is locked already.` };
  if (verb === "lock" && lock === "open") return { refusal: `Close the ${name} first.` };
  return { verb, command: `${verb} ${name} with ${scene.getName(key)}`, object, other: key };
}

function resolveTake(object: Variable, from: Variable | undefined, scene: PlayerView): ResolvedCommand {
  const name = scene.getName(object);
  if (object.type === "c" || object.type === "s" || object.type === "d") {
    return { refusal: `The ${name} cannot be moved.` };
  }
  if (isCarried(object, scene)) return { refusal: `You have the ${name} already.` };
  const where = scene.locate(object.name);
  const holder = where !== undefined && where.relation !== "at" ? where.place : undefined;
  if (from !== undefined && from.name !== holder?.name) {
    return { refusal: `The ${name} is not there.` };
  }
  const command = holder === undefined ? `take ${name}` : `take ${name} from ${scene.getName(holder)}`;
  return { verb: "take", command, object, other: holder };
}

function isCarried(thing: Variable, scene: PlayerView): boolean {
  return scene.locate(thing.name)?.place.name === "I";
}

function rejectNotCarried(name: string): ResolvedCommand {
  return { refusal: `You are not carrying the ${name}.` };
}
