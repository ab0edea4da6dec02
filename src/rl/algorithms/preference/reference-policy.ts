import { invalidArgument } from "../../../core/errors.js";
import type { LanguageModel } from "../../../generation/language-model.js";
import type { CausalLM } from "../../../models/causal-lm.js";
import type { TokenScores } from "../../../models/graphs/training-graph.js";
import { SequenceGraphs, type SequenceBatch } from "../shared/sequence-batches.js";

/** Sums the log-probabilities of each sequence of a batch's items, with weights per selected token. */
export function sumLogProbs(
  { indices, items, sequences }: SequenceBatch,
  { logProbs }: Pick<TokenScores, "logProbs">,
  weights?: ArrayLike<number>,
): number[][] {
  const sums: number[][] = indices.map(() => []);
  items.forEach((item, i) => {
    const sequence = sequences[i];
    sums[item][sequence] = (sums[item][sequence] ?? 0) + logProbs[i] * (weights?.[i] ?? 1);
  });
  return sums;
}

/** The policy that preference training stays close to: a given model, or the trained model as it is when training starts. */
export class ReferencePolicy {
  private readonly graphs: SequenceGraphs;

  private constructor(
    causalLM: CausalLM,
    /** Whether the trained values are a copy that this class owns. */
    private readonly copy: CausalLM | undefined,
  ) {
    this.graphs = new SequenceGraphs(causalLM);
  }

  /** @throws INVALID_ARGUMENT for a reference model with another vocabulary, INVALID_STATE for a model without trainable parameters. */
  static async create({ causalLM }: LanguageModel, refModel?: LanguageModel): Promise<ReferencePolicy> {
    if (refModel === undefined) {
      const copy = causalLM.withOwnValues();
      const { data } = await causalLM.runtime.read(causalLM.parameters.values);
      await causalLM.runtime.write(copy.parameters.values, data);
      return new ReferencePolicy(copy, copy);
    }
    const [size, refSize] = [causalLM, refModel.causalLM].map(({ config }) => config.vocabSize);
    if (size !== refSize)
      throw invalidArgument(
        `\`refModel\` has ${refSize} tokens, but the trained model has ${size}. Use a model with the same tokenizer.`,
      );
    return new ReferencePolicy(refModel.causalLM, undefined);
  }

  /** Returns the log-probabilities of each item's sequences. */
  async score(batch: SequenceBatch, weights?: ArrayLike<number>): Promise<number[][]> {
    return sumLogProbs(batch, await this.graphs.score(batch.tokens), weights);
  }

  async release(): Promise<void> {
    await this.graphs.release();
    this.copy?.parameters.free();
  }
}
