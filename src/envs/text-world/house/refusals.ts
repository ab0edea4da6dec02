import type { Variable } from "../logic/terms.js";
import type { Wish } from "./parser.js";
import type { Scene } from "./scene.js";

type Verb = Exclude<Wish["verb"], "incomplete">;

/** Either why a wish cannot be granted, or the command of the rules that grants it and the things it is about. */
export type Decision =
  | { readonly refusal: string }
  | { readonly verb: Verb; readonly command: string; readonly object?: Variable; readonly other?: Variable };

/** Decides on a wish by what the player sees. */
export function decide(wish: Wish, scene: Scene): Decision {
  if (wish.verb === "incomplete") return { refusal: wish.question };
  if (wish.verb === "look" || wish.verb === "inventory") return { verb: wish.verb, command: wish.verb };
  if (wish.verb === "go") return decideGo(wish.direction, scene);
  const object = find(wish.object, scene);
  if ("refusal" in object) return object;
  if (!("other" in wish)) return decideOne(wish.verb, object.thing, scene);
  const other = find(wish.other, scene);
  if ("refusal" in other) return other;
  return decideTwo(wish.verb, object.thing, other.thing, scene);
}

function decideGo(direction: string, scene: Scene): Decision {
  const exit = scene.exits().find((candidate) => candidate.direction === direction);
  if (exit === undefined) return { refusal: `There is no way ${direction} from here.` };
  const { door } = exit;
  if (door !== undefined && scene.lockState(door.name) !== "open") {
    return { refusal: `The ${scene.nameOf(door)} in the ${direction} is ${scene.lockState(door.name)}.` };
  }
  return { verb: "go", command: `go ${direction}` };
}

type Found = { readonly refusal: string } | { readonly thing: Variable };

function find(words: string, scene: Scene): Found {
  const things = scene.resolve(words);
  if (things.length === 0) return { refusal: `You see no ${words} here.` };
  if (things.length === 1) return { thing: things[0] };
  const names = things.map((thing) => `the ${scene.nameOf(thing)}`);
  return { refusal: `Which do you mean: ${names.slice(0, -1).join(", ")} or ${names[names.length - 1]}?` };
}

function decideOne(verb: Verb, object: Variable, scene: Scene): Decision {
  const name = scene.nameOf(object);
  const granted: Decision = { verb, command: `${verb} ${name}`, object };
  const lock = scene.lockState(object.name);
  switch (verb) {
    case "take":
      return decideTake(object, undefined, scene);
    case "drop":
      return isCarried(object, scene) ? granted : notCarried(name);
    case "eat":
      if (object.type !== "f") return { refusal: `The ${name} is nothing to eat.` };
      return isCarried(object, scene) ? granted : notCarried(name);
    case "open":
      if (lock === undefined) return { refusal: `The ${name} cannot be opened.` };
      if (lock === "open") return { refusal: `The ${name} is open already.` };
      return lock === "locked" ? { refusal: `The ${name} is locked.` } : granted;
    case "close":
      if (lock === undefined) return { refusal: `The ${name} cannot be closed.` };
      return lock === "open" ? granted : { refusal: `The ${name} is closed already.` };
    default:
      return granted;
  }
}

function decideTwo(verb: Verb, object: Variable, other: Variable, scene: Scene): Decision {
  const name = scene.nameOf(object);
  const otherName = scene.nameOf(other);
  switch (verb) {
    case "take":
      return decideTake(object, other, scene);
    case "put":
      // On a container means into it, as into a supporter means on it.
      if (other.type === "c") return decideTwo("insert", object, other, scene);
      if (!isCarried(object, scene)) return notCarried(name);
      if (other.type !== "s") return { refusal: `You cannot put anything on the ${otherName}.` };
      return { verb, command: `put ${name} on ${otherName}`, object, other };
    case "insert":
      if (other.type === "s") return decideTwo("put", object, other, scene);
      if (!isCarried(object, scene)) return notCarried(name);
      if (other.type !== "c") return { refusal: `You cannot put anything into the ${otherName}.` };
      if (scene.lockState(other.name) !== "open") return { refusal: `The ${otherName} is not open.` };
      return { verb, command: `insert ${name} into ${otherName}`, object, other };
    default:
      return decideLock(verb, object, other, scene);
  }
}

function decideLock(verb: Verb, object: Variable, key: Variable, scene: Scene): Decision {
  const name = scene.nameOf(object);
  const lock = scene.lockState(object.name);
  if (lock === undefined) return { refusal: `The ${name} has no lock.` };
  if (!isCarried(key, scene)) return notCarried(scene.nameOf(key));
  if (!scene.fits(key.name, object.name)) return { refusal: `The ${scene.nameOf(key)} does not fit the ${name}.` };
  if (verb === "unlock" && lock !== "locked") return { refusal: `The ${name} is not locked.` };
  if (verb === "lock" && lock === "locked") return { refusal: `The ${name} is locked already.` };
  if (verb === "lock" && lock === "open") return { refusal: `Close the ${name} first.` };
  return { verb, command: `${verb} ${name} with ${scene.nameOf(key)}`, object, other: key };
}

function decideTake(object: Variable, from: Variable | undefined, scene: Scene): Decision {
  const name = scene.nameOf(object);
  if (object.type === "c" || object.type === "s" || object.type === "d") {
    return { refusal: `The ${name} cannot be moved.` };
  }
  if (isCarried(object, scene)) return { refusal: `You have the ${name} already.` };
  const where = scene.whereabouts(object.name);
  const holder = where !== undefined && where.relation !== "at" ? where.place : undefined;
  if (from !== undefined && from.name !== holder?.name) {
    return { refusal: `The ${name} is not there.` };
  }
  const command = holder === undefined ? `take ${name}` : `take ${name} from ${scene.nameOf(holder)}`;
  return { verb: "take", command, object, other: holder };
}

function isCarried(thing: Variable, scene: Scene): boolean {
  return scene.whereabouts(thing.name)?.place.name === "I";
}

function notCarried(name: string): Decision {
  return { refusal: `You are not carrying the ${name}.` };
}
