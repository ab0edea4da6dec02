import { invalidArgument } from "../../core/errors.js";
import { readCounts } from "../env-options.js";
import { Discrete } from "../spaces/index.js";
import { createGameText, RulesGame, type RulesGameOptions } from "./rules-game.js";

/** Options of `KuhnPoker`. */
export interface KuhnPokerOptions extends RulesGameOptions {
  /**
   * "kuhn" (default): bets enter the pot, rewards are chips, the first seat opens. "text-arena":
   * the pot is always two chips, more chips in the end win 1, and the second seat opens the first
   * round.
   */
  readonly rules?: "kuhn" | "text-arena";
  /** Hands of a game. Default 1, with TextArena's rules 3. */
  readonly rounds?: number;
}

const NAMES = ["check", "bet", "fold", "call"];
const LETTERS = "cbfk";
const CARDS = "JQK";
/** Histories of a hand in which somebody moves, with the legal actions. */
const TURNS: Readonly<Record<string, readonly number[]>> = { "": [0, 1], c: [0, 1], b: [2, 3], cb: [2, 3] };
const DEALS = [0, 1, 2].flatMap((a) => [0, 1, 2].flatMap((b) => (a === b ? [] : [[a, b, 3 - a - b]])));

/**
 * Deck of the present hand (the cards of the seats first), its actions as letters, hands played and
 * chips won.
 */
type KuhnPosition = {
  readonly deck: readonly number[];
  readonly history: string;
  readonly round: number;
  readonly chips: readonly number[];
};

/**
 * Kuhn poker: one card each of J, Q, K, an ante of one chip, one bet of one chip. Actions: check,
 * bet, fold, call.
 */
export class KuhnPoker extends RulesGame<KuhnPosition> {
  override readonly actionSpace = new Discrete(NAMES.length);
  override get isPerfectInformation(): boolean {
    return false;
  }
  override readonly text;
  private readonly isTextArena: boolean;
  private readonly rounds: number;

  constructor({ rules = "kuhn", rounds, ...options }: KuhnPokerOptions = {}) {
    super(options, ["rules", "rounds"]);
    if (rules !== "kuhn" && rules !== "text-arena")
      throw invalidArgument(`KuhnPoker: option rules must be "kuhn" or "text-arena", got ${JSON.stringify(rules)}.`);
    this.isTextArena = rules === "text-arena";
    this.rounds = readCounts("KuhnPoker", { rounds }, { rounds: [this.isTextArena ? 3 : 1, 1, 1000] }).rounds;
    const bets = this.isTextArena
      ? "A hand is worth one chip, and who has more chips in the end wins."
      : "Each puts one chip into the pot; a bet and a call add one more each.";
    this.text = createGameText(
      `Kuhn poker with J, Q and K, one card each; K is high. ${bets} Check or bet; answer a bet with fold or call.`,
      NAMES,
    );
  }

  protected override start(): KuhnPosition {
    return { deck: this.shuffle([0, 1, 2]), history: "", round: 0, chips: [0, 0] };
  }

  override listStarts(): { position: KuhnPosition; probability: number }[] | undefined {
    if (this.rounds > 1) return undefined;
    return DEALS.map((deck) => ({
      position: { deck, history: "", round: 0, chips: [0, 0] },
      probability: 1 / DEALS.length,
    }));
  }

  override getSeat({ history, round }: KuhnPosition): number | undefined {
    if (round >= this.rounds || !Object.hasOwn(TURNS, history)) return undefined;
    return (this.getOpener(round) + history.length) % 2;
  }

  override listActions({ history }: KuhnPosition): readonly number[] {
    return TURNS[history];
  }

  override next(position: KuhnPosition, action: number): KuhnPosition {
    const { deck, round, chips } = position;
    const history = position.history + LETTERS[action];
    if (Object.hasOwn(TURNS, history)) return { ...position, history };
    const [winner, stake] = this.settle(position, history);
    const total = chips.map((count, seat) => count + (seat === winner ? stake : -stake));
    const isLast = round + 1 >= this.rounds;
    return { deck: isLast ? deck : this.shuffle(deck), history: "", round: round + 1, chips: total };
  }

  override getReturns(position: KuhnPosition): readonly number[] {
    const { chips } = position;
    if (!this.isTextArena) return chips;
    return this.getSeat(position) === undefined ? chips.map(Math.sign) : [0, 0];
  }

  override observe({ deck, history, round, chips }: KuhnPosition, seat: number): string {
    const opener = this.getOpener(round);
    const moves = Array.from(history, (letter, i) => {
      const who = (opener + i) % 2 === seat ? "You" : "Opponent";
      return `${who}: ${NAMES[LETTERS.indexOf(letter)]}.`;
    });
    const hand = this.rounds > 1 ? `Hand ${round + 1} of ${this.rounds}, your chips ${chips[seat]}. ` : "";
    return `${hand}Your card is ${CARDS[deck[seat]]}. ${moves.join(" ") || "You open."}`;
  }

  protected override draw({ deck, history, round, chips }: KuhnPosition): string {
    const moves = Array.from(history, (letter) => NAMES[LETTERS.indexOf(letter)]);
    return `Hand ${round + 1}: ${CARDS[deck[0]]} against ${CARDS[deck[1]]}, ${moves.join(" ") || "no move yet"}; chips ${chips.join(" to ")}`;
  }

  /** Returns who wins a finished hand, and how many chips. */
  private settle({ deck, round }: KuhnPosition, history: string): [winner: number, stake: number] {
    const opener = this.getOpener(round);
    // Who folds is the one who moved last.
    if (history.endsWith("f")) return [(opener + history.length) % 2, 1];
    return [deck[0] > deck[1] ? 0 : 1, history.endsWith("k") && !this.isTextArena ? 2 : 1];
  }

  private getOpener(round: number): number {
    return (round + (this.isTextArena ? 1 : 0)) % 2;
  }

  private shuffle(deck: readonly number[]): number[] {
    const shuffled = [...deck];
    this.random.shuffle(shuffled);
    return shuffled;
  }
}
