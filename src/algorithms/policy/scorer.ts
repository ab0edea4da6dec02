import type { CausalLM } from "../../models/causal-lm.js";
import { ScoringGraph, type GraphOptions } from "../../models/training-graph.js";
import { budgetBatches } from "./batches.js";
import { decisionsByTurn, layTurns, type Alternative, type TurnBatch, type TurnTokens } from "./turn-batch.js";

/** What the policy makes of turns: arrays with one entry for each decision, by turns. */
export interface TurnScores {
  readonly logProbs: readonly Float64Array[];
  /** Of the states before the decisions; undefined for a model without a value head. */
  readonly values: readonly Float64Array[] | undefined;
  /** Of the distributions that the decisions were drawn from, in nats; undefined unless the scorer was made for them. */
  readonly entropies: readonly Float64Array[] | undefined;
}

/** Scores turns without gradients: under the policy, or under the reference policy, which is the model without its adapter. */
export class TurnScorer {
  /** For batches with tokens that were chosen among many. */
  private withSets: ScoringGraph | undefined;

  private constructor(
    private readonly model: CausalLM,
    private readonly graph: ScoringGraph,
    private readonly options: GraphOptions,
    private readonly maxTokens: number,
  ) {}

  /** `maxTokens` go into one forward pass; entropies are given where they are asked for. */
  static async create(
    model: CausalLM,
    { maxTokens, entropies = false }: { readonly maxTokens: number; readonly entropies?: boolean },
  ): Promise<TurnScorer> {
    const options = { entropy: entropies ? "value" : "none" } as const;
    return new TurnScorer(model, await ScoringGraph.create(model, options), options, maxTokens);
  }

  async score(
    turns: readonly TurnTokens[],
    { temperature = 1, adapter = true }: { readonly temperature?: number; readonly adapter?: boolean } = {},
  ): Promise<TurnScores> {
    const { valueHead, config } = this.model;
    const logProbs: Float64Array[] = [];
    const values: Float64Array[] = [];
    const entropies: Float64Array[] = [];
    for (const { numbers, laid } of budgetBatches(turns, this.maxTokens, config)) {
      const part = numbers.map((i) => turns[i]);
      const batch = layTurns(part, laid, temperature);
      const graph = batch.hasSets ? await this.graphWithSets() : this.graph;
      const scores = await graph.run(batch.tokens, { adapter });
      const decided = decisionLogProbs(batch, scores.logProbs);
      const open = scores.entropy && decisionEntropies(batch, scores.logProbs, scores.entropy);
      const { values: all } = scores;
      decisionsByTurn(batch).forEach((decisions, turn) => {
        const of = (value: (decision: number) => number) => Float64Array.from(decisions, value);
        const first = (decision: number) => batch.alternatives[decision][0].tokens[0];
        logProbs[numbers[turn]] = of((decision) => decided[decision]);
        if (open !== undefined) entropies[numbers[turn]] = of((decision) => open[decision]);
        if (all !== undefined) values[numbers[turn]] = of((decision) => all[first(decision)]);
      });
    }
    return {
      logProbs,
      values: valueHead === undefined ? undefined : values,
      entropies: entropies.length === 0 ? undefined : entropies,
    };
  }

  async release(): Promise<void> {
    await this.graph.release();
    await this.withSets?.release();
  }

  private async graphWithSets(): Promise<ScoringGraph> {
    return (this.withSets ??= await ScoringGraph.create(this.model, { ...this.options, withSets: true }));
  }
}

/** Each decision's log-probability among its alternatives, from those of all selected tokens. */
function decisionLogProbs({ alternatives, chosen, isFree }: TurnBatch, logProbs: Float32Array): Float64Array {
  return Float64Array.from(alternatives, (all, decision) => {
    const scores = scoresOf(all, logProbs);
    const own = scores[chosen[decision]];
    return isFree[decision] ? own : own - logSum(scores);
  });
}

function scoresOf(alternatives: readonly Alternative[], logProbs: Float32Array): number[] {
  return alternatives.map(({ tokens, weight }) => weight * tokens.reduce((sum, i) => sum + logProbs[i], 0));
}

/** The entropy of each decision: of the choice among its alternatives, or of the whole vocabulary's distribution. */
function decisionEntropies(
  { alternatives, isFree }: TurnBatch,
  logProbs: Float32Array,
  entropy: Float32Array,
): Float64Array {
  return Float64Array.from(alternatives, (all, decision) => {
    if (isFree[decision]) return entropy[all[0].tokens[0]];
    const scores = scoresOf(all, logProbs);
    const total = logSum(scores);
    return scores.reduce((sum, score) => sum - Math.exp(score - total) * (score - total), 0);
  });
}

/** log(sum of exp(x)) */
function logSum(x: readonly number[]): number {
  const largest = Math.max(...x);
  return largest + Math.log(x.reduce((sum, value) => sum + Math.exp(value - largest), 0));
}
