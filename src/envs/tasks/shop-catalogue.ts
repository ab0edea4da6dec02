import type { RandomStream } from "../../tensor/random.js";

const KINDS = ["mug", "shirt", "lamp", "backpack", "blanket", "notebook", "umbrella", "teapot"] as const;
const MATERIALS: Readonly<Record<(typeof KINDS)[number], readonly string[]>> = {
  mug: ["ceramic", "glass", "steel"],
  shirt: ["cotton", "linen", "wool"],
  lamp: ["brass", "oak", "paper"],
  backpack: ["canvas", "leather", "nylon"],
  blanket: ["cotton", "fleece", "wool"],
  notebook: ["lined", "plain", "squared"],
  umbrella: ["automatic", "folding", "sturdy"],
  teapot: ["ceramic", "glass", "steel"],
};
const COLOURS = ["black", "blue", "green", "red", "white", "yellow"];
const SIZES = ["small", "medium", "large"];
const PRODUCTS_EACH = 6;

/** Something that the shop sells; colour and size are chosen on its page. */
export type Product = {
  readonly id: string;
  readonly kind: string;
  readonly material: string;
  readonly price: number;
  readonly colours: readonly string[];
  readonly sizes: readonly string[];
};

/** What the customer wants. */
export type Wish = {
  readonly kind: string;
  readonly material: string;
  readonly colour: string;
  readonly size: string;
  /** The most that may be paid. */
  readonly budget: number;
};

/** A shop's products, and a wish that one of them at least fulfils. */
export function drawShop(random: RandomStream): { products: Product[]; wish: Wish } {
  const products = KINDS.flatMap((kind) =>
    Array.from({ length: PRODUCTS_EACH }, () => ({
      kind,
      material: random.choice(MATERIALS[kind]),
      price: random.integers(8, 60),
      colours: some(COLOURS, 3, random),
      sizes: some(SIZES, 2, random),
    })),
  ).map((product, i) => ({ id: `p${String(i + 1).padStart(2, "0")}`, ...product }));
  const wanted = random.choice(products);
  const wish = {
    kind: wanted.kind,
    material: wanted.material,
    colour: random.choice(wanted.colours),
    size: random.choice(wanted.sizes),
    budget: wanted.price + random.integers(0, 5),
  };
  return { products, wish };
}

/** The share of the wish (kind, material, colour, size, price) that a purchase fulfils; 0 for another kind of thing. */
export function fulfilled(wish: Wish, product: Product, colour: string | null, size: string | null): number {
  if (product.kind !== wish.kind) return 0;
  const matches = [
    true,
    product.material === wish.material,
    colour === wish.colour,
    size === wish.size,
    product.price <= wish.budget,
  ];
  return matches.filter(Boolean).length / matches.length;
}

function some(values: readonly string[], count: number, random: RandomStream): string[] {
  const chosen = new Set(random.sampleIndices(values.length, count));
  return values.filter((_, i) => chosen.has(i));
}
