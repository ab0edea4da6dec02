import { LlamaGymError } from "../../core/errors.js";
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

/** Generates unique names for the objects of a house. */
export class NameGenerator {
  private readonly used = new Set<string>();

  constructor(private readonly random: RandomStream) {}

  room(): string {
    return this.pickName(ROOMS, ROOM_ADJECTIVES);
  }

  /** A container; `material` is the word that it shares with its key. */
  container(material?: string): string {
    return this.described(CONTAINERS, material);
  }

  door(material?: string): string {
    return this.described(DOORS, material);
  }

  supporter(): string {
    return this.described(SUPPORTERS);
  }

  object(): string {
    return this.pickName(OBJECTS, COLORS);
  }

  food(): string {
    return this.pickName(FOODS, COLORS);
  }

  /** A key for what is made of the same material. */
  key(material: string): string {
    return this.reserve(`${material} key`);
  }

  /** A word for a lock and its key, used for no other pair. */
  material(): string {
    return this.takeFirstUnused(this.shuffle(MATERIALS), "materials");
  }

  private described(nouns: readonly string[], material?: string): string {
    const adjectives = material === undefined ? MATERIALS.filter((word) => !this.used.has(word)) : [material];
    const described = nouns.flatMap((noun) => adjectives.map((adjective) => `${adjective} ${noun}`));
    return this.takeFirstUnused(this.shuffle(described), "things");
  }

  /** A noun, with an adjective once the nouns are used up. */
  private pickName(nouns: readonly string[], adjectives: readonly string[]): string {
    const plain = this.shuffle(nouns).filter((noun) => !this.used.has(noun));
    const described = adjectives.flatMap((adjective) => nouns.map((noun) => `${adjective} ${noun}`));
    return this.takeFirstUnused(plain.length > 0 ? plain : this.shuffle(described), "names");
  }

  private takeFirstUnused(candidates: readonly string[], what: string): string {
    const name = candidates.find((candidate) => !this.used.has(candidate));
    if (name === undefined) {
      throw new LlamaGymError("INVALID_ARGUMENT", `A house cannot have so many different ${what}. Ask for fewer.`);
    }
    return this.reserve(name);
  }

  private reserve(name: string): string {
    this.used.add(name);
    return name;
  }

  private shuffle(list: readonly string[]): string[] {
    const copy = [...list];
    this.random.shuffle(copy);
    return copy;
  }
}

function splitNames(list: string): string[] {
  return list.split(/,\s+/);
}
