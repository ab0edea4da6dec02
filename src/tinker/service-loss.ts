import type { ServiceTraits } from "./probe-service.js";

/** A loss of a service that has the gradient of a loss in this process. */
export interface ServiceLoss {
  readonly lossFn: string;
  readonly config: Readonly<Record<string, number>>;
  /** Inputs of the loss, with a value for each selected token. */
  readonly inputs: Readonly<Record<string, ArrayLike<number>>>;
}

/** Returns the derivative of the loss in this process at some log-probabilities. */
type Derive = (logProbs: Float32Array) => Promise<ArrayLike<number>>;

/** Tokens of a batch: how many are selected, with which log-probabilities they were sampled. */
interface BatchTokens {
  readonly count: number;
  readonly oldLogProbs: ArrayLike<number> | undefined;
  /** Whether the sequences have tokens that are not selected. */
  readonly hasOtherTokens: boolean;
}

/** Settings of a loss as they were found, and its derivative at a ratio of probabilities. */
interface Candidate {
  readonly lossFn: string;
  readonly config: Readonly<Record<string, number>>;
  readonly slope: (ratio: number, advantage: number) => number;
}

/** Ratios beyond all bounds of clipping, and some within. */
const [MIN_RATIO, MAX_RATIO] = [0.02, 50];
const RATIOS = [1, MIN_RATIO, 0.5, 0.9, 1.1, 1.7, MAX_RATIO];
/** Distance from a bound at which a derivative is not in doubt. */
const NEAR = 1e-3;
const BISECTIONS = 26;
/** Errors of float32 in a derivative: of the value, and of terms that cancel out. */
const [RELATIVE_ERROR, ABSOLUTE_ERROR] = [1e-4, 1e-6];
const SHIFTS = 3;
const BOUND_ERROR = 1e-5;

/** Bounds have few decimals; as float32 they have others. */
const roundBound = (bound: number) => Number(bound.toFixed(6));

/**
 * Finds the loss of a service that equals a loss in this process. The derivative of the latter is
 * compared with the derivatives of the service's losses, at many ratios between the probabilities
 * and those that the tokens were sampled with: nothing about the algorithm has to be known.
 */
export class ServiceLossFinder {
  private isUnknown = false;
  private readonly bounds: { low?: number; high?: number } = {};

  constructor(
    private readonly traits: ServiceTraits,
    /** Whether the derivative is the same at all log-probabilities. */
    private readonly isLinear: boolean,
  ) {}

  /**
   * Returns the loss for a batch, whose tokens were sampled with `oldLogProbs`; undefined if no
   * loss of the service is equal.
   */
  async find(derive: Derive, { count, oldLogProbs, hasOtherTokens }: BatchTokens): Promise<ServiceLoss | undefined> {
    if (this.traits.reduction !== "sum" || this.isUnknown) return undefined;
    if (this.isLinear) {
      const weights = Float32Array.from(await derive(new Float32Array(count)), (slope) => -slope);
      return { lossFn: "cross_entropy", config: {}, inputs: { weights } };
    }
    if (oldLogProbs?.length !== count) return undefined;
    const found = await this.match(derive, Float32Array.from(oldLogProbs), hasOtherTokens);
    // Later batches have the same loss.
    if (found === null) this.isUnknown = true;
    return found ?? undefined;
  }

  /** Returns null if no loss is equal, undefined for a batch that does not tell. */
  private async match(
    derive: Derive,
    old: Float32Array,
    hasOtherTokens: boolean,
  ): Promise<ServiceLoss | null | undefined> {
    const advantages = Float32Array.from(await derive(old), (slope) => -slope);
    if (advantages.every((advantage) => advantage === 0)) return undefined;
    if (!advantages.every(Number.isFinite)) return undefined;
    const at = async (ratio: number) => derive(old.map((value) => value + Math.log(ratio)));
    // Only dro has a loss at tokens without an advantage, such as a prompt's.
    const fits = [
      () => this.fitSampling(),
      () => this.fitPpo(at, advantages),
      () => this.fitCispo(at, advantages),
      ...(hasOtherTokens ? [] : [() => this.fitDro(at, advantages)]),
    ];
    for (const fit of fits) {
      const candidate: Candidate | undefined = await fit();
      if (candidate === undefined || !this.traits.losses.includes(candidate.lossFn)) continue;
      if (!(await this.isEqual(candidate, derive, old, advantages))) continue;
      const { lossFn, config } = candidate;
      return { lossFn, config, inputs: { logprobs: old, advantages } };
    }
    return null;
  }

