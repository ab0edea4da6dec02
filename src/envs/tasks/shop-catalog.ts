import type { RandomStream } from "../../core/random/random-stream.js";

const PRODUCT_KINDS = ["mug", "shirt", "lamp", "backpack", "blanket", "notebook", "umbrella", "teapot"] as const;
const MATERIALS: Readonly<Record<(typeof PRODUCT_KINDS)[number], readonly string[]>> = {
  mug: ["ceramic", "glass", "steel"],
  shirt: ["cotton", "linen", "wool"],
  lamp: ["brass", "oak", "paper"],
  backpack: ["canvas", "leather", "nylon"],
  blanket: ["cotton", "fleece", "wool"],
  notebook: ["lined", "plain", "squared"],
  umbrella: ["automatic", "folding", "sturdy"],
  teapot: ["ceramic", "glass", "steel"],
};
const COLORS = ["black", "blue", "green", "red", "white", "yellow"];
const SIZES = ["small", "medium", "large"];
const PRODUCTS_PER_KIND = 6;

/** A product, whose color and size are chosen on its page. */
export type Product = {
  readonly id: string;
  readonly kind: string;
  readonly material: string;
  readonly price: number;
  readonly colors: readonly string[];
  readonly sizes: readonly string[];
};

/** The customer's goal. */
export type ShoppingGoal = {
  readonly kind: string;
  readonly material: string;
  readonly color: string;
  readonly size: string;
  /** Maximum price. */
  readonly budget: number;
};

/** Generates products and a goal that at least one of them meets. */
export function generateShop(random: RandomStream): { products: Product[]; goal: ShoppingGoal } {
  const products = PRODUCT_KINDS.flatMap((kind) =>
    Array.from({ length: PRODUCTS_PER_KIND }, () => ({
      kind,
      material: random.choice(MATERIALS[kind]),
      price: random.integers(8, 60),
      colors: sampleSubset(COLORS, 3, random),
      sizes: sampleSubset(SIZES, 2, random),
    })),
  ).map((product, i) => ({ id: `p${String(i + 1).padStart(2, "0")}`, ...product }));
  const target = random.choice(products);
  const goal = {
    kind: target.kind,
    material: target.material,
    color: random.choice(target.colors),
    size: random.choice(target.sizes),
    budget: target.price + random.integers(0, 5),
  };
  return { products, goal };
}

/** Scores the fraction of the goal (kind, material, color, size, price) that a purchase meets; 0 for another kind. */
export function goalScore(goal: ShoppingGoal, product: Product, color: string | null, size: string | null): number {
  if (product.kind !== goal.kind) return 0;
  const matches = [
    true,
    product.material === goal.material,
    color === goal.color,
    size === goal.size,
    product.price <= goal.budget,
  ];
  return matches.filter(Boolean).length / matches.length;
}

function sampleSubset(values: readonly string[], count: number, random: RandomStream): string[] {
  const chosen = new Set(random.sampleIndices(values.length, count));
  return values.filter((_, i) => chosen.has(i));
}
