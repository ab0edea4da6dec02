/** Probabilities of an ace, 2 to 9, and a ten. */
const CARD_PROBABILITIES = Array.from({ length: 10 }, (_, i) => ({ card: i + 1, chance: i === 9 ? 4 / 13 : 1 / 13 }));
const STICK = 0;
const HIT = 1;

/**
 * Observable state: the sum with a usable ace as 11, whether there is one, and the dealer's open
 * card.
 */
interface DealState {
  readonly sum: number;
  readonly ace: boolean;
  readonly dealer: number;
}

export interface BlackjackRules {
  readonly sab: boolean;
  readonly natural: boolean;
}

export type BlackjackPolicy = (sum: number, dealer: number, ace: boolean) => number;

/** Returns a hand after another card. */
function addCard({ sum, ace }: { sum: number; ace: boolean }, card: number): { sum: number; ace: boolean } {
  const hard = (ace ? sum - 10 : sum) + card;
  const hasAce = ace || card === 1;
  return hasAce && hard + 10 <= 21 ? { sum: hard + 10, ace: true } : { sum: hard, ace: false };
}

/** Probabilities of the dealer's final sums for an open card (0 is a bust), and of a natural. */
function computeDealerOutcomes(open: number): { sums: Map<number, number>; natural: number } {
  const sums = new Map<number, number>();
  const playOut = (hand: { sum: number; ace: boolean }, chance: number, hasHidden: boolean): void => {
    if (hasHidden && hand.sum >= 17) {
      const last = hand.sum > 21 ? 0 : hand.sum;
      sums.set(last, (sums.get(last) ?? 0) + chance);
      return;
    }
    for (const { card, chance: next } of CARD_PROBABILITIES) playOut(addCard(hand, card), chance * next, true);
  };
  playOut(addCard({ sum: 0, ace: false }, open), 1, false);
  const natural = open === 1 ? 4 / 13 : open === 10 ? 1 / 13 : 0;
  return { sums, natural };
}

/** What is computed on the first use, because imports of the package load this file. */
const dealerOutcomes = new Map<number, ReturnType<typeof computeDealerOutcomes>>();

function getDealerOutcomes(open: number) {
  const known = dealerOutcomes.get(open) ?? computeDealerOutcomes(open);
  dealerOutcomes.set(open, known);
  return known;
}

function computeStickValue(sum: number, dealer: number): number {
  let value = 0;
  for (const [other, chance] of getDealerOutcomes(dealer).sums) value += chance * Math.sign(sum - other);
  return value;
}

/** Returns the value of sticking with a natural. */
function computeNaturalValue(dealer: number, rules: BlackjackRules): number {
  const natural = getDealerOutcomes(dealer).natural;
  // By Sutton and Barto's rules only a dealer's natural draws against a natural.
  if (rules.sab) return 1 - natural;
  return computeStickValue(21, dealer) * (rules.natural ? 1.5 : 1);
}

/** Computes the expected returns of a policy, by default the best one. */
class DealEvaluation {
  private readonly cached = new Map<string, number>();

  constructor(private readonly policy?: BlackjackPolicy | "random") {}

  value({ sum, ace, dealer }: DealState): number {
    if (sum > 21) return -1;
    const key = `${sum} ${ace} ${dealer}`;
    const cached = this.cached.get(key);
    if (cached !== undefined) return cached;
    const values = [computeStickValue(sum, dealer), this.computeHitValue({ sum, ace, dealer })];
    const value = this.choose(values, sum, dealer, ace);
    this.cached.set(key, value);
    return value;
  }

  choose(values: readonly number[], sum: number, dealer: number, ace: boolean): number {
    if (this.policy === undefined) return Math.max(...values);
    if (this.policy === "random") return (values[STICK] + values[HIT]) / 2;
    return values[this.policy(sum, dealer, ace)];
  }

  computeHitValue({ sum, ace, dealer }: DealState): number {
    return CARD_PROBABILITIES.reduce(
      (total, { card, chance }) => total + chance * this.value({ ...addCard({ sum, ace }, card), dealer }),
      0,
    );
  }
}

const bestEvaluation = new DealEvaluation();

/** Chooses the best action by exact expected returns: 0 stick, 1 hit. */
export const chooseBestAction: BlackjackPolicy = (sum, dealer, ace) =>
  bestEvaluation.computeHitValue({ sum, ace, dealer }) > computeStickValue(sum, dealer) ? HIT : STICK;

/**
 * Computes the exact expected return of an episode under a policy, random actions, or the best
 * policy.
 */
export function computeBlackjackReturn(rules: BlackjackRules, policy: BlackjackPolicy | "random" | "best"): number {
  const evaluation = new DealEvaluation(policy === "best" ? undefined : policy);
  let total = 0;
  for (const { card: dealer, chance } of CARD_PROBABILITIES) {
    for (const first of CARD_PROBABILITIES) {
      for (const second of CARD_PROBABILITIES) {
        const hand = addCard(addCard({ sum: 0, ace: false }, first.card), second.card);
        const dealState = { ...hand, dealer };
        // Two cards that sum to 21 are a natural.
        const stick = hand.sum === 21 ? computeNaturalValue(dealer, rules) : computeStickValue(hand.sum, dealer);
        const values = [stick, evaluation.computeHitValue(dealState)];
        total += chance * first.chance * second.chance * evaluation.choose(values, hand.sum, dealer, hand.ace);
      }
    }
  }
  return total;
}
