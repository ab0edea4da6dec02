import { invalidArgument } from "../../core/errors.js";
import type { LanguageModel } from "../../generation/index.js";
import type { FrozenStates, TokenScores } from "../../models/graphs/index.js";
import { SequenceGraphs, type SequenceBatch } from "../algorithms/shared/sequence-batches.js";

/**
 * Sums the log-probabilities of each sequence of a batch's items, with weights per selected token.
 */
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

/**
 * The policy that preference training stays close to: a given model, or the trained model as it is
 * when training starts.
 */
export class ReferencePolicy {
  private constructor(
    private readonly graphs: SequenceGraphs,
    /** Frees the trained values that were copied. */
    private readonly freeCopy: () => void = () => {},
    private readonly options: { readonly adapter?: boolean } = {},
  ) {}

  /**
   * `frozenStates` are the trained model's.
   * @throws INVALID_ARGUMENT for a reference model with another vocabulary, INVALID_STATE for a
   * model without trainable parameters.
   */
  static async create(
    model: LanguageModel,
    {
      refModel,
      frozenStates,
    }: { readonly refModel?: LanguageModel | undefined; readonly frozenStates?: FrozenStates | undefined } = {},
  ): Promise<ReferencePolicy> {
    if (refModel !== undefined) {
      checkVocabulary(model, refModel);
      return new ReferencePolicy(new SequenceGraphs(refModel.policy));
    }
    // Where a service has the weights, the adapter is new, and the model without it is the
    // reference policy.
    if (model.policy.causalLM === undefined)
      return new ReferencePolicy(new SequenceGraphs(model.policy), undefined, { adapter: false });
    const { causalLM } = model;
    const copy = causalLM.withOwnValues();
    const { data } = await causalLM.runtime.read(causalLM.parameters.values);
    await causalLM.runtime.write(copy.parameters.values, data);
    const graphs = new SequenceGraphs(model.withCausalLM(copy).policy, frozenStates);
    return new ReferencePolicy(graphs, () => copy.parameters.free());
  }

  /** Returns the log-probabilities of each item's sequences. */
  async score(batch: SequenceBatch, weights?: ArrayLike<number>): Promise<number[][]> {
    return sumLogProbs(batch, await this.graphs.score(batch.tokens, this.options), weights);
  }

  async release(): Promise<void> {
    await this.graphs.release();
    this.freeCopy();
  }
}

function checkVocabulary(model: LanguageModel, refModel: LanguageModel): void {
  const [size, refSize] = [model, refModel].map(({ policy }) => policy.config.vocabSize);
  if (size === refSize) return;
  throw invalidArgument(
    `\`refModel\` has ${refSize} tokens, but the trained model has ${size}. Use a model with the same tokenizer.`,
  );
}
