import { logSumExp } from "../../../core/numbers.js";
import type { PolicyBackend, PolicyScorer } from "../../../generation/index.js";
import { packSharedPrefixes, type GraphOptions } from "../../../models/graphs/index.js";
import {
  buildTurnBatch,
  decisionsByTurn,
  decisionSequences,
  usesHeadTokens,
  type TurnBatch,
  type TurnTokens,
} from "./turn-batch.js";

/** Scores of turns: per turn, arrays with one entry per decision. */
export interface TurnScores {
  readonly logProbs: readonly Float64Array[];
  /** Values of the states before the decisions; undefined for a model without a value head. */
  readonly values: readonly Float64Array[] | undefined;
  /** Entropies of the decisions' distributions in nats; undefined unless requested at creation. */
  readonly entropies: readonly Float64Array[] | undefined;
  /**
   * Log-probabilities of all alternatives of each decision, undefined for unconstrained decisions;
   * undefined unless requested at creation.
   */
  readonly alternatives: readonly AlternativeLogProbs[] | undefined;
}

/** Log-probabilities of alternatives by decision of a turn; undefined for unconstrained ones. */
export type AlternativeLogProbs = readonly (Float64Array | undefined)[];

/**
 * Scores turns without gradients under the policy or the reference policy, which is the model
 * without its adapter, or a copy with other values.
 */
export class LogProbScorer {
  /**
   * By whether batches have allowed tokens, and whether logits are computed of some tokens only.
   */
  private readonly graphs = new Map<`${boolean} ${boolean}`, PolicyScorer>();

  /** Creates a scorer that returns entropies and scores of alternatives if requested. */
  constructor(
    private readonly policy: Pick<PolicyBackend, "config" | "valueHead" | "maxAlternatives" | "createScorer">,
    private readonly options: {
      readonly microBatchTokens: number;
      readonly entropies?: boolean;
      readonly alternatives?: boolean;
    } & Pick<GraphOptions, "frozenStates">,
  ) {}

  async score(
    turns: readonly TurnTokens[],
    { temperature = 1, ...options }: { readonly temperature?: number } & Parameters<PolicyScorer["run"]>[1] = {},
  ): Promise<TurnScores> {
    const { valueHead, config, maxAlternatives } = this.policy;
    const logProbs: Float64Array[] = [];
    const values: Float64Array[] = [];
    const entropies: Float64Array[] = [];
    const alternatives: AlternativeLogProbs[] = [];
    const packingOptions = { microBatchTokens: this.options.microBatchTokens, config };
    for (const microBatch of packSharedPrefixes(turns.map(decisionSequences), packingOptions)) {
      const { indices: turnIndices } = microBatch;
      const batchTurns = turnIndices.map((i) => turns[i]);
      const batch = buildTurnBatch(batchTurns, microBatch, temperature, maxAlternatives);
      const graph = await this.graph(batch);
      const scores = await graph.run(batch.tokens, options);
      const alternativeScores = scoreAlternatives(batch, scores.logProbs);
      const chosenLogProbs = Float64Array.from(alternativeScores, (all, decision) => all[batch.chosen[decision]]);
      const chosenEntropies = scores.entropy && decisionEntropies(batch, alternativeScores, scores.entropy);
      const { values: tokenValues } = scores;
      decisionsByTurn(batch).forEach((decisions, turn) => {
        const perDecision = (value: (decision: number) => number) => Float64Array.from(decisions, value);
        const firstToken = (decision: number) => batch.alternatives[decision][0].tokens[0];
        logProbs[turnIndices[turn]] = perDecision((decision) => chosenLogProbs[decision]);
        if (chosenEntropies !== undefined)
          entropies[turnIndices[turn]] = perDecision((decision) => chosenEntropies[decision]);
        if (this.options.alternatives === true)
          alternatives[turnIndices[turn]] = decisions.map((decision) =>
            batch.isUnconstrained[decision] ? undefined : alternativeScores[decision],
          );
        if (tokenValues !== undefined)
          values[turnIndices[turn]] = perDecision((decision) => tokenValues[firstToken(decision)]);
      });
    }
    return {
      logProbs,
      values: valueHead === undefined ? undefined : values,
      entropies: entropies.length === 0 ? undefined : entropies,
      alternatives: this.options.alternatives === true ? alternatives : undefined,
    };
  }

  async release(): Promise<void> {
    for (const graph of this.graphs.values()) await graph.release();
  }

  private async graph(batch: TurnBatch): Promise<PolicyScorer> {
    const withHeadTokens = usesHeadTokens(batch, this.policy.config.vocabSize);
    const key = `${batch.hasAllowedTokens} ${withHeadTokens}` as const;
    const { frozenStates } = this.options;
    const options = { withAllowedTokens: batch.hasAllowedTokens, withHeadTokens, frozenStates };
    const entropy = this.options.entropies === true ? "value" : "none";
    const graph = this.graphs.get(key) ?? (await this.policy.createScorer({ ...options, entropy }));
    this.graphs.set(key, graph);
    return graph;
  }
}

/**
 * Computes the log-probabilities of each decision's alternatives from those of the selected tokens.
 */
function scoreAlternatives({ alternatives, isUnconstrained }: TurnBatch, logProbs: Float32Array): Float64Array[] {
  return alternatives.map((all, decision) => {
    const scores = all.map(({ tokens, weight }) => weight * tokens.reduce((sum, i) => sum + logProbs[i], 0));
    const logNormalizer = isUnconstrained[decision] ? 0 : logSumExp(scores);
    return Float64Array.from(scores, (score) => score - logNormalizer);
  });
}

/**
 * Computes each decision's entropy: among its alternatives, or that of its token's distribution.
 */
function decisionEntropies(
  { alternatives, isUnconstrained }: TurnBatch,
  scores: readonly Float64Array[],
  entropy: Float32Array,
): Float64Array {
  return Float64Array.from(alternatives, (all, decision) =>
    isUnconstrained[decision]
      ? entropy[all[0].tokens[0]]
      : scores[decision].reduce((sum, score) => sum - Math.exp(score) * score, 0),
  );
}
