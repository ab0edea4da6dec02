import { invalidArgument } from "../../core/errors.js";
import { readCounts } from "../env-options.js";
import type { JsonValue } from "../../core/json.js";
import { Space, type SampleOptions } from "../spaces/index.js";
import { findLastNamed } from "../text-parsing.js";
import type { GameText } from "./game.js";
import { RulesGame, type MoveResult, type RulesGameOptions } from "./rules-game.js";

/** Options of `SimpleNegotiation`. */
export interface SimpleNegotiationOptions extends RulesGameOptions {
  /**
   * "strict" (default): a message is one action, an offer is open for the next message alone, and
   * only the other player accepts it. "text-arena": a message may accept and offer at once, an
   * offer stays open until another one or a trade, its author may accept it, a message without
   * either is a pass, and there is one message more.
   */
  readonly rules?: "strict" | "text-arena";
  /** Messages of both players together. Default 10. */
  readonly turns?: number;
}

const RESOURCES = ["Wheat", "Wood", "Sheep", "Brick", "Ore"] as const;
const BASE_VALUES = [5, 10, 15, 25, 40];
const MIN_VALUE = 5;
const MAX_VALUE = 40;
/** Amounts given and received in the offers that are listed; completions may name any others. */
const LISTED_TRADES = [
  [1, 1],
  [2, 1],
  [1, 2],
];
const LISTED_OFFERS = RESOURCES.flatMap((giver, given) =>
  RESOURCES.filter((taken) => taken !== giver).flatMap((taken) =>
    LISTED_TRADES.map(([gives, takes]) => ({ given, gives, text: `offer ${gives} ${giver} -> ${takes} ${taken}` })),
  ),
);
const MESSAGES = ["accept", "deny", ...LISTED_OFFERS.map(({ text }) => text)];
const MAX_MESSAGE = 1000;

/** Amounts in the order of the resources. */
type Amounts = readonly number[];

type Offer = { readonly author: number; readonly gives: Amounts; readonly takes: Amounts };

/** Stocks, first stocks and values of both seats, the open offer, and what happened last. */
type NegotiationPosition = {
  readonly stocks: readonly Amounts[];
  readonly firstStocks: readonly Amounts[];
  readonly values: readonly Amounts[];
  readonly offer: Offer | null;
  readonly counts: Amounts;
  readonly seat: number;
  readonly isOver: boolean;
  readonly event: string;
};

/** What a message says; an offer that cannot be read is null. */
interface Message {
  readonly accepts: boolean;
  readonly denies: boolean;
  readonly trade: Pick<Offer, "gives" | "takes"> | null | undefined;
}

/** Printable messages; samples are answers and offers as the rules read them. */
class MessageSpace extends Space<string> {
  override sample(options?: SampleOptions): string {
    this.rejectMask(options);
    return this.random.choice(MESSAGES);
  }

  override contains(value: unknown): value is string {
    return typeof value === "string" && value.length <= MAX_MESSAGE && /^[ -~\n]+$/.test(value);
  }

  override encode(value: string): JsonValue {
    return value;
  }

  override decode(json: JsonValue): string {
    return this.checkMember(json);
  }

  override toString(): string {
    return `Messages(${MAX_MESSAGE})`;
  }
}

/**
 * Negotiation: both players hold five resources and value them differently; they offer trades in
 * turn, and the larger gain by the player's own values wins. Actions are texts: `accept`, `deny`,
 * `offer 2 Wheat -> 1 Ore`. Win 1, loss -1, draw 0.
 */
export class SimpleNegotiation extends RulesGame<NegotiationPosition, string> {
  override readonly actionSpace = new MessageSpace();
  override get isPerfectInformation(): boolean {
    return false;
  }
  override readonly text: GameText<string, string>;
  private readonly isTextArena: boolean;
  private readonly turns: number;

  constructor({ rules = "strict", turns, ...options }: SimpleNegotiationOptions = {}) {
    super(options, ["rules", "turns"]);
    if (rules !== "strict" && rules !== "text-arena")
      throw invalidArgument(
        `SimpleNegotiation: option rules must be "strict" or "text-arena", got ${JSON.stringify(rules)}.`,
      );
    this.isTextArena = rules === "text-arena";
    this.turns = readCounts("SimpleNegotiation", { turns }, { turns: [10, 2, 1000] }).turns;
    const systemPrompt = `Trade resources so that your stock gains more, by your values, than the other player's by theirs. Both send ${this.turns} messages in all. Answer accept, deny, or an offer such as: offer 2 Wheat, 1 Wood -> 1 Ore`;
    this.text = {
      systemPrompt,
      systemPromptOf: () => systemPrompt,
      // Observations tell all that matters for the rest of the game.
      historyTurns: 0,
      formatObservation: (observation) => observation,
      parseAction: (completion) => this.parseAction(completion),
      formatAction: (action) => action,
      choices: (_observation, info) => (info.legalActions ?? []) as readonly string[],
    };
  }

