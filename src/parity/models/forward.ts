import { compile } from "../../graph/index.js";
import { packSequences } from "../../models/batch.js";
import type { CausalLM } from "../../models/causal-lm.js";
import { vocabularyLogits } from "../../models/policy.js";
import { sequenceGraph } from "../../models/sequence-graph.js";
import type { ScopeOptions } from "../../models/scope.js";
import type { Session } from "../../runtime/session.js";

/** A model's scores of every token of whole rows. */
export class Forward {
  private constructor(
    private readonly model: CausalLM,
    private readonly session: Session,
  ) {}

  static async create(model: CausalLM, adapterForm: ScopeOptions["adapterForm"] = "separate"): Promise<Forward> {
    const scope = model.scope(adapterForm);
    const hidden = sequenceGraph(model.config, scope, { withPrefix: false, states: "all" });
    const graph = compile({ hidden, logits: vocabularyLogits(model.config, scope, hidden) });
    return new Forward(model, await model.createSession(graph));
  }

  /** Final hidden states [tokens, width] and logits [tokens, vocabulary], the rows' tokens one after another. */
  async run(
    rows: readonly (readonly number[])[],
    { adapter = true }: { adapter?: boolean } = {},
  ): Promise<{ hidden: Float32Array; logits: Float32Array }> {
    const { model, session } = this;
    const { feeds } = packSequences(model.config, [{ prefix: [], rows }], { withPrefix: false });
    const { graph } = session;
    const outputs = await session.run({
      ...feeds,
      ...model.parameterViews(graph, { adapter }),
    });
    const tokens = rows.reduce((sum, row) => sum + row.length, 0);
    const { hiddenSize, vocabSize } = model.config;
    return {
      hidden: outputs.hidden.data.subarray(0, tokens * hiddenSize),
      logits: outputs.logits.data.subarray(0, tokens * vocabSize),
    };
  }

  /** The most likely `count` tokens after each row; a token that ends text is like any other. */
  async greedy(rows: readonly (readonly number[])[], count: number): Promise<number[][]> {
    const { vocabSize } = this.model.config;
    const grown = rows.map((row) => [...row]);
    for (let step = 0; step < count; step++) {
      const { logits } = await this.run(grown);
      let end = 0;
      for (const row of grown) {
        end += row.length * vocabSize;
        row.push(largestIndex(logits.subarray(end - vocabSize, end)));
      }
    }
    return grown.map((row, i) => row.slice(rows[i].length));
  }

  async release(): Promise<void> {
    await this.session.release();
  }
}

function largestIndex(values: Float32Array): number {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i] > values[best]) best = i;
  return best;
}
