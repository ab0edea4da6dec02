/** Chance of an ace, 2, ..., 9 and of a ten. */
const CARDS = Array.from({ length: 10 }, (_, i) => ({ card: i + 1, chance: i === 9 ? 4 / 13 : 1 / 13 }));
const STICK = 0;
const HIT = 1;

/** What the policy knows: the sum with an ace as 11 where that fits, whether one is, the dealer's open card. */
interface Situation {
  readonly sum: number;
  readonly ace: boolean;
  readonly dealer: number;
}

export interface BlackjackRules {
  readonly sab: boolean;
  readonly natural: boolean;
}

export type BlackjackPolicy = (sum: number, dealer: number, ace: boolean) => number;

/** A hand after another card. */
function withCard({ sum, ace }: { sum: number; ace: boolean }, card: number): { sum: number; ace: boolean } {
  const hard = (ace ? sum - 10 : sum) + card;
  const hasAce = ace || card === 1;
  return hasAce && hard + 10 <= 21 ? { sum: hard + 10, ace: true } : { sum: hard, ace: false };
}

/** The chances of the dealer's last sums from one open card (0 stands for a bust), and of an ace and a ten at once. */
function dealerOutcomes(open: number): { sums: Map<number, number>; natural: number } {
  const sums = new Map<number, number>();
  const play = (hand: { sum: number; ace: boolean }, chance: number, hasHidden: boolean): void => {
    if (hasHidden && hand.sum >= 17) {
      const last = hand.sum > 21 ? 0 : hand.sum;
      sums.set(last, (sums.get(last) ?? 0) + chance);
      return;
    }
    for (const { card, chance: next } of CARDS) play(withCard(hand, card), chance * next, true);
  };
  play(withCard({ sum: 0, ace: false }, open), 1, false);
  const natural = open === 1 ? 4 / 13 : open === 10 ? 1 / 13 : 0;
  return { sums, natural };
}

const dealers = new Map(CARDS.map(({ card }) => [card, dealerOutcomes(card)]));

function stickValue(sum: number, dealer: number): number {
  let value = 0;
  for (const [other, chance] of dealers.get(dealer)?.sums ?? []) value += chance * Math.sign(sum - other);
  return value;
}

/** The value of sticking with an ace and a ten at once. */
function naturalValue(dealer: number, rules: BlackjackRules): number {
  const natural = dealers.get(dealer)?.natural ?? 0;
  // The dealer's own ace and ten is the only draw by Sutton and Barto's rules.
  if (rules.sab) return 1 - natural;
  return stickValue(21, dealer) * (rules.natural ? 1.5 : 1);
}

/** Expected returns of a policy, or of the best one when none is given. */
class Evaluation {
  private readonly known = new Map<string, number>();

  constructor(private readonly policy?: BlackjackPolicy | "random") {}

  value({ sum, ace, dealer }: Situation): number {
    if (sum > 21) return -1;
    const key = `${sum} ${ace} ${dealer}`;
    const known = this.known.get(key);
    if (known !== undefined) return known;
    const values = [stickValue(sum, dealer), this.hitValue({ sum, ace, dealer })];
    const value = this.choose(values, sum, dealer, ace);
    this.known.set(key, value);
    return value;
  }

  choose(values: readonly number[], sum: number, dealer: number, ace: boolean): number {
    if (this.policy === undefined) return Math.max(...values);
    if (this.policy === "random") return (values[STICK] + values[HIT]) / 2;
    return values[this.policy(sum, dealer, ace)];
  }

  hitValue({ sum, ace, dealer }: Situation): number {
    return CARDS.reduce(
      (total, { card, chance }) => total + chance * this.value({ ...withCard({ sum, ace }, card), dealer }),
      0,
    );
  }
}

const best = new Evaluation();

/** The best action by exact expected returns: 0 stick, 1 hit. */
export const bestBlackjackAction: BlackjackPolicy = (sum, dealer, ace) =>
  best.hitValue({ sum, ace, dealer }) > stickValue(sum, dealer) ? HIT : STICK;

/** The exact expected return of an episode under a policy, a coin toss, or the best policy. */
export function blackjackReturn(rules: BlackjackRules, policy: BlackjackPolicy | "random" | "best"): number {
  const evaluation = new Evaluation(policy === "best" ? undefined : policy);
  let total = 0;
  for (const { card: dealer, chance } of CARDS) {
    for (const first of CARDS) {
      for (const second of CARDS) {
        const hand = withCard(withCard({ sum: 0, ace: false }, first.card), second.card);
        const situation = { ...hand, dealer };
        // Two cards that make 21 are an ace and a ten.
        const stick = hand.sum === 21 ? naturalValue(dealer, rules) : stickValue(hand.sum, dealer);
        const values = [stick, evaluation.hitValue(situation)];
        total += chance * first.chance * second.chance * evaluation.choose(values, hand.sum, dealer, hand.ace);
      }
    }
  }
  return total;
}
