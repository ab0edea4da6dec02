import { input, mul, reduceSum } from "../engine/graph/index.js";
import { tensor } from "../engine/tensor/index.js";
import type {
  LanguageModel,
  PolicyOptimizer,
  PolicyOptimizerOptions,
  PolicyScorer,
  PolicyTrainer,
} from "../generation/index.js";
import { packSharedPrefixes, type SelectedToken, type TokenBatch } from "../models/graphs/index.js";
import type { Tokenizer } from "../models/text/index.js";
import { translateTokens } from "./translate-tokens.js";

/** States of a row of a batch: the selected tokens by the number of tokens before them. */
interface RowStates {
  readonly tokens: readonly number[];
  readonly selectedByLength: Map<number, number[]>;
}

/** States as the critic reads them, with the selected tokens of the batch that each precedes. */
interface CriticBatch {
  readonly batch: TokenBatch;
  readonly indices: readonly (readonly number[])[];
}

/**
 * Estimates the values of a policy's states by a model with a value head in this process. The model
 * reads what the policy reads, as text where their vocabularies differ, and nothing after a state.
 */
export class LocalCritic {
  private scorer: Promise<PolicyScorer> | undefined;
  private trainer: Promise<PolicyTrainer> | undefined;

  constructor(
    private readonly model: LanguageModel,
    private readonly tokenizer: Tokenizer,
  ) {}

  get valueHead() {
    return this.model.policy.valueHead;
  }

  /** Returns the value of the state before each selected token. */
  async score(batch: TokenBatch): Promise<Float32Array> {
    this.scorer ??= this.model.policy.createScorer();
    const scorer = await this.scorer;
    const values = new Float32Array(batch.selected.length);
    for (const part of this.layOut(batch)) {
      const scores = await scorer.run(part.batch);
      part.indices.forEach((selected, state) => {
        for (const i of selected) values[i] = scores.values![state];
      });
    }
    return values;
  }

  /** Adds the gradient of sum(weights * values) to that of the next step, or begins it. */
  async addGradient(
    batch: TokenBatch,
    weights: Float32Array,
    { accumulate }: { readonly accumulate: boolean },
  ): Promise<void> {
    this.trainer ??= this.model.policy.createTrainer(({ selected, values }) => ({
      loss: reduceSum(mul(input("weights", "float32", [selected]), values!)),
    }));
    const trainer = await this.trainer;
    let isFirst = !accumulate;
    for (const part of this.layOut(batch)) {
      const sums = part.indices.map((selected) => selected.reduce((sum, i) => sum + weights[i], 0));
      const inputs = { weights: tensor("float32", [sums.length], Float32Array.from(sums)) };
      await trainer.run(part.batch, inputs, { accumulate: !isFirst });
      isFirst = false;
    }
  }

  /** Creates the optimizer with the learning rate for value heads. */
  createOptimizer({ valueHeadFactor = 1, learningRate, ...options }: PolicyOptimizerOptions): PolicyOptimizer {
    return this.model.policy.createOptimizer({
      ...options,
      ...(learningRate === undefined ? {} : { learningRate: learningRate * valueHeadFactor }),
    });
  }

  markParametersChanged(): void {
    this.model.policy.markParametersChanged();
  }

  async save(folder: string): Promise<void> {
    await this.model.savePretrained(folder);
  }

  async load(folder: string): Promise<void> {
    await this.model.loadTrainedValues(folder);
  }

  async close(): Promise<void> {
    await this.model.close();
  }

  private *layOut(batch: TokenBatch): Generator<CriticBatch> {
    const { config, microBatchTokens } = this.model.policy;
    const rows = listRows(batch).map((row) => this.translate(row));
    const items = rows.map(({ tokens }) => [[...tokens]]);
    for (const { indices, groups, positions } of packSharedPrefixes(items, { microBatchTokens, config })) {
      const selected: SelectedToken[] = [];
      const states: (readonly number[])[] = [];
      indices.forEach((row, i) => {
        const { group, row: groupRow, prefix } = positions[i];
        for (const [length, each] of rows[row].selectedByLength) {
          selected.push({ group, row: groupRow, index: length - prefix, target: 0 });
          states.push(each);
        }
      });
      yield { batch: { groups, selected }, indices: states };
    }
  }

  /** Returns a row in the critic's tokens; the beginning of one beyond its context is dropped. */
  private translate({ tokens, selectedByLength }: RowStates): RowStates {
    const { tokenizer, model } = this;
    const { tokens: translated, lengthOf } = translateTokens(tokens, tokenizer, model.tokenizer);
    const dropped = Math.max(0, translated.length - (model.policy.config.maxPositions - 1));
    const byLength = new Map<number, number[]>();
    for (const [length, selected] of selectedByLength) {
      const own = Math.max(1, lengthOf(length) - dropped);
      byLength.set(own, [...(byLength.get(own) ?? []), ...selected]);
    }
    return { tokens: translated.slice(dropped), selectedByLength: byLength };
  }
}

/** Lists the rows of a batch up to their last state. */
function listRows({ groups, selected }: TokenBatch): RowStates[] {
  const rows = new Map<string, { tokens: readonly number[]; selectedByLength: Map<number, number[]> }>();
  selected.forEach(({ group, row, index }, i) => {
    const key = `${group},${row}`;
    const { prefix, rows: groupRows } = groups[group];
    const found = rows.get(key) ?? { tokens: [...prefix, ...(groupRows[row] ?? [])], selectedByLength: new Map() };
    rows.set(key, found);
    const length = prefix.length + index;
    found.selectedByLength.set(length, [...(found.selectedByLength.get(length) ?? []), i]);
  });
  return Array.from(rows.values(), ({ tokens, selectedByLength }) => ({
    tokens: tokens.slice(0, Math.max(...selectedByLength.keys())),
    selectedByLength,
  }));
}
