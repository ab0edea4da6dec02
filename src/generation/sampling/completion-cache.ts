import { listTokens, sampleFromDistribution, type TokenDistribution } from "../../engine/runtime/index.js";
import type { TokenConstraint } from "../constraints/compiled-constraint.js";
import { RunningSequence } from "./running-sequence.js";
import type { SampleOutput, SampleRequest } from "./sample-request.js";
import type { Sampler } from "./sampler.js";
import { LruCache, sizeByKey } from "../../core/lru-cache.js";

/**
 * Up to this size of a vocabulary, caching a distribution costs little; copying larger ones takes
 * time.
 */
export const MAX_SMALL_VOCABULARY = 4096;

/** Memory of the cached distributions, in bytes: 256 MB. */
const MAX_BYTES = 2 ** 28;
/** What a distribution counts at least: there are at most 16,384. */
const MIN_BYTES = 2 ** 14;
/** Maximum number of cached results; long prompts count several times. */
const MAX_RESULTS = 8192;
/** Maximum number of prompts and completions that are remembered; long ones count several times. */
const MAX_REMEMBERED = 2 ** 17;

interface CachedDistribution {
  readonly distribution: TokenDistribution;
  readonly value: number;
  /**
   * Tokens of the distribution, one object for all turns; undefined until they are needed, and for
   * the whole vocabulary.
   */
  tokens?: Int32Array;
}

/**
 * What was computed for prompts that recur, until the parameters change. In small tasks the same
 * observation is frequent: its next completion is then sampled from cached next-token
 * distributions, with the same random numbers and thus the same tokens. Results without randomness,
 * such as greedy completions, are cached whole.
 */
export class CompletionCache {
  private readonly distributions = new LruCache<CachedDistribution>(MAX_BYTES, (_, { distribution }) =>
    Math.max(MIN_BYTES, sizeInBytes(distribution)),
  );
  /** Completions that the sampler is computing, by their first token's key. */
  private readonly pending = new Map<string, Promise<unknown>>();
  private readonly results = new LruCache<Promise<unknown>>(MAX_RESULTS, sizeByKey);
  /** Sampled completions, and the prompts of those that recurred. */
  private readonly remembered = new LruCache<true>(MAX_REMEMBERED, sizeByKey);
  private readonly constraintIds = new WeakMap<TokenConstraint, number>();
  private constraintCount = 0;
  private version: number | undefined;

  /** Discards what was computed with another `cacheVersion` of the model. */
  keepVersion(version: number): void {
    if (version === this.version) return;
    this.version = version;
    this.distributions.clear();
    this.results.clear();
    // A resumed run knows nothing of earlier updates, and must compute the same batches to the last
    // bit.
    this.remembered.clear();
  }

  /**
   * Returns the result of a key. One that fails or that `isReusable` rejects, such as an aborted
   * completion, is for its own request: it is not kept, and requests that waited for it compute
   * theirs.
   */
  async getOrCompute<Result>(
    key: string,
    compute: () => Promise<Result>,
    isReusable: (result: Result) => boolean = () => true,
  ): Promise<Result> {
    for (;;) {
      const cached = this.results.get(key) as Promise<Result> | undefined;
      if (cached === undefined) break;
      const settled = await cached.then(
        (result) => ({ result }),
        () => undefined,
      );
      if (settled !== undefined && isReusable(settled.result)) return settled.result;
      this.dropResult(key, cached);
    }
    const computed = compute();
    this.results.set(key, computed);
    let isKept = false;
    try {
      const result = await computed;
      isKept = isReusable(result);
      return result;
    } finally {
      if (!isKept) this.dropResult(key, computed);
    }
  }

  /** Drops a result, unless another one has replaced it after a change of the parameters. */
  private dropResult(key: string, result: Promise<unknown>): void {
    if (this.results.get(key) === result) this.results.delete(key);
  }

  /**
   * Whether a completion of the prompt has recurred, so that caching its distributions pays off
   * over a large vocabulary.
   */
  isRecurring(prompt: readonly number[]): boolean {
    return this.remembered.get(prompt.join()) !== undefined;
  }

  /** Remembers a completion that was sampled without cached distributions. */
  remember(prompt: readonly number[], tokens: readonly number[]): void {
    const key = distributionKey(prompt.join(), tokens);
    if (this.remembered.get(key) === undefined) this.remembered.set(key, true);
    else this.remembered.set(prompt.join(), true);
  }

  /**
   * Samples a completion at a temperature above 0, from cached distributions as far as they are
   * known and with the sampler from there on. Requests for a distribution that is being computed
   * wait for it.
   */
  async sample(request: SampleRequest, sampler: Pick<Sampler, "resume">): Promise<SampleOutput> {
    const promptKey = `${this.constraintId(request.constraint)};${request.prompt.join()}`;
    const { version } = this;
    const sequence = RunningSequence.forSampling({
      ...request,
      onDistribution: (distribution, value, index) => {
        // A completion that outlives an update was begun with outdated keys and values.
        if (version === this.version)
          this.distributions.set(distributionKey(promptKey, sequence.tokens), { distribution, value });
        request.onDistribution?.(distribution, value, index);
      },
    });
    for (;;) {
      sequence.appendForcedTokens();
      const { finishReason } = sequence;
      if (finishReason !== undefined) return sequence.toOutput(finishReason);
      const key = distributionKey(promptKey, sequence.tokens);
      const cached = this.distributions.get(key);
      const pending = this.pending.get(key);
      if (cached !== undefined) {
        request.onDistribution?.(cached.distribution, cached.value, sequence.tokens.length);
        const sampled = sampleFromDistribution(cached.distribution, request.random());
        const keptTokens =
          request.recordsKeptTokens === true ? (cached.tokens ??= listTokens(cached.distribution)) : undefined;
        const state = { rawLogProb: NaN, value: cached.value, distribution: undefined, keptTokens };
        sequence.appendToken({ ...sampled, ...state });
      } else if (pending !== undefined) {
        // Its error is reported by the request that computes it.
        await pending.catch(() => {});
      } else {
        const output = sampler.resume(sequence);
        this.pending.set(key, output);
        return output.finally(() => this.pending.delete(key));
      }
    }
  }

  private constraintId(constraint: TokenConstraint | undefined): number {
    if (constraint === undefined) return 0;
    const id = this.constraintIds.get(constraint) ?? ++this.constraintCount;
    this.constraintIds.set(constraint, id);
    return id;
  }
}

function sizeInBytes(distribution: TokenDistribution): number {
  if (distribution instanceof Float32Array) return distribution.byteLength;
  return distribution.ids.byteLength + distribution.probabilities.byteLength;
}

function distributionKey(promptKey: string, tokens: readonly number[]): string {
  return tokens.length === 0 ? promptKey : `${promptKey};${tokens.join()}`;
}
