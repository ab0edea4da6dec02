import type { Variable } from "../logic/proposition.js";
import type { Exit, PlayerView } from "./player-view.js";

/** "an oak chest" */
function addArticle(name: string): string {
  return `${/^[aeiou]/.test(name) ? "an" : "a"} ${name}`;
}

/** "a cup, a fork and an apple" */
function listNames(scene: PlayerView, things: readonly Variable[]): string {
  const names = things.map((thing) => addArticle(scene.getName(thing)));
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`;
}

/** Describes a room, its contents and its exits. */
export function describeRoom(scene: PlayerView): string {
  const name = scene.getName(scene.room);
  const lines = [`== ${name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase())} ==`, `You are in the ${name}.`];
  for (const thing of scene.listInRoom((type) => type === "c" || type === "s"))
    lines.push(`There is ${addArticle(scene.getName(thing))} here${describeState(scene, thing)}.`);
  const floor = scene.listInRoom((type) => type === "o" || type === "k" || type === "f");
  if (floor.length > 0) lines.push(`On the floor there is ${listNames(scene, floor)}.`);
  const exits = scene.exits();
  lines.push(
    exits.length === 0
      ? "There is no way out."
      : `You can see ${exits.length === 1 ? "a way" : "ways"} out to the ${exits.map((exit) => describeExit(scene, exit)).join(", ")}.`,
  );
  return lines.join("\n");
}

function describeExit(scene: PlayerView, { direction, door }: Exit): string {
  if (door === undefined) return direction;
  return `${direction} (through the ${scene.getName(door)}, which is ${scene.getLockState(door.name)})`;
}

/** ", which is closed", ", with a cup on it" */
function describeState(scene: PlayerView, { name, type }: Variable): string {
  const things = scene.listContents(name);
  const content = things.length === 0 ? "nothing" : listNames(scene, things);
  if (type === "s") return `, with ${content} on it`;
  const lock = scene.getLockState(name);
  return lock === "open" ? `, which is open, with ${content} in it` : `, which is ${lock}`;
}

export function describeInventory(scene: PlayerView): string {
  const carried = scene.listContents("I");
  return `You are carrying ${carried.length === 0 ? "nothing" : listNames(scene, carried)}.`;
}

export function describeObject(scene: PlayerView, object: Variable): string {
  const name = scene.getName(object);
  switch (object.type) {
    case "d":
      return `The ${name} is ${scene.getLockState(object.name)}.`;
    case "k":
      return `It is the ${name}. There must be a lock that it fits.`;
    case "f":
      return `The ${name} looks good enough to eat.`;
    case "c":
    case "s":
      return `You look at the ${name}${describeState(scene, object)}.`;
    default:
      return `There is nothing special about the ${name}.`;
  }
}

/** Describes an object that was just opened. */
export function describeContents(scene: PlayerView, container: Variable): string {
  const things = scene.listContents(container.name);
  return things.length === 0 ? "It is empty." : `In it there is ${listNames(scene, things)}.`;
}
