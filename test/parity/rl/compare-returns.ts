import { generalizedAdvantages } from "../../../src/rl/algorithms/shared/gae.js";
import { discountedReturns } from "../../../src/rl/algorithms/shared/discounted-returns.js";
import { maxRelativeError, type ParityReport } from "../parity-report.js";

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

export function compareDiscountedReturns(
  { rewards, returns, ...options }: DiscountedCase,
  name: string,
  report: ParityReport,
): void {
  report.checkWithin(`rl/returns ${name}`, maxRelativeError(discountedReturns(rewards, options), returns), TOLERANCE);
}

export function compareTurnGae(
  { gamma, lam, advantages, returns, ...steps }: TurnCase,
  name: string,
  report: ParityReport,
): void {
  const ours = generalizedAdvantages(steps, { gamma, lam });
  report.checkWithin(`rl/returns ${name} advantages`, maxRelativeError(ours.advantages, advantages), TOLERANCE);
  report.checkWithin(`rl/returns ${name} returns`, maxRelativeError(ours.returns, returns), TOLERANCE);
}
