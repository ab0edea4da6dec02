import type { RandomStream } from "../../../src/core/random/random-stream.js";

const words = (text: string): readonly string[] => text.trim().split(/,\s*/);

export const THINGS = words(
  `key, lamp, book, cup, coin, apple, rope, knife, map, letter, hammer, bottle, clock, candle, shoe, hat, ring, spoon,
  plate, torch, box, bell, flute, mirror, pear, lemon, onion, pillow, towel, umbrella`,
);
export const COLORS = words("red, blue, green, yellow, black, white, brown, grey, purple, orange, pink");
export const NAMES = words("Anna, Ben, Carla, David, Emma, Felix, Grace, Henry, Ida, Jack, Kate, Leo");
/** Words for actions of made-up games. */
export const ACTIONS = words(
  `left, right, up, down, north, south, east, west, wait, jump, push, pull, stay, hit, stop, go, open, close, take, drop,
  fire, hold, buy, sell, call, raise, fold, yes, no, forward, back, turn, LEFT, RIGHT, UP, DOWN, WAIT, STOP, GO, PUSH,
  PULL, accept, refuse, start, skip, brake, speed up, slow down, turn left, turn right, attack, defend, run, hide`,
);
export const READINGS = words(
  `speed, height, position, angle, velocity, distance, temperature, pressure, level, force, score, time, fuel, charge,
  weight, offset, tilt, depth, price, balance`,
);

const SYLLABLES = words(
  "ba, be, bo, da, de, do, fa, fi, fo, ga, ge, go, ka, ki, ko, la, le, lo, ma, mi, mo, na, ne, no, pa, po, ra, re, ri, so, ta, to",
);

/** A name of no language, so that reading does not depend on known words. */
export function drawName(random: RandomStream): string {
  const name = Array.from({ length: random.integers(2, 4) }, () => random.choice(SYLLABLES)).join("");
  return random.random() < 0.3 ? name.charAt(0).toUpperCase() + name.slice(1) : name;
}

/** Different items in random order, at most as many as there are. */
export function sampleItems<T>(items: readonly T[], count: number, random: RandomStream): T[] {
  return random.sampleIndices(items.length, Math.min(count, items.length)).map((i) => items[i]);
}
