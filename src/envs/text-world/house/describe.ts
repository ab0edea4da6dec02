import type { Variable } from "../logic/terms.js";
import type { Exit, Scene } from "./scene.js";

/** "an oak chest" */
function withArticle(name: string): string {
  return `${/^[aeiou]/.test(name) ? "an" : "a"} ${name}`;
}

/** "a cup, a fork and an apple" */
function listed(scene: Scene, things: readonly Variable[]): string {
  const names = things.map((thing) => withArticle(scene.nameOf(thing)));
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`;
}

/** The room, what is in it and the ways out. */
export function describeRoom(scene: Scene): string {
  const name = scene.nameOf(scene.room);
  const lines = [`== ${name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase())} ==`, `You are in the ${name}.`];
  for (const thing of scene.inRoom((type) => type === "c" || type === "s")) {
    lines.push(`There is ${withArticle(scene.nameOf(thing))} here${stateOf(scene, thing)}.`);
  }
  const floor = scene.inRoom((type) => type === "o" || type === "k" || type === "f");
  if (floor.length > 0) lines.push(`On the floor there is ${listed(scene, floor)}.`);
  const exits = scene.exits();
  lines.push(
    exits.length === 0
      ? "There is no way out."
      : `You can see ${exits.length === 1 ? "a way" : "ways"} out to the ${exits.map((exit) => describeExit(scene, exit)).join(", ")}.`,
  );
  return lines.join("\n");
}

function describeExit(scene: Scene, { direction, door }: Exit): string {
  if (door === undefined) return direction;
  return `${direction} (through the ${scene.nameOf(door)}, which is ${scene.lockState(door.name)})`;
}

/** ", which is closed", ", with a cup on it" */
function stateOf(scene: Scene, { name, type }: Variable): string {
  const things = scene.contents(name);
  const content = things.length === 0 ? "nothing" : listed(scene, things);
  if (type === "s") return `, with ${content} on it`;
  const lock = scene.lockState(name);
  return lock === "open" ? `, which is open, with ${content} in it` : `, which is ${lock}`;
}

/** What the player carries. */
export function describeInventory(scene: Scene): string {
  const carried = scene.contents("I");
  return `You are carrying ${carried.length === 0 ? "nothing" : listed(scene, carried)}.`;
}

/** What a closer look at a thing shows. */
export function describeThing(scene: Scene, thing: Variable): string {
  const name = scene.nameOf(thing);
  switch (thing.type) {
    case "d":
      return `The ${name} is ${scene.lockState(thing.name)}.`;
    case "k":
      return `It is the ${name}. There must be a lock that it fits.`;
    case "f":
      return `The ${name} looks good enough to eat.`;
    case "c":
    case "s":
      return `You look at the ${name}${stateOf(scene, thing)}.`;
    default:
      return `There is nothing special about the ${name}.`;
  }
}

/** What has just been opened. */
export function describeContents(scene: Scene, container: Variable): string {
  const things = scene.contents(container.name);
  return things.length === 0 ? "It is empty." : `In it there is ${listed(scene, things)}.`;
}
