import { generalisedAdvantages } from "../../algorithms/shared/gae.js";
import { discountedReturns } from "../../algorithms/shared/returns.js";
import { largestError, type Reporter } from "../report.js";

const TOLERANCE = 1e-6;

type Flags = readonly boolean[];
type Numbers = readonly number[];

export interface ReturnsFixture {
  readonly discounted_returns: readonly DiscountedCase[];
  readonly turn_gae: readonly TurnCase[];
}

interface DiscountedCase {
  readonly rewards: Numbers;
  readonly ends: Flags;
  readonly gamma: number;
  readonly returns: Numbers;
}

interface TurnCase {
  readonly rewards: Numbers;
  readonly values: Numbers;
  readonly bootstrap: Numbers;
  readonly terminated: Flags;
  readonly truncated: Flags;
  readonly gamma: number;
  readonly lam: number;
  readonly advantages: Numbers;
  readonly returns: Numbers;
}

export function compareDiscounted(
  { rewards, returns, ...options }: DiscountedCase,
  name: string,
  report: Reporter,
): void {
  report.number(`rl/returns ${name}`, largestError(discountedReturns(rewards, options), returns), TOLERANCE);
}

export function compareTurns(
  { gamma, lam, advantages, returns, ...steps }: TurnCase,
  name: string,
  report: Reporter,
): void {
  const ours = generalisedAdvantages(steps, { gamma, lam });
  report.number(`rl/returns ${name} advantages`, largestError(ours.advantages, advantages), TOLERANCE);
  report.number(`rl/returns ${name} returns`, largestError(ours.returns, returns), TOLERANCE);
}
