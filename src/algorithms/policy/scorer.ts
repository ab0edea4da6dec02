import type { CausalLM } from "../../models/causal-lm.js";
import { ScoringGraph } from "../../models/training-graph.js";
import { budgetBatches } from "./batches.js";
import { decisionsByTurn, layTurns, type TurnBatch, type TurnTokens } from "./turn-batch.js";

/** What the policy makes of turns: arrays with one entry for each decision, by turns. */
export interface TurnScores {
  readonly logProbs: readonly Float64Array[];
  /** Of the states before the decisions; undefined for a model without a value head. */
  readonly values: readonly Float64Array[] | undefined;
}

/** Scores turns without gradients: under the policy, or under the reference policy, which is the model without its adapter. */
export class TurnScorer {
  private constructor(
    private readonly model: CausalLM,
    private readonly graph: ScoringGraph,
    private readonly maxTokens: number,
  ) {}

  /** `maxTokens` go into one forward pass. */
  static async create(model: CausalLM, { maxTokens }: { readonly maxTokens: number }): Promise<TurnScorer> {
    return new TurnScorer(model, await ScoringGraph.create(model, { adapterForm: "merged" }), maxTokens);
  }

  async score(
    turns: readonly TurnTokens[],
    { temperature = 1, adapter = true }: { readonly temperature?: number; readonly adapter?: boolean } = {},
  ): Promise<TurnScores> {
    const { valueHead, config } = this.model;
    const logProbs: Float64Array[] = [];
    const values: Float64Array[] = [];
    for (const numbers of budgetBatches(turns, this.maxTokens)) {
      const batch = layTurns(
        numbers.map((i) => turns[i]),
        config.hiddenSize,
        temperature,
      );
      const scores = await this.graph.run(batch.tokens, { adapter });
      const decided = decisionLogProbs(batch, scores.logProbs);
      decisionsByTurn(batch).forEach((decisions, turn) => {
        logProbs[numbers[turn]] = Float64Array.from(decisions, (decision) => decided[decision]);
        const { values: all } = scores;
        if (all !== undefined)
          values[numbers[turn]] = Float64Array.from(decisions, (decision) => all[batch.alternatives[decision][0]]);
      });
    }
    return { logProbs, values: valueHead === undefined ? undefined : values };
  }

  async release(): Promise<void> {
    await this.graph.release();
  }
}

/** Each decision's log-probability among its alternatives, from those of all selected tokens. */
function decisionLogProbs({ alternatives, chosen }: TurnBatch, logProbs: Float32Array): Float64Array {
  return Float64Array.from(alternatives, (numbers, decision) => {
    const own = logProbs[numbers[chosen[decision]]];
    if (numbers.length === 1) return own;
    const largest = Math.max(...numbers.map((i) => logProbs[i]));
    const sum = numbers.reduce((total, i) => total + Math.exp(logProbs[i] - largest), 0);
    return own - largest - Math.log(sum);
  });
}
