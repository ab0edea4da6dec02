import { invalidArgument } from "../../core/errors.js";
import type { RandomStream } from "../../core/random/random-stream.js";

const ROOMS =
  splitNames(`attic, balcony, basement, bathroom, bedroom, boiler room, cellar, chapel, conservatory, corridor, courtyard,
  dining room, drawing room, dressing room, gallery, garage, garden, greenhouse, hall, kitchen, larder,
  laundry, library, lobby, music room, nursery, observatory, office, pantry, parlour, playroom, porch,
  scullery, spare room, stable, storeroom, studio, study, sunroom, tower, utility room, veranda, vestibule,
  workshop`);
const ROOM_ADJECTIVES = splitNames("upper, lower, old, new, east, west, small, great, hidden, quiet");
const MATERIALS =
  splitNames(`amber, ash, bamboo, beech, birch, bone, brass, bronze, cedar, chrome, copper, coral, cork, crystal, ebony,
  enamel, flint, glass, granite, iron, ivory, jade, larch, lead, linen, maple, marble, nickel, oak, onyx,
  pearl, pewter, pine, quartz, rosewood, rusty, sandstone, silver, slate, steel, teak, tin, velvet, walnut,
  wicker, willow, zinc`);
const COLORS =
  splitNames(`black, blue, brown, cream, crimson, green, grey, orange, pink, purple, red, scarlet, teal, violet, white,
  yellow`);
const CONTAINERS = splitNames(
  "basket, box, cabinet, case, chest, coffer, crate, cupboard, drawer, hamper, locker, toolbox, trunk, wardrobe",
);
const SUPPORTERS =
  splitNames(`armchair, bed, bench, bookcase, counter, desk, dresser, mantelpiece, mat, pedestal, rack, shelf, sideboard,
  sofa, stand, stool, table, tray, windowsill, workbench`);
const DOORS = splitNames("door, gate, hatch, portal");
const OBJECTS =
  splitNames(`anchor, ball, bell, book, bottle, bowl, broom, brush, bucket, button, candle, card, clock, coin, comb, cup, doll, drum, fan, feather, flute, fork, globe, hammer, hat, helmet, kite, ladle, lamp, lantern, letter,
  lens, map, mirror, mug, needle, notebook, pen, pencil, photograph, pillow, pin, pipe, plate, rope, ruler,
  saw, scarf, shoe, shovel, spoon, stamp, string, teapot, thimble, torch, towel, umbrella, vase,
  violin, whistle, wrench`);
const FOODS =
  splitNames(`apple, apricot, bagel, banana, biscuit, bun, carrot, cherry, cucumber, fig, grape, lemon, loaf, melon,
  muffin, mushroom, olive, onion, orange, pancake, peach, pear, pickle, plum, potato, radish, sandwich,
  tomato, turnip, walnut`);

/** Nouns with adjectives to use once the nouns are used up. */
const NAMES = { r: [ROOMS, ROOM_ADJECTIVES], o: [OBJECTS, COLORS], f: [FOODS, COLORS] } as const;
/** Nouns that follow a material. */
const NOUNS = { c: CONTAINERS, s: SUPPORTERS, d: DOORS, k: ["key"] } as const;

/** Generates unique names for the objects of a house. */
export class NameGenerator {
  private readonly used = new Set<string>();

  constructor(private readonly random: RandomStream) {}

  /**
   * Draws a name for an object of a type; `material` is the word that a lock shares with its key.
   */
  draw(type: keyof typeof NAMES | keyof typeof NOUNS, material?: string): string {
    if (type in NAMES) return this.drawNoun(...NAMES[type as keyof typeof NAMES]);
    const materials = material === undefined ? MATERIALS.filter((word) => !this.used.has(word)) : [material];
    const nouns = NOUNS[type as keyof typeof NOUNS];
    return this.takeFirstUnused(type === "k" ? [`${material} key`] : this.shuffle(combine(nouns, materials)));
  }

  /** Draws a word for a lock and its key, used for no other pair. */
  drawMaterial(): string {
    return this.takeFirstUnused(this.shuffle(MATERIALS));
  }

  private drawNoun(nouns: readonly string[], adjectives: readonly string[]): string {
    const plain = this.shuffle(nouns).filter((noun) => !this.used.has(noun));
    if (plain.length > 0) return this.takeFirstUnused(plain);
    return this.takeFirstUnused(this.shuffle(adjectives.flatMap((adjective) => combine(nouns, [adjective]))));
  }

  private takeFirstUnused(candidates: readonly string[]): string {
    const name = candidates.find((candidate) => !this.used.has(candidate));
    if (name === undefined)
      throw invalidArgument("There are not enough names for the house. Decrease `rooms` or `objects`.");
    this.used.add(name);
    return name;
  }

  private shuffle(list: readonly string[]): string[] {
    const copy = [...list];
    this.random.shuffle(copy);
    return copy;
  }
}

function combine(nouns: readonly string[], adjectives: readonly string[]): string[] {
  return nouns.flatMap((noun) => adjectives.map((adjective) => `${adjective} ${noun}`));
}

function splitNames(list: string): string[] {
  return list.split(/,\s+/);
}
