import { LlamaGymError } from "../../core/errors.js";
import { checkIsModel, type LanguageModel } from "../../generation/index.js";
import { BatchSchedule } from "../algorithms/shared/batch-schedule.js";
import { resolveSftConfig, type SftConfig, type SftOptions } from "../algorithms/sft/settings.js";
import { SftLearner, type SftEvaluation, type SftLossMetrics, type SftMetrics } from "../algorithms/sft/sft-learner.js";
import { encodeDataset, type EncodedDataset } from "../data/encode-dataset.js";
import { encodeExample, type SftExample, type TokenExample } from "../data/sft-example.js";
import { ExampleTrainer, type ExampleTrainOptions } from "./example-trainer.js";

/** Options of `SftTrainer`, named as TRL's. */
export interface SftTrainerOptions extends SftOptions {
  /**
   * Training examples: a list, or a function of the update's index (from 0), which needs
   * `maxSteps`.
   */
  readonly train?: readonly SftExample[] | ((step: number) => readonly SftExample[]);
  /** Examples for `evaluate`. */
  readonly evaluation?: readonly SftExample[];
}

/** Callbacks of `SftTrainer.train`. */
export interface SftTrainOptions extends ExampleTrainOptions<SftMetrics, SftEvaluation> {}

/**
 * Supervised fine-tuning: maximizes the likelihood of the completions in examples. The model needs
 * trainable parameters: an adapter (`getPeftModel`) or all weights.
 */
export class SftTrainer extends ExampleTrainer<TokenExample, SftLossMetrics, SftEvaluation> {
  private constructor(
    readonly config: SftConfig,
    /** The encoded training examples; undefined without a list of them. */
    readonly dataset: EncodedDataset | undefined,
    private readonly learner: SftLearner,
    private readonly evalExamples: readonly TokenExample[],
    getBatch: ((step: number) => { examples: readonly TokenExample[]; epoch: number | undefined }) | undefined,
  ) {
    super({ name: "SftTrainer", metricPrefix: "sft", learner, getBatch, evalExamples });
  }

  /**
   * @throws INVALID_STATE for a model without trainable parameters; INVALID_ARGUMENT for invalid
   * settings and examples; TEMPLATE_FAILED.
   */
  static async create(
    model: LanguageModel,
    { train, evaluation = [], ...options }: SftTrainerOptions = {},
  ): Promise<SftTrainer> {
    checkIsModel("The first argument of SftTrainer.create is", model);
    const config = resolveSftConfig(options);
    const { maxPositions, vocabSize } = model.policy.config;
    const maxLength = Math.min(config.maxLength ?? Infinity, maxPositions);
    const encodingOptions = { ...config, maxLength, vocabSize };
    const encode = (examples: readonly SftExample[]) => encodeDataset(examples, () => model.tokenizer, encodingOptions);
    const dataset = train === undefined || typeof train === "function" ? undefined : encode(train);
    const evalExamples = evaluation.length === 0 ? [] : encode(evaluation).examples;
    const schedule = dataset && new BatchSchedule(dataset.examples, config, ({ tokens }) => tokens.length);
    const totalSteps = schedule?.totalSteps ?? config.maxSteps;
    const learner = await SftLearner.create(model, config, { totalSteps });
    if (train === undefined) return new SftTrainer(config, dataset, learner, evalExamples, undefined);
    if (totalSteps === undefined)
      throw new LlamaGymError("INVALID_ARGUMENT", "Generated training examples have no epochs: set `maxSteps`.");
    const getBatch =
      typeof train === "function"
        ? (step: number) => ({ examples: encodeExamples(train(step), model, config), epoch: undefined })
        : (step: number) => schedule!.batch(step);
    return new SftTrainer(config, dataset, learner, evalExamples, getBatch);
  }

  /** Makes one update on the given examples. @throws as `create`, and TRAINING_DIVERGED. */
  async update(examples: readonly SftExample[]): Promise<SftMetrics> {
    return this.learner.update(encodeExamples(examples, this.model, this.config));
  }

  /** Computes loss and accuracy on the evaluation examples, or on others. */
  async evaluate(examples?: readonly SftExample[]): Promise<SftEvaluation> {
    const encoded = examples === undefined ? this.evalExamples : encodeExamples(examples, this.model, this.config);
    return this.learner.evaluate(encoded);
  }
}

function encodeExamples(
  examples: readonly SftExample[],
  model: LanguageModel,
  { assistantOnlyLoss, toolCalls }: SftConfig,
): TokenExample[] {
  const options = { assistantOnlyLoss, toolCalls, vocabSize: model.policy.config.vocabSize };
  return examples.map((example) => encodeExample(example, () => model.tokenizer, options));
}
