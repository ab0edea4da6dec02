import { listTokens, sampleFromDistribution, type TokenDistribution } from "../../engine/runtime/kernels/sampling.js";
import type { TokenConstraint } from "../constraints/compiled-constraint.js";
import { RunningSequence } from "../sampling/running-sequence.js";
import type { SampleOutput, SampleRequest } from "../sampling/sample-request.js";
import type { Sampler } from "../sampling/sampler.js";
import { LruCache } from "./lru-cache.js";

/** Up to this size of a vocabulary, caching a distribution costs little; copying larger ones takes time. */
export const MAX_SMALL_VOCABULARY = 4096;

/** Memory of the cached distributions, in bytes: 256 MB. */
const MAX_BYTES = 2 ** 28;
/** What a distribution counts at least: there are at most 16,384. */
const MIN_BYTES = 2 ** 14;

interface CachedDistribution {
  readonly distribution: TokenDistribution;
  readonly value: number;
  /** Tokens of the distribution, one object for all turns; undefined until they are needed, and for the whole vocabulary. */
  tokens?: Int32Array;
}

/**
 * Next-token distributions of prompts that recur. In small tasks the same observation is frequent: its next completion is then
 * sampled from the cached distributions, with the same random numbers and thus the same tokens.
 */
export class DistributionCache {
  private readonly distributions = new LruCache<CachedDistribution>(MAX_BYTES, (_, { distribution }) =>
    Math.max(MIN_BYTES, sizeInBytes(distribution)),
  );
  /** Completions that the sampler is computing, by their first token's key. */
  private readonly pending = new Map<string, Promise<unknown>>();
  private readonly constraintIds = new WeakMap<TokenConstraint, number>();
  private constraintCount = 0;
  private version: number | undefined;

  clear(): void {
    this.distributions.clear();
  }

  /** Drops the distributions of other versions of the parameters. */
  keepVersion(version: number): void {
    if (version !== this.version) this.clear();
    this.version = version;
  }

  /**
   * Samples a completion at a temperature above 0, from cached distributions as far as they are known and with the sampler from
   * there on. Requests for a distribution that is being computed wait for it.
   */
  async sample(request: SampleRequest, sampler: Sampler): Promise<SampleOutput> {
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