  protected override start(): NegotiationPosition {
    const deal = () => RESOURCES.map(() => this.random.randInt(5, 25));
    const price = () =>
      BASE_VALUES.map((value) => {
        const variation = Math.floor(0.2 * value);
        return this.random.randInt(Math.max(value - variation, MIN_VALUE), Math.min(value + variation, MAX_VALUE));
      });
    const stocks = [deal(), deal()];
    const values = [price(), price()];
    return { stocks, firstStocks: stocks, values, offer: null, counts: [0, 0], seat: 0, isOver: false, event: "" };
  }

  override getSeat({ isOver, seat }: NegotiationPosition): number | undefined {
    return isOver ? undefined : seat;
  }

  override listActions({ stocks, offer, seat }: NegotiationPosition): string[] {
    const canAccept = offer !== null && offer.author !== seat && covers(stocks[seat], offer.takes);
    const offers = LISTED_OFFERS.filter(({ given, gives }) => stocks[seat][given] >= gives);
    return [...(canAccept ? ["accept"] : []), "deny", ...offers.map(({ text }) => text)];
  }

  override next(position: NegotiationPosition, action: string): NegotiationPosition {
    return this.tryMove(position, action).position;
  }

  protected override tryMove(
    position: NegotiationPosition,
    action: string | undefined,
  ): MoveResult<NegotiationPosition> {
    if (action === undefined) return { position, illegalParts: 1 };
    const message = this.readMessage(action);
    const result = this.isTextArena ? this.moveLoosely(position, message) : this.moveStrictly(position, message);
    // TextArena looks at the number of messages before it counts this one, also after illegal ones.
    const { counts } = this.isTextArena ? position : result.position;
    return { ...result, position: { ...result.position, isOver: counts[0] + counts[1] >= this.turns } };
  }

  override getReturns(position: NegotiationPosition): readonly number[] {
    if (this.getSeat(position) !== undefined) return [0, 0];
    const sign = Math.sign(gain(position, 0) - gain(position, 1));
    // A draw is 0, not -0.
    return sign === 0 ? [0, 0] : [sign, -sign];
  }

  override observe(position: NegotiationPosition, seat: number): string {
    const { stocks, values, offer, counts, event } = position;
    const stock = stocks[seat].map((count, i) => `${count} ${RESOURCES[i]} at ${values[seat][i]}`).join(", ");
    const open =
      offer === null
        ? ""
        : offer.author === seat
          ? ` Your offer: ${formatTrade(offer)}.`
          : ` You are offered ${formatAmounts(offer.gives)} for ${formatAmounts(offer.takes)}.`;
    return `Message ${counts[0] + counts[1] + 1} of ${this.turns}. You have ${stock}. Your gain: ${gain(position, seat)}.${event}${open}`;
  }

  /** Returns what a seat gains by an action if it leads to a trade, by the seat's own values. */
  valueAction(action: string, seat: number): number {
    const { offer, values } = this.currentPosition;
    const { accepts, trade } = this.readMessage(action);
    const [gives, takes] = accepts ? [offer?.takes, offer?.gives] : [trade?.gives, trade?.takes];
    return (takes ?? []).reduce((sum, count, i) => sum + (count - gives![i]) * values[seat][i], 0);
  }

  protected override draw(position: NegotiationPosition): string {
    const { stocks, offer } = position;
    const lines = stocks.map((stock, seat) => `seat ${seat}: ${formatAmounts(stock)}; gain ${gain(position, seat)}`);
    const open = offer === null ? "no offer" : `seat ${offer.author} offers ${formatTrade(offer)}`;
    return [...lines, open].join("\n");
  }

  /** One action in a message; an offer lasts until the answer to it. */
  private moveStrictly(
    position: NegotiationPosition,
    { accepts, denies, trade }: Message,
  ): MoveResult<NegotiationPosition> {
    const { stocks, offer, seat } = position;
    const refused = { position, illegalParts: 1 };
    if ([accepts, denies, trade !== undefined].filter(Boolean).length !== 1 || trade === null) return refused;
    if (accepts) {
      if (offer === null || offer.author === seat || !covers(stocks[seat], offer.takes)) return refused;
      return { position: pass(exchange(position, offer), " The trade was made."), illegalParts: 0 };
    }
    // Who answers with another offer refuses the open one.
    const event = offer === null ? "" : ` Your offer of ${formatTrade(offer)} was refused.`;
    if (trade === undefined) return { position: pass({ ...position, offer: null }, event), illegalParts: 0 };
    if (!covers(stocks[seat], trade.gives)) return refused;
    return { position: pass({ ...position, offer: { author: seat, ...trade } }, event), illegalParts: 0 };
  }