  /** Compares derivatives, with another ratio at each token so that no token depends on others. */
  private async isEqual(
    { slope }: Candidate,
    derive: Derive,
    old: Float32Array,
    advantages: Float32Array,
  ): Promise<boolean> {
    const { low = 1, high = 1 } = this.bounds;
    const ratios = [...RATIOS, ...[low, high].flatMap((bound) => [bound * (1 - NEAR), bound * (1 + NEAR)])];
    const scale = advantages.reduce((largest, advantage) => Math.max(largest, Math.abs(advantage)), 0);
    for (let shift = 0; shift < SHIFTS; shift++) {
      const logProbs = old.map((value, i) => value + Math.log(ratios[(i + 4 * shift) % ratios.length]));
      const slopes = await derive(logProbs);
      const isNear = advantages.every((advantage, i) => {
        const expected = slope(Math.exp(logProbs[i] - old[i]), advantage);
        return Math.abs(slopes[i] - expected) <= RELATIVE_ERROR * Math.abs(expected) + ABSOLUTE_ERROR * scale;
      });
      if (!isNear) return false;
    }
    return true;
  }

  private async fitSampling(): Promise<Candidate> {
    return { lossFn: "importance_sampling", config: {}, slope: (ratio, advantage) => -ratio * advantage };
  }

  /** Finds the bounds beyond which a token has no gradient, in either direction. */
  private async fitPpo(at: (ratio: number) => Promise<ArrayLike<number>>, advantages: Float32Array) {
    const { bounds } = this;
    const best = advantages.findIndex((advantage) => advantage > 0);
    const worst = advantages.findIndex((advantage) => advantage < 0);
    const bisect = async (token: number, outer: number) => {
      if ((await at(outer))[token] !== 0) return undefined;
      let [inside, outside] = [1, outer];
      for (let i = 0; i < BISECTIONS; i++) {
        const middle = Math.sqrt(inside * outside);
        if ((await at(middle))[token] === 0) outside = middle;
        else inside = middle;
      }
      return roundBound(inside);
    };
    if (best >= 0) bounds.high ??= await bisect(best, MAX_RATIO);
    if (worst >= 0) bounds.low ??= await bisect(worst, MIN_RATIO);
    const config = this.clipConfig("ppo", bounds);
    return (
      config && {
        lossFn: "ppo",
        config,
        slope: (ratio: number, advantage: number) => {
          const { low = 0, high = Infinity } = bounds;
          return (advantage > 0 ? ratio <= high : ratio >= low) ? -ratio * advantage : 0;
        },
      }
    );
  }

  /** Finds the bounds of the factor of a token's log-probability. */
  private async fitCispo(at: (ratio: number) => Promise<ArrayLike<number>>, advantages: Float32Array) {
    const token = advantages.findIndex((advantage) => advantage !== 0);
    const [low, high] = [
      roundBound(-(await at(MIN_RATIO))[token] / advantages[token]),
      roundBound(-(await at(MAX_RATIO))[token] / advantages[token]),
    ];
    if (!(low >= 0 && high >= low)) return undefined;
    // A factor as small as the ratio has no lower bound.
    const bounds = { low: low <= MIN_RATIO ? 0 : low, high };
    const config = this.clipConfig("cispo", bounds);
    Object.assign(this.bounds, bounds);
    return (
      config && {
        lossFn: "cispo",
        config,
        slope: (ratio: number, advantage: number) => -Math.min(bounds.high, Math.max(bounds.low, ratio)) * advantage,
      }
    );
  }

  /** Finds the weight of the squared distance from the old log-probabilities. */
  private async fitDro(at: (ratio: number) => Promise<ArrayLike<number>>, advantages: Float32Array) {
    const token = advantages.findIndex((advantage) => advantage !== 0);
    const beta = Math.fround((await at(Math.E))[token] + advantages[token]);
    return !(beta > 0)
      ? undefined
      : {
          lossFn: "dro",
          config: { beta },
          slope: (ratio: number, advantage: number) => beta * Math.log(ratio) - advantage,
        };
  }

  /** Returns the settings for bounds, undefined where the service does not clip at them. */
  private clipConfig(
    lossFn: "ppo" | "cispo",
    { low, high }: { readonly low?: number | undefined; readonly high?: number | undefined },
  ): Readonly<Record<string, number>> | undefined {
    if (low === undefined && high === undefined) return undefined;
    const { ppoBounds, cispoBounds, clipSettings = [] } = this.traits;
    const defaults = lossFn === "ppo" ? ppoBounds : cispoBounds;
    const [defaultLow = 0.8, defaultHigh = 1.2] = defaults ?? [];
    if (clipSettings.includes(lossFn))
      return { clip_low_threshold: low ?? defaultLow, clip_high_threshold: high ?? defaultHigh };
    const isDefault = [low ?? defaultLow, high ?? defaultHigh].every(
      (bound, i) => Math.abs(bound - (defaults?.[i] ?? NaN)) < BOUND_ERROR,
    );
    return isDefault ? {} : undefined;
  }
}
