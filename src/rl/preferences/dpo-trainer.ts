import { invalidArgument } from "../../core/errors.js";
import { printWarning } from "../../core/terminal-text.js";
import { checkIsModel, type LanguageModel } from "../../generation/index.js";
import { DpoLearner, type DpoEvaluation, type DpoMetrics, type PairMetrics } from "./dpo-learner.js";
import { resolveDpoConfig, type DpoConfig, type DpoOptions } from "./dpo-settings.js";
import { BatchSchedule } from "../algorithms/shared/batch-schedule.js";
import { encodePairs, type PreferenceExample, type TokenPair } from "./preference-example.js";
import type { ExampleTrainOptions } from "../train/example-trainer.js";
import { getEncodingOptions, PreferenceTrainer, type PreferenceTrainerParts } from "./preference-trainer.js";

/** Options of `DpoTrainer`, named as TRL's. */
export interface DpoTrainerOptions extends DpoOptions {
  /** Training examples. */
  readonly train?: readonly PreferenceExample[];
  /** Examples for `evaluate`. */
  readonly evaluation?: readonly PreferenceExample[];
  /**
   * The reference policy. Default: a copy of the trained parameters as they are when the trainer is
   * created.
   */
  readonly refModel?: LanguageModel;
}

/** Callbacks of `DpoTrainer.train`. */
export interface DpoTrainOptions extends ExampleTrainOptions<DpoMetrics, DpoEvaluation> {}

/**
 * Direct preference optimization (Rafailov et al. 2023): raises the likelihood of chosen
 * completions over rejected ones, close to a reference policy. The model needs trainable
 * parameters: an adapter (`getPeftModel`) or all weights.
 */
export class DpoTrainer extends PreferenceTrainer<PreferenceExample, TokenPair, PairMetrics, DpoEvaluation> {
  /**
   * @throws INVALID_STATE for a model without trainable parameters; INVALID_ARGUMENT for invalid
   * settings and examples; TEMPLATE_FAILED.
   */
  static async create(
    model: LanguageModel,
    { train, evaluation = [], refModel, ...options }: DpoTrainerOptions = {},
  ): Promise<DpoTrainer> {
    checkIsModel("The first argument of DpoTrainer.create is", model);
    const config = resolveDpoConfig(options);
    const encode = (examples: readonly PreferenceExample[]) =>
      encodePairs(examples, () => model.tokenizer, getEncodingOptions(model, config));
    const dataset = train && encode(train);
    if (dataset !== undefined && config.lossType !== "sft") warnOfEqualPairs(dataset.examples);
    const schedule =
      dataset &&
      new BatchSchedule(
        dataset.examples,
        config,
        ({ chosen, rejected }) => chosen.tokens.length + rejected.tokens.length,
      );
    const evalExamples = evaluation.length === 0 ? [] : encode(evaluation).examples;
    const totalSteps = schedule?.totalSteps ?? config.maxSteps;
    const learner = await DpoLearner.create(model, config, { totalSteps, refModel });
    const own = { name: "DpoTrainer", metricPrefix: "dpo", learner, schedule, dataset, evalExamples };
    return new DpoTrainer(config, { ...own, encode: (examples) => encode(examples).examples });
  }

  private constructor(
    readonly config: DpoConfig,
    parts: PreferenceTrainerParts<PreferenceExample, TokenPair, PairMetrics, DpoEvaluation>,
  ) {
    super(parts);
  }
}

/** Warns of pairs without a gradient. @throws INVALID_ARGUMENT if there are no others. */
function warnOfEqualPairs(pairs: readonly TokenPair[]): void {
  const equal = pairs.filter(({ chosen, rejected }) => chosen.tokens.join() === rejected.tokens.join()).length;
  if (equal === 0) return;
  const subject = `${equal} of ${pairs.length} pairs have equal completions, perhaps only up to \`maxLength\``;
  if (equal === pairs.length) throw invalidArgument(`${subject}: there is nothing to learn.`);
  printWarning(`${subject}: nothing is learned from them.`);
}
