import { LlamaGymError } from "../../errors.js";
import type { Info } from "../info.js";
import { withDefaults } from "../options.js";
import { Text } from "../spaces/text.js";
import type { TextForm } from "../text-form.js";
import { COMMAND_CHARSET, commandIn } from "./command-reply.js";
import { drawShop, fulfilled, type Product, type Wish } from "./shop-catalogue.js";
import { TaskEnv, type Turn } from "./task-env.js";

const MAX_COMMAND = 100;
const MAX_OBSERVATION = 4096;
/** Products on a page of results. */
const PAGE = 5;
const SEARCH = "search";

export interface WebShopOptions {
  /** Commands in an episode. */
  readonly turns?: number;
}

type WebShopState = {
  readonly products: readonly Product[];
  readonly wish: Wish;
  /** What was searched for; null before the first search. */
  readonly query: string | null;
  /** The page of the results, from 0. */
  readonly page: number;
  /** The product looked at, and what was chosen on its page. */
  readonly product: string | null;
  readonly colour: string | null;
  readonly size: string | null;
  readonly turns: number;
  /** What the last command had to be told. */
  readonly notice: string;
};

/**
 * Find and buy what a customer wants in a small web shop (after WebShop, Yao et al. 2022): search, look at products,
 * choose colour and size, buy. Actions: "search WORDS" and "click LINK". Observation: the page as text.
 * Reward, on buying: the share of the wish that the purchase fulfils, 0 for another kind of thing.
 */
export class WebShopEnv extends TaskEnv<string, string, WebShopState> {
  override readonly observationSpace = new Text(MAX_OBSERVATION, { charset: `${COMMAND_CHARSET}\n:[]"` });
  override readonly actionSpace = new Text(MAX_COMMAND, { charset: COMMAND_CHARSET });
  override readonly text = webShopText;
  private readonly turns: number;

  constructor(options: WebShopOptions = {}) {
    super();
    const { turns } = withDefaults("WebShop", options, { turns: 15 });
    if (!Number.isInteger(turns) || turns < 1) {
      throw new LlamaGymError("INVALID_ARGUMENT", `WebShop takes at least 1 turn, got ${turns}.`);
    }
    this.turns = turns;
  }

  protected override start(): WebShopState {
    const { products, wish } = drawShop(this.random);
    return { products, wish, query: null, page: 0, product: null, colour: null, size: null, turns: 0, notice: "" };
  }

  protected override observe(state: WebShopState): string {
    const links = linksOn(state).map((link) => `[${link}]`);
    return [describeWish(state.wish), state.notice, ...describePage(state), links.join(" ")]
      .filter((line) => line !== "")
      .join("\n");
  }

  /** `commands`: what can be done on this page; of searches one, for the kind of thing that is wanted. */
  protected override describe(state: WebShopState): Info {
    return { commands: [`${SEARCH} ${state.wish.kind}`, ...linksOn(state).map((link) => `click ${link}`)] };
  }

  protected override advance(before: WebShopState, command: string): Turn<WebShopState> {
    const state = { ...before, turns: before.turns + 1, notice: "" };
    const [, verb, rest = ""] = /^\s*(search|click)\b\s*(.*?)\s*$/i.exec(command) ?? [];
    const link = rest.toLowerCase();
    const product = productOf(state);
    if (verb?.toLowerCase() === "click" && link === "buy now" && product !== undefined) {
      return { state, reward: fulfilled(state.wish, product, state.colour, state.size), terminated: true };
    }
    const next =
      verb?.toLowerCase() === SEARCH ? search(state, link) : verb === undefined ? undefined : click(state, link);
    const told = next ?? { ...state, notice: `"${plain(command)}" does nothing here.` };
    return { state: told, reward: 0, terminated: told.turns >= this.turns };
  }
}

function search(state: WebShopState, query: string): WebShopState {
  return { ...state, query, page: 0, product: null, colour: null, size: null };
}

/** Where a link leads; undefined when the page does not have it. */
function click(state: WebShopState, link: string): WebShopState | undefined {
  if (!linksOn(state).includes(link)) return undefined;
  if (link === "next page") return { ...state, page: state.page + 1 };
  if (link === "previous page") return { ...state, page: state.page - 1 };
  if (link === "back to results") return { ...state, product: null, colour: null, size: null };
  const product = productOf(state);
  if (product === undefined) return { ...state, product: link, colour: null, size: null };
  return product.colours.includes(link) ? { ...state, colour: link } : { ...state, size: link };
}

function linksOn(state: WebShopState): string[] {
  const product = productOf(state);
  if (product !== undefined) return [...product.colours, ...product.sizes, "buy now", "back to results"];
  if (state.query === null) return [];
  const results = resultsOf(state);
  const links = results.slice(state.page * PAGE, (state.page + 1) * PAGE).map(({ id }) => id);
  if (state.page > 0) links.push("previous page");
  if ((state.page + 1) * PAGE < results.length) links.push("next page");
  return links;
}

/** Products whose description has a word of the query, those with most words first. */
function resultsOf({ products, query }: WebShopState): readonly Product[] {
  const words = (query ?? "").split(/[^a-z]+/).filter((word) => word !== "");
  const matches = (product: Product) => words.filter((word) => [product.kind, product.material].includes(word)).length;
  return products
    .map((product) => ({ product, count: matches(product) }))
    .filter(({ count }) => count > 0)
    .sort((a, b) => b.count - a.count)
    .map(({ product }) => product);
}

function productOf({ products, product }: WebShopState): Product | undefined {
  return products.find(({ id }) => id === product);
}

function describeWish({ kind, material, colour, size, budget }: Wish): string {
  return `Buy a ${material} ${kind}, colour ${colour}, size ${size}, for at most $${budget}.`;
}

function describePage(state: WebShopState): string[] {
  const product = productOf(state);
  if (product !== undefined) {
    return [
      `${product.id}: ${product.material} ${product.kind}, $${product.price}`,
      `colours: ${product.colours.join(", ")} (chosen: ${state.colour ?? "none"})`,
      `sizes: ${product.sizes.join(", ")} (chosen: ${state.size ?? "none"})`,
    ];
  }
  if (state.query === null) return ["Search the shop."];
  const results = resultsOf(state);
  if (results.length === 0) return ["Nothing was found."];
  const shown = results.slice(state.page * PAGE, (state.page + 1) * PAGE);
  return shown.map(({ id, material, kind, price }) => `${id}: ${material} ${kind}, $${price}`);
}

function plain(command: string): string {
  return command.trim().slice(0, MAX_COMMAND);
}

const webShopText: TextForm<string, string> = {
  systemPrompt:
    "You shop for a customer on a web site. Write search and words to look for products, or click and a link of the page, such as click p07, click red or click buy now. Choose colour and size before you buy; buying ends the visit. One command each turn.",
  formatObservation: (observation) => observation,
  parseAction: (reply) =>
    commandIn(reply, { verbs: ["search", "click"], charset: COMMAND_CHARSET, maxLength: MAX_COMMAND }),
  formatAction: (command) => command,
  choices: (_observation, info) => (Array.isArray(info["commands"]) ? (info["commands"] as readonly string[]) : []),
};