  /** TextArena's order: the open offer first, then a new one, each of which may be refused. */
  private moveLoosely(start: NegotiationPosition, { accepts, trade }: Message): MoveResult<NegotiationPosition> {
    const { seat, offer } = start;
    let position = start;
    let illegalParts = 0;
    if (accepts && offer !== null) {
      if (covers(start.stocks[seat], offer.takes)) position = exchange(start, offer);
      else illegalParts++;
    }
    if (trade !== undefined) {
      if (trade !== null && covers(position.stocks[seat], trade.gives))
        position = { ...position, offer: { author: seat, ...trade } };
      else illegalParts++;
    }
    return { position: illegalParts === 0 ? pass(position, "") : position, illegalParts };
  }

  /** Reads an action by the words of the rules; undefined for none. */
  private parseAction(completion: string): string | undefined {
    if (this.isTextArena) return completion.replaceAll(/[^ -~\n]/g, " ").slice(0, MAX_MESSAGE) || " ";
    const { accepts, denies, trade } = this.readMessage(completion);
    if (trade === null) return undefined;
    if (trade !== undefined) return accepts ? undefined : `offer ${formatTrade(trade)}`;
    // Who writes both, "deny, not accept", means the last one.
    if (!accepts && !denies) return undefined;
    return ["accept", "deny"][findLastNamed(completion, ["accept", "deny"])!];
  }

  private readMessage(message: string): Message {
    const text = this.isTextArena && !/[[\]]/.test(message) ? `[${message}]` : message;
    const has = (word: string) => new RegExp(this.isTextArena ? `\\[${word}\\]` : `\\b${word}\\b`, "i").test(text);
    const offer = this.isTextArena
      ? /\[Offer:?\s*(?:I\s+(?:give|offer)\s+)?([^[\]]+?)\s*\.*\]/i.exec(text)?.[1]
      : /\boffer\b:?\s*([^[\]\n]*->[^[\]\n]*)/i.exec(text)?.[1];
    return {
      accepts: has("accept"),
      denies: has("deny"),
      trade: offer === undefined ? undefined : parseTrade(offer),
    };
  }
}

/** Parses `2 Wheat, 1 Wood -> 1 Ore`; null for anything else. */
function parseTrade(text: string): Pick<Offer, "gives" | "takes"> | null {
  const sides = text.split("->");
  if (sides.length !== 2) return null;
  const [gives, takes] = sides.map(parseAmounts);
  return gives === undefined || takes === undefined ? null : { gives, takes };
}

function parseAmounts(text: string): Amounts | undefined {
  const amounts = RESOURCES.map(() => 0);
  const items = [...text.matchAll(/(\d+)\s+([a-z]+)/gi)];
  for (const [, count, word] of items) {
    const name = word.toLowerCase().replace(/^(sheep|wood)s$/, "$1");
    const index = RESOURCES.findIndex((resource) => resource.toLowerCase() === name);
    if (index === -1 || !(Number(count) > 0)) return undefined;
    // Positions are saved as JSON, which has no infinity.
    amounts[index] = Math.min(amounts[index] + Number(count), Number.MAX_SAFE_INTEGER);
  }
  return items.length === 0 ? undefined : amounts;
}

const covers = (stock: Amounts, amounts: Amounts) => amounts.every((amount, i) => amount <= stock[i]);

/** Trades an offer between its author and the seat that is to move. */
function exchange(position: NegotiationPosition, { author, gives, takes }: Offer): NegotiationPosition {
  const { stocks, seat } = position;
  // An author who accepts the offer trades with itself, which changes nothing.
  if (author === seat) return { ...position, offer: null };
  const change = (stock: Amounts, minus: Amounts, plus: Amounts) => stock.map((count, i) => count - minus[i] + plus[i]);
  return {
    ...position,
    offer: null,
    stocks: stocks.map((stock, other) =>
      other === author ? change(stock, gives, takes) : change(stock, takes, gives),
    ),
  };
}

/** Counts the message and passes the turn. */
function pass(position: NegotiationPosition, event: string): NegotiationPosition {
  const { counts, seat } = position;
  return { ...position, counts: counts.with(seat, counts[seat] + 1), seat: 1 - seat, event };
}

function gain({ stocks, firstStocks, values }: NegotiationPosition, seat: number): number {
  return stocks[seat].reduce((sum, count, i) => sum + (count - firstStocks[seat][i]) * values[seat][i], 0);
}

const formatAmounts = (amounts: Amounts) =>
  amounts.flatMap((count, i) => (count === 0 ? [] : [`${count} ${RESOURCES[i]}`])).join(", ");

const formatTrade = ({ gives, takes }: Pick<Offer, "gives" | "takes">) =>
  `${formatAmounts(gives)} -> ${formatAmounts(takes)}`;
