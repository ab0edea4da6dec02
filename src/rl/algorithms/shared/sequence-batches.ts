import { getOrCreatePromise } from "../../../core/promise-cache.js";
import type { PolicyBackend, PolicyScorer, PolicyTrainer } from "../../../generation/index.js";
import {
  packSharedPrefixes,
  type FrozenStates,
  type GraphOptions,
  type LossResult,
  type PackingOptions,
  type PolicyNodes,
  type SelectedToken,
  type TokenBatch,
  type TokenScores,
} from "../../../models/graphs/index.js";
import type { TokenExample } from "../../data/sft-example.js";

/**
 * Items of one or several sequences that go through the model in one pass. The sequences of an item
 * stay together.
 */
export interface SequenceBatch {
  /** Indices of the items. */
  readonly indices: readonly number[];
  readonly tokens: TokenBatch;
  /** Per selected token, the position of its item in `indices`. */
  readonly items: readonly number[];
  /** Per selected token, which of its item's sequences it belongs to. */
  readonly sequences: readonly number[];
}

/**
 * Packs items into batches of one forward and backward pass, in which the loss tokens are selected.
 */
export function packItems(
  items: readonly (readonly TokenExample[])[],
  options: PackingOptions,
): readonly SequenceBatch[] {
  const sequences = items.map((item) => item.map((example) => example.tokens.slice(0, lastLossToken(example))));
  return packSharedPrefixes(sequences, options).map(({ indices, groups, positions }) => {
    const selected: SelectedToken[] = [];
    const [itemOf, sequenceOf]: [number[], number[]] = [[], []];
    let next = 0;
    indices.forEach((index, item) => {
      items[index].forEach(({ tokens, lossMask }, sequence) => {
        const { group, row, prefix } = positions[next++];
        tokens.forEach((target, t) => {
          if (t === 0 || lossMask[t] === 0) return;
          selected.push({ group, row, index: t - prefix, target });
          itemOf.push(item);
          sequenceOf.push(sequence);
        });
      });
    });
    return { indices, tokens: { groups, selected }, items: itemOf, sequences: sequenceOf };
  });
}

/**
 * Returns the index of the last loss token, behind which nothing needs to be computed; 0 without
 * any.
 */
function lastLossToken({ lossMask }: TokenExample): number {
  let last = lossMask.length - 1;
  while (last > 0 && lossMask[last] === 0) last--;
  return Math.max(0, last);
}

/** Scoring graphs for batches with or without prefixes; the latter are shorter. */
export class SequenceGraphs {
  private readonly scorers = new Map<boolean, Promise<PolicyScorer>>();

  /** Reads the states of frozen layers from `frozenStates`, which must be open. */
  constructor(
    protected readonly policy: PolicyBackend,
    private readonly frozenStates?: FrozenStates | undefined,
  ) {}

  /**
   * Scores the selected tokens; `adapter: false` under the reference policy, the model without its
   * adapter.
   */
  async score(batch: TokenBatch, options: { readonly adapter?: boolean } = {}): Promise<TokenScores> {
    const graphOptions = this.graphOptions(batch);
    const scorer = await getOrCreatePromise(this.scorers, graphOptions.withPrefix, async () =>
      this.policy.createScorer({ ...graphOptions, withMaxLogProbs: true }),
    );
    return scorer.run(batch, options);
  }

  async release(): Promise<void> {
    for (const scorer of this.scorers.values()) await (await scorer).release();
  }

  protected graphOptions({ groups }: TokenBatch) {
    const { frozenStates } = this;
    const withPrefix = groups.some(({ prefix }) => prefix.length > 0);
    return { withPrefix, frozenStates } satisfies GraphOptions;
  }
}

/** Scoring graphs and the training graphs of a loss. */
export class LossGraphs extends SequenceGraphs {
  private readonly graphs = new Map<boolean, Promise<PolicyTrainer>>();

  constructor(
    policy: PolicyBackend,
    private readonly loss: (policy: PolicyNodes) => LossResult,
    frozenStates?: FrozenStates,
  ) {
    super(policy, frozenStates);
  }

  /** Returns the training graph for a batch. */
  async training(batch: TokenBatch): Promise<PolicyTrainer> {
    const options = this.graphOptions(batch);
    return getOrCreatePromise(this.graphs, options.withPrefix, async () =>
      this.policy.createTrainer(this.loss, options),
    );
  }

  override async release(): Promise<void> {
    for (const graph of this.graphs.values()) await (await graph).release();
    await super.release();
  }
}
