import { compile } from "../../../src/engine/graph/index.js";
import { packSequences } from "../../../src/models/graphs/sequence-batch.js";
import type { CausalLM } from "../../../src/models/causal-lm.js";
import { vocabularyLogits } from "../../../src/models/graphs/policy-nodes.js";
import { sequenceGraph } from "../../../src/models/graphs/sequence-graph.js";
import type { ParameterScopeOptions } from "../../../src/models/model-parameter-scope.js";
import type { Session } from "../../../src/engine/runtime/session.js";

/** A model's scores of every token of whole rows. */
export class ForwardPass {
  private constructor(
    private readonly model: CausalLM,
    private readonly session: Session,
  ) {}

  static async create(
    model: CausalLM,
    adapterMode: ParameterScopeOptions["adapterMode"] = "unmerged",
  ): Promise<ForwardPass> {
    const scope = model.scope(adapterMode);
    const hidden = sequenceGraph(model.config, scope, { withPrefix: false, states: "all" });
    const graph = compile({ hidden, logits: vocabularyLogits(model.config, scope, hidden) });
    return new ForwardPass(model, await model.createSession(graph));
  }

  /**
   * Final hidden states [tokens, width] and logits [tokens, vocabulary], the rows' tokens one after
   * another.
   */
  async run(
    rows: readonly (readonly number[])[],
    { adapter = true }: { adapter?: boolean } = {},
  ): Promise<{ hidden: Float32Array; logits: Float32Array }> {
    const { model, session } = this;
    const { feeds } = packSequences(model.config, [{ prefix: [], rows }], { withPrefix: false });
    const { graph } = session;
    const outputs = await session.run({
      ...feeds,
      ...model.getParameterViews(graph, { adapter }),
    });
    const tokens = rows.reduce((sum, row) => sum + row.length, 0);
    const { hiddenSize, vocabSize } = model.config;
    return {
      hidden: outputs.hidden.data.subarray(0, tokens * hiddenSize),
      logits: outputs.logits.data.subarray(0, tokens * vocabSize),
    };
  }

  /** The most likely `count` tokens after each row; a token that ends text is like any other. */
  async generateGreedy(rows: readonly (readonly number[])[], count: number): Promise<number[][]> {
    const { vocabSize } = this.model.config;
    const sequences = rows.map((row) => [...row]);
    for (let step = 0; step < count; step++) {
      const { logits } = await this.run(sequences);
      let end = 0;
      for (const row of sequences) {
        end += row.length * vocabSize;
        row.push(argMax(logits.subarray(end - vocabSize, end)));
      }
    }
    return sequences.map((row, i) => row.slice(rows[i].length));
  }

  async release(): Promise<void> {
    await this.session.release();
  }
}

function argMax(values: Float32Array): number {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i] > values[best]) best = i;
  return best;
}
