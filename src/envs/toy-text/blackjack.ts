import {
  Env,
  type EnvMetadata,
  type RenderFrame,
  type RenderMode,
  type ResetOptions,
  type ResetResult,
  type StepResult,
} from "../env.js";
import type { JsonValue } from "../../core/json.js";
import { applyDefaults } from "../env-options.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import { Discrete, Tuple } from "../spaces/index.js";
import { blackjackText, type BlackjackObservation } from "./blackjack-text.js";
import { drawBlackjack } from "./drawings.js";
import type { Registration } from "../registry/env-registry.js";
import { chooseBestAction } from "../solvers/blackjack-solver.js";

/** Ace, 2 to 10, jack, queen and king; cards are put back after each draw. */
const DECK = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10];
const DEALER_STAND_SUM = 17;
const HIT = 1;

/** Options of `BlackjackEnv`. */
export interface BlackjackOptions {
  /** Whether winning with a natural pays 1.5; ignored with `sab`. */
  readonly natural?: boolean;
  /** Whether to use Sutton and Barto's rules: a natural wins unless the dealer has one too. */
  readonly sab?: boolean;
}

/** Sums a hand, with an ace as 11 if that does not exceed 21. */
function evaluateHand(hand: readonly number[]): { sum: number; usableAce: boolean } {
  const sum = hand.reduce((total, card) => total + card, 0);
  const usableAce = hand.includes(1) && sum + 10 <= 21;
  return { sum: usableAce ? sum + 10 : sum, usableAce };
}

/** Scores a hand: its sum, or 0 above 21. */
function scoreHand(hand: readonly number[]): number {
  const { sum } = evaluateHand(hand);
  return sum > 21 ? 0 : sum;
}

const isNatural = (hand: readonly number[]) => hand.length === 2 && hand.includes(1) && hand.includes(10);

/**
 * Come closer to 21 than the dealer without exceeding it (Sutton and Barto, example 5.1). Actions:
 * 0 stick, 1 hit. Equals Gymnasium's Blackjack-v1; the registered id uses Sutton and Barto's rules.
 */
export class BlackjackEnv extends Env<BlackjackObservation, number> {
  override readonly observationSpace = new Tuple<BlackjackObservation>([
    new Discrete(32),
    new Discrete(11),
    new Discrete(2),
  ]);
  override readonly actionSpace = new Discrete(2);
  override readonly metadata: EnvMetadata = { renderModes: ["ansi", "rgb_array"], renderFps: 4 };
  override readonly text = blackjackText;
  private readonly natural: boolean;
  private readonly sab: boolean;
  private dealer: number[] = [];
  private player: number[] = [];
  /** Suit and value of the open card. */
  private openCard = "";
  private isOver = false;

  constructor(options: BlackjackOptions = {}) {
    super();
    const { natural, sab } = applyDefaults("Blackjack", options, { natural: false, sab: false });
    this.natural = natural;
    this.sab = sab;
  }

  override reset({ seed }: ResetOptions = {}): ResetResult<BlackjackObservation> {
    this.reseed(seed);
    const { random } = this;
    this.dealer = [drawCard(random), drawCard(random)];
    this.player = [drawCard(random), drawCard(random)];
    this.isOver = false;
    const suit = random.choice(["C", "D", "H", "S"]);
    const [value] = this.dealer;
    this.openCard = `${value === 1 ? "A" : value === 10 ? random.choice(["J", "Q", "K"]) : value}${suit}`;
    return { observation: this.observation(), info: {} };
  }

  override step(action: number): StepResult<BlackjackObservation> {
    this.checkAction(action);
    if (this.player.length === 0) throw this.notResetError();
    if (action === HIT) {
      this.player.push(drawCard(this.random));
      const isBust = scoreHand(this.player) === 0;
      return this.createResult(isBust ? -1 : 0, isBust);
    }
    while (evaluateHand(this.dealer).sum < DEALER_STAND_SUM) this.dealer.push(drawCard(this.random));
    const outcome = Math.sign(scoreHand(this.player) - scoreHand(this.dealer));
    if (this.sab && isNatural(this.player) && !isNatural(this.dealer)) return this.createResult(1, true);
    if (!this.sab && this.natural && isNatural(this.player) && outcome === 1) return this.createResult(1.5, true);
    return this.createResult(outcome, true);
  }

  private createResult(reward: number, terminated: boolean): StepResult<BlackjackObservation> {
    this.isOver = terminated;
    return { observation: this.observation(), reward, terminated, truncated: false, info: {} };
  }

  private observation(): BlackjackObservation {
    const { sum, usableAce } = evaluateHand(this.player);
    return [sum, this.dealer[0], usableAce ? 1 : 0];
  }

  override render(mode: RenderMode): RenderFrame {
    if (this.player.length === 0) throw this.notResetError();
    const { dealer, isOver } = this;
    const dealerHand = isOver ? { cards: dealer, sum: evaluateHand(dealer).sum } : undefined;
    return drawBlackjack(mode, this.observation(), this.openCard, dealerHand);
  }

  protected override saveState(): JsonValue {
    const { dealer, player, openCard, isOver } = this;
    return { dealer: [...dealer], player: [...player], openCard, isOver };
  }

  protected override loadState(json: JsonValue): void {
    const saved = json as { dealer: number[]; player: number[]; openCard: string; isOver: boolean };
    this.dealer = [...saved.dealer];
    this.player = [...saved.player];
    this.openCard = saved.openCard;
    this.isOver = saved.isOver;
  }
}

function drawCard(random: RandomStream): number {
  return random.choice(DECK);
}

export const blackjackEnvs: readonly Registration[] = [
  {
    id: "Blackjack-v1",
    entryPoint: (options) => new BlackjackEnv(options),
    options: { sab: true, natural: false },
    summary: "beat the dealer at cards",
    knownReturns: { random: -0.3942, best: -0.0431, basis: "exact" },
    expert: () => (observation) => {
      const [sum, dealerCard, ace] = observation as BlackjackObservation;
      return chooseBestAction(sum, dealerCard, ace === 1);
    },
  },
];
