import type { RandomStream } from "../../core/random/random-stream.js";
import type { Info } from "../info.js";
import { readCounts } from "../env-options.js";
import { Text } from "../spaces/text.js";
import type { TextInterface } from "../text-interface.js";
import { COMMAND_CHARSET, parseCommand, TaskEnv, type TaskStep } from "./task-env.js";
import type { Registration } from "../registry/env-registry.js";

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
function generateShop(random: RandomStream): { products: Product[]; goal: ShoppingGoal } {
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

/**
 * Scores the fraction of the goal (kind, material, color, size, price) that a purchase meets; 0 for
 * another kind.
 */
function goalScore(goal: ShoppingGoal, product: Product, color: string | null, size: string | null): number {
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

const MAX_COMMAND = 100;
const MAX_OBSERVATION = 4096;
/** Products per page of results. */
const PAGE_SIZE = 5;
const SEARCH_VERB = "search";

/** Options of `WebShopEnv`. */
export interface WebShopOptions {
  /** Commands per episode. */
  readonly turns?: number;
}

type WebShopState = {
  readonly products: readonly Product[];
  readonly goal: ShoppingGoal;
  /** Search query; null before the first search. */
  readonly query: string | null;
  /** Page of the results, from 0. */
  readonly page: number;
  /** Current product and the options chosen on its page. */
  readonly product: string | null;
  readonly color: string | null;
  readonly size: string | null;
  readonly turns: number;
  /** Message about the last command. */
  readonly notice: string;
};

/**
 * Find and buy a product for a customer in a small web shop (after WebShop, Yao et al. 2022):
 * search, view products, choose color and size, buy. Actions: "search WORDS" and "click LINK".
 * Observation: the page as text. Reward for buying: the fraction of the goal that the purchase
 * meets, 0 for another kind of product.
 */
export class WebShopEnv extends TaskEnv<string, string, WebShopState> {
  override readonly observationSpace = new Text(MAX_OBSERVATION, { charset: `${COMMAND_CHARSET}\n:[]"` });
  override readonly actionSpace = new Text(MAX_COMMAND, { charset: COMMAND_CHARSET });
  override readonly text = webShopText;
  private readonly turns: number;

  constructor(options: WebShopOptions = {}) {
    super();
    const { turns } = readCounts("WebShop", options, { turns: [15, 1, 1_000_000] });
    this.turns = turns;
  }

  protected override start(): WebShopState {
    const { products, goal } = generateShop(this.random);
    return { products, goal, query: null, page: 0, product: null, color: null, size: null, turns: 0, notice: "" };
  }

  protected override observe(state: WebShopState): string {
    const links = listLinks(state).map((link) => `[${link}]`);
    return [describeGoal(state.goal), state.notice, ...describePage(state), links.join(" ")]
      .filter((line) => line !== "")
      .join("\n");
  }

  /** `commands`: the links of the page, and one search, for the kind of product in the goal. */
  protected override describe(state: WebShopState): Info {
    return { commands: [`${SEARCH_VERB} ${state.goal.kind}`, ...listLinks(state).map((link) => `click ${link}`)] };
  }

  protected override advance(before: WebShopState, command: string): TaskStep<WebShopState> {
    const state = { ...before, turns: before.turns + 1, notice: "" };
    const [, verb, rest = ""] = /^\s*(search|click)\b\s*(.*?)\s*$/i.exec(command) ?? [];
    const link = rest.toLowerCase();
    const product = findProduct(state);
    if (verb?.toLowerCase() === "click" && link === "buy now" && product !== undefined) {
      const score = goalScore(state.goal, product, state.color, state.size);
      return { state, reward: score, terminated: true, isSuccess: score === 1 };
    }
    const next =
      verb?.toLowerCase() === SEARCH_VERB ? search(state, link) : verb === undefined ? undefined : click(state, link);
    const nextState = next ?? { ...state, notice: `"${command.trim().slice(0, MAX_COMMAND)}" does nothing here.` };
    return { state: nextState, reward: 0, terminated: nextState.turns >= this.turns, isSuccess: false };
  }
}

function search(state: WebShopState, query: string): WebShopState {
  return { ...state, query, page: 0, product: null, color: null, size: null };
}

/** Follows a link; undefined when the page does not have it. */
function click(state: WebShopState, link: string): WebShopState | undefined {
  if (!listLinks(state).includes(link)) return undefined;
  if (link === "next page") return { ...state, page: state.page + 1 };
  if (link === "previous page") return { ...state, page: state.page - 1 };
  if (link === "back to results") return { ...state, product: null, color: null, size: null };
  const product = findProduct(state);
  if (product === undefined) return { ...state, product: link, color: null, size: null };
  return product.colors.includes(link) ? { ...state, color: link } : { ...state, size: link };
}

function listLinks(state: WebShopState): string[] {
  const product = findProduct(state);
  if (product !== undefined) return [...product.colors, ...product.sizes, "buy now", "back to results"];
  if (state.query === null) return [];
  const results = findResults(state);
  const links = results.slice(state.page * PAGE_SIZE, (state.page + 1) * PAGE_SIZE).map(({ id }) => id);
  if (state.page > 0) links.push("previous page");
  if ((state.page + 1) * PAGE_SIZE < results.length) links.push("next page");
  return links;
}

/** Finds products that match a word of the query, those with the most matches first. */
function findResults({ products, query }: WebShopState): readonly Product[] {
  const words = (query ?? "").split(/[^a-z]+/).filter((word) => word !== "");
  const countMatches = (product: Product) =>
    words.filter((word) => [product.kind, product.material].includes(word)).length;
  return products
    .map((product) => ({ product, count: countMatches(product) }))
    .filter(({ count }) => count > 0)
    .sort((a, b) => b.count - a.count)
    .map(({ product }) => product);
}

function findProduct({ products, product }: WebShopState): Product | undefined {
  return products.find(({ id }) => id === product);
}

function describeGoal({ kind, material, color, size, budget }: ShoppingGoal): string {
  return `Buy a ${material} ${kind}, colour ${color}, size ${size}, for at most $${budget}.`;
}

function describePage(state: WebShopState): string[] {
  const product = findProduct(state);
  if (product !== undefined) {
    return [
      `${product.id}: ${product.material} ${product.kind}, $${product.price}`,
      `colours: ${product.colors.join(", ")} (chosen: ${state.color ?? "none"})`,
      `sizes: ${product.sizes.join(", ")} (chosen: ${state.size ?? "none"})`,
    ];
  }
  if (state.query === null) return ["Search the shop."];
  const results = findResults(state);
  if (results.length === 0) return ["Nothing was found."];
  const pageResults = results.slice(state.page * PAGE_SIZE, (state.page + 1) * PAGE_SIZE);
  return pageResults.map(({ id, material, kind, price }) => `${id}: ${material} ${kind}, $${price}`);
}

const webShopText: TextInterface<string, string> = {
  systemPrompt:
    "You shop for a customer on a web site. Write search and words to look for products, or click and a link of the page, such as click p07, click red or click buy now. Choose colour and size before you buy; buying ends the visit. One command each turn.",
  formatObservation: (observation) => observation,
  parseAction: (completion) =>
    parseCommand(completion, { verbs: ["search", "click"], charset: COMMAND_CHARSET, maxLength: MAX_COMMAND }),
  formatAction: (command) => command,
  choices: (_observation, info) => (Array.isArray(info["commands"]) ? (info["commands"] as readonly string[]) : []),
};

export const webShopEnvs: readonly Registration[] = [
  {
    id: "WebShop-v0",
    entryPoint: (options) => new WebShopEnv(options),
    summary: "find and buy a product",
    knownReturns: { random: 0.31, best: 1, basis: "page" },
  },
];
