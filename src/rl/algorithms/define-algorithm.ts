import { invalidArgument, type LlamaGymError } from "../../core/errors.js";
import { resolveSettings, type SettingTable, type Settings } from "../../core/settings.js";
import type { LanguageModel } from "../../generation/index.js";
import type { CausalLM } from "../../models/index.js";
import type { AlgorithmDefinition, RolloutRequest, UpdateConfig } from "./algorithm-definition.js";
import { checkDefinition, withChecks } from "./check-definition.js";
import type { Learner, LearnerContext } from "./learner.js";
import { createMicroBatchLoss, PolicyLearner } from "./policy-learner.js";
import type { MicroBatchLoss } from "./update/micro-batch-graphs.js";

/** An algorithm with its options, ready to be created on a model. */
export interface ConfiguredAlgorithm {
  readonly name: string;
  readonly hasCritic: boolean;
  /** @throws INVALID_STATE for a model that the algorithm cannot train. */
  create(model: LanguageModel, context: LearnerContext): Promise<Learner>;
  /**
   * The loss, with which workers compute gradients; undefined for an algorithm with its own update.
   */
  readonly microBatchLoss: MicroBatchLoss | undefined;
  /**
   * The rollout of an update; undefined for an algorithm with its own update.
   * @throws INVALID_ARGUMENT if the algorithm asks for what cannot be collected.
   */
  readonly rollout: () => RolloutRequest | undefined;
}

/** An algorithm: a function of its options, with the table of its settings. */
export interface Algorithm<
  Options extends object = never,
  Config = unknown,
  Table extends SettingTable = SettingTable,
> {
  /** @throws INVALID_ARGUMENT for options out of range. */
  (options?: Options): ConfiguredAlgorithm;
  readonly algorithmName: string;
  /** Name in messages. */
  readonly title: string;
  readonly settings: Table;
  /** Whether it trains a value head. */
  readonly hasCritic: boolean;
  /** The setting that weighs the KL to the reference policy. */
  readonly klSetting: string | undefined;
  /** Returns the complete configuration. @throws INVALID_ARGUMENT for options out of range. */
  readonly resolve: (options?: Options) => Config;
}

/**
 * An algorithm with its own update: implements `Learner` instead of being run by `PolicyLearner`.
 */
export interface CustomAlgorithm<Table extends SettingTable, Options extends object, Config> extends Pick<
  AlgorithmDefinition<Table, Options, Config, unknown>,
  "name" | "title" | "settings" | "resolve" | "critic"
> {
  readonly create: (model: CausalLM, config: Config, context: LearnerContext) => Promise<Learner>;
}

/**
 * Defines an algorithm for `new Agent(model, tokenizer, { algorithm: myAlgorithm({ ... })
 * })` and `llamagym train --algorithm ./my-algorithm.js`. docs/algorithms/writing-your-own.md walks
 * through an example.
 *
 * @throws INVALID_ARGUMENT for a definition with an unknown or missing field, or a setting without a
 * description. What its functions return is checked when they are called.
 */
export function defineAlgorithm<
  const Table extends SettingTable,
  Options extends object = Partial<Settings<Table>>,
  Config extends UpdateConfig = Settings<Table> & UpdateConfig,
  State = undefined,
>(definition: AlgorithmDefinition<Table, Options, Config, State>): Algorithm<Options, Config, Table>;
export function defineAlgorithm<
  const Table extends SettingTable,
  Options extends object = Partial<Settings<Table>>,
  Config = Settings<Table>,
>(definition: CustomAlgorithm<Table, Options, Config>): Algorithm<Options, Config, Table>;
export function defineAlgorithm<Table extends SettingTable, Options extends object, Config extends UpdateConfig, State>(
  given: AlgorithmDefinition<Table, Options, Config, State> | CustomAlgorithm<Table, Options, Config>,
): Algorithm<Options, Config, Table> {
  checkDefinition(given);
  const definition = "create" in given ? given : withChecks(given);
  const { name, title = name, settings, critic: hasCritic = false } = definition;
  const klSetting = "klSetting" in definition ? definition.klSetting : undefined;
  const resolveDefaults = (options: Options) => resolveSettings(title, settings, options) as unknown as Config;
  if (!("create" in definition) && definition.resolve === undefined && !Object.hasOwn(settings, "learningRate"))
    throw missingLearningRate(title);
  const resolve = (options = {} as Options) => {
    const config = (definition.resolve ?? resolveDefaults)(options);
    if (!("create" in definition) && !Number.isFinite(config.learningRate)) throw missingLearningRate(title);
    return config;
  };
  const create = async (model: LanguageModel, config: Config, context: LearnerContext): Promise<Learner> => {
    if (!("create" in definition)) return PolicyLearner.create(model.policy, definition, config, context);
    if (context.distillation === undefined) return definition.create(model.causalLM, config, context);
    throw invalidArgument(`${title} has its own update, which a teacher is not part of. Use another algorithm.`);
  };
  const configure = (options = {} as Options): ConfiguredAlgorithm => {
    const config = resolve(options);
    return {
      name,
      microBatchLoss: "create" in definition ? undefined : createMicroBatchLoss(definition, config),
      rollout: () => ("create" in definition ? undefined : definition.rollout(config)),
      hasCritic,
      create: async (model, context) => {
        const { maxCompletionLength } = context;
        const isDefault = maxCompletionLength !== undefined && Object.hasOwn(settings, "maxCompletionLength");
        return create(model, resolve(isDefault ? { maxCompletionLength, ...options } : options), context);
      },
    };
  };
  return Object.assign(configure, { algorithmName: name, title, settings, hasCritic, klSetting, resolve });
}

function missingLearningRate(title: string): LlamaGymError {
  return invalidArgument(
    `${title} has no learning rate, which AdamW needs. Add it to its \`settings\`: learningRate: settings.number({ default: 1e-5, ` +
      'above: 0, description: "Learning rate of AdamW." }), or return it from `resolve`.',
  );
}
