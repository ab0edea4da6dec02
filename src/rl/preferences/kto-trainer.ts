import { printWarning } from "../../core/terminal-text.js";
import { checkIsModel, type LanguageModel } from "../../generation/index.js";
import { KtoLearner, type KtoEvaluation, type KtoMetrics, type CompletionMetrics } from "./kto-learner.js";
import { resolveKtoConfig, type KtoConfig, type KtoOptions } from "./kto-settings.js";
import { BatchSchedule } from "../algorithms/shared/batch-schedule.js";
import { encodeLabeled, type UnpairedPreferenceExample, type LabeledTokens } from "./preference-example.js";
import type { ExampleTrainOptions } from "../train/example-trainer.js";
import { getEncodingOptions, PreferenceTrainer, type PreferenceTrainerParts } from "./preference-trainer.js";

/** Options of `KtoTrainer`, named as TRL's. */
export interface KtoTrainerOptions extends KtoOptions {
  /** Training examples. */
  readonly train?: readonly UnpairedPreferenceExample[];
  /** Examples for `evaluate`. */
  readonly evaluation?: readonly UnpairedPreferenceExample[];
  /**
   * The reference policy. Default: a copy of the trained parameters as they are when the trainer is
   * created.
   */
  readonly refModel?: LanguageModel;
}

/** Callbacks of `KtoTrainer.train`. */
export interface KtoTrainOptions extends ExampleTrainOptions<KtoMetrics, KtoEvaluation> {}

/**
 * Kahneman-Tversky optimization (Ethayarajh et al. 2024): raises the likelihood of desirable
 * completions and lowers that of others, close to a reference policy. The model needs trainable
 * parameters: an adapter (`getPeftModel`) or all weights.
 */
export class KtoTrainer extends PreferenceTrainer<
  UnpairedPreferenceExample,
  LabeledTokens,
  CompletionMetrics,
  KtoEvaluation
> {
  /**
   * @throws INVALID_STATE for a model without trainable parameters; INVALID_ARGUMENT for invalid
   * settings and examples; TEMPLATE_FAILED.
   */
  static async create(
    model: LanguageModel,
    { train, evaluation = [], refModel, ...options }: KtoTrainerOptions = {},
  ): Promise<KtoTrainer> {
    checkIsModel("The first argument of KtoTrainer.create is", model);
    const config = resolveKtoConfig(options);
    const limits = getEncodingOptions(model, config);
    const encode = (examples: readonly UnpairedPreferenceExample[]) =>
      encodeLabeled(examples, () => model.tokenizer, limits);
    const dataset = train && encode(train);
    if (dataset !== undefined) warnOfImbalance(dataset.examples, config);
    const schedule = dataset && new BatchSchedule(dataset.examples, config, ({ example }) => example.tokens.length);
    const evalExamples = evaluation.length === 0 ? [] : encode(evaluation).examples;
    const totalSteps = schedule?.totalSteps ?? config.maxSteps;
    const learner = await KtoLearner.create(model, config, { totalSteps, refModel, maxLength: limits.maxLength });
    const own = { name: "KtoTrainer", metricPrefix: "kto", learner, schedule, dataset, evalExamples };
    return new KtoTrainer(config, { ...own, encode: (examples) => encode(examples).examples });
  }

  private constructor(
    readonly config: KtoConfig,
    parts: PreferenceTrainerParts<UnpairedPreferenceExample, LabeledTokens, CompletionMetrics, KtoEvaluation>,
  ) {
    super(parts);
  }
}

/**
 * Ratio of the desirable completions' weight to that of the others up to which TRL expects no
 * warning.
 */
const MAX_RATIO = 1.33;

/** Warns of weights with which desirable completions count too little or too much, as TRL does. */
function warnOfImbalance(
  examples: readonly LabeledTokens[],
  { desirableWeight, undesirableWeight }: Pick<KtoConfig, "desirableWeight" | "undesirableWeight">,
): void {
  const desirable = examples.filter(({ label }) => label).length;
  const undesirable = examples.length - desirable;
  if (desirable === undesirable) return;
  const counts = `${desirable} completions are desirable and ${undesirable} are not`;
  if (desirable === 0 || undesirable === 0) return printWarning(`${counts}. KTO compares both kinds.`);
  const isBetween = (value: number, [low, high]: readonly number[]) => low <= value && value <= high;
  const round = (value: number) => Math.round(100 * value) / 100;
  const balanced = (undesirable * undesirableWeight) / desirable;
  const forDesirable = [balanced, balanced * MAX_RATIO].map(round);
  const others = (desirable * desirableWeight) / undesirable;
  const forUndesirable = [others / MAX_RATIO, others].map(round);
  if (isBetween(desirableWeight, forDesirable) || isBetween(undesirableWeight, forUndesirable)) return;
  printWarning(
    `${counts}. Balance them by a \`desirableWeight\` of ${forDesirable.join(" to ")}, or an \`undesirableWeight\` of ${forUndesirable.join(" to ")}.`,
  );
}
