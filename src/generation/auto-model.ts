import { checkOptions, COUNT, type OptionNames } from "../core/settings.js";
import { ignoreMissingFile } from "../core/files/file-errors.js";
import { getPeftModel as adapt, makeTrainable, replaceValueHead, type PeftOptions } from "../models/adapters/index.js";
import {
  openAdapter,
  openOptionNames,
  openPretrained,
  resolveOptionNames,
  type CausalLM,
  type OpenOptions,
  type ResolveOptions,
} from "../models/index.js";
import { VALUE_HEAD_DEFAULTS, type ValueHeadConfig } from "../engine/nn/index.js";
import { AutoTokenizer, type Tokenizer, type TokenizerOptions } from "../models/text/index.js";
import { checkIsModel, LanguageModel, type LanguageModelOptions } from "./language-model.js";

/** Options of `AutoModelForCausalLM.fromPretrained`. */
export interface PretrainedOptions
  extends OpenOptions, Pick<TokenizerOptions, "splitSpecialTokens">, Pick<LanguageModelOptions, "maxNumSequences"> {
  /** A tokenizer to use instead of the model's. */
  readonly tokenizer?: Tokenizer;
  /** Adapter to load onto the model: a folder or hub id. */
  readonly adapter?: string;
}

const pretrainedOptionNames: OptionNames<PretrainedOptions> = {
  ...openOptionNames,
  splitSpecialTokens: Boolean,
  maxNumSequences: COUNT,
  tokenizer: Object,
  adapter: true,
};

/** Opens causal language models. */
export const AutoModelForCausalLM = {
  /**
   * Opens a model: a folder, a GGUF file, a hub id (`owner/name`, `owner/name:file.gguf`), or a
   * folder with an adapter, which names its base model. Close it when done.
   * @throws LlamaGymError for problems with the files, the hub or the device.
   */
  async fromPretrained(idOrPath: string, options: PretrainedOptions = {}): Promise<LanguageModel> {
    checkOptions("AutoModelForCausalLM.fromPretrained", options, pretrainedOptionNames);
    const { tokenizer, splitSpecialTokens, adapter, maxNumSequences, ...openOptions } = options;
    const loadTokenizer = (folder: string | undefined) => loadTokenizerIfPresent(folder, { splitSpecialTokens });
    const { model, name, path, adapterPath } = await openPretrained(idOrPath, openOptions);
    try {
      const { revision: _, file: __, ...adapterOptions } = openOptions;
      const added = adapter === undefined ? undefined : await openAdapter(model, adapter, adapterOptions);
      const causalLM = added?.causalLM ?? model;
      const resolvedTokenizer =
        tokenizer ??
        (isResized(causalLM, model) ? await loadTokenizer(added?.path) : undefined) ??
        (await loadTokenizer(adapterPath)) ??
        (await loadTokenizer(path));
      return LanguageModel.fromCausalLM(causalLM, resolvedTokenizer, { maxNumSequences, name });
    } catch (error) {
      await model.close();
      throw error;
    }
  },
};

/** Options of `AutoModelForCausalLMWithValueHead.fromPretrained`. */
export interface TrainablePretrainedOptions extends PretrainedOptions {
  /**
   * Adapter to train; by default LlamaGym's rank 16 and alpha 32, on all linear layers. Null trains
   * all of the model's weights.
   */
  readonly peftConfig?: PeftOptions | null;
  /** Value head on the hidden states; TRL's single layer by default. */
  readonly valueHead?: Partial<ValueHeadConfig>;
}

/**
 * LlamaGym's adapter, without dropout, so that the trained policy is the one that was sampled from.
 */
const ADAPTER_DEFAULTS: PeftOptions = { r: 16, loraAlpha: 32, targetModules: "all-linear" };

/** Opens models for reinforcement learning, with trainable parameters and a value head. */
export const AutoModelForCausalLMWithValueHead = {
  /**
   * Opens a model as AutoModelForCausalLM does and adds a new adapter and a new value head. A saved
   * adapter continues, with its value head if it has one. Throws as
   * AutoModelForCausalLM.fromPretrained and getPeftModel do.
   */
  async fromPretrained(idOrPath: string, options: TrainablePretrainedOptions = {}): Promise<LanguageModel> {
    checkOptions(
      "AutoModelForCausalLMWithValueHead.fromPretrained",
      options,
      { ...pretrainedOptionNames, peftConfig: true, valueHead: true },
      "Settings of the adapter go into `peftConfig`.",
    );
    checkOptions("A value head", options.valueHead, VALUE_HEAD_DEFAULTS);
    return openTrainable(idOrPath, { ...options, valueHead: options.valueHead ?? {} });
  },
};

/**
 * Opens a model with a trainable adapter or trainable weights, and a value head unless that is
 * null. A saved adapter continues with its value head if both have one; a missing one is added,
 * newly initialized, and one that is not needed is dropped. Throws as
 * AutoModelForCausalLM.fromPretrained and getPeftModel do.
 */
export async function openTrainable(
  idOrPath: string,
  options: Omit<TrainablePretrainedOptions, "valueHead"> & {
    /** A value head, none, or "saved": the one that a saved adapter has. */
    readonly valueHead: Partial<ValueHeadConfig> | null | "saved";
  },
): Promise<LanguageModel> {
  const { peftConfig, valueHead: valueHeadOptions, ...pretrainedOptions } = options;
  const model = await AutoModelForCausalLM.fromPretrained(idOrPath, pretrainedOptions);
  const { causalLM } = model;
  try {
    const valueHead =
      valueHeadOptions === null || valueHeadOptions === "saved"
        ? undefined
        : { ...VALUE_HEAD_DEFAULTS, dropout: 0, ...valueHeadOptions };
    const seed = peftConfig?.seed;
    if (causalLM.isTrainable) {
      const isKept = valueHeadOptions === "saved" || (causalLM.valueHead === undefined) === (valueHead === undefined);
      return isKept ? model : model.withCausalLM(await replaceValueHead(causalLM, valueHead, { seed }));
    }
    return model.withCausalLM(
      peftConfig === null
        ? await makeTrainable(causalLM, "all", { valueHead, seed })
        : await adapt(causalLM, { ...ADAPTER_DEFAULTS, ...peftConfig, valueHead }),
    );
  } catch (error) {
    await model.close();
    throw error;
  }
}

/** Opens adapters saved by PEFT or this library. */
export const PeftModel = {
  /**
   * Loads an adapter from a folder or a hub id. The returned model shares weights and runtime with
   * the given one.
   * @throws FILE_NOT_FOUND, FILE_CORRUPT, MODEL_UNSUPPORTED or WEIGHTS_MISMATCH for an adapter that
   * does not load, INVALID_STATE for a model that has an adapter.
   */
  async fromPretrained(model: LanguageModel, idOrPath: string, options: ResolveOptions = {}): Promise<LanguageModel> {
    checkOptions("PeftModel.fromPretrained", options, resolveOptionNames);
    checkIsModel("The first argument of PeftModel.fromPretrained is", model);
    const { causalLM, path } = await openAdapter(model.causalLM, idOrPath, options);
    const adapted = model.withCausalLM(causalLM);
    const tokenizer = isResized(causalLM, model.causalLM) ? await loadTokenizerIfPresent(path, {}) : undefined;
    return tokenizer === undefined ? adapted : adapted.withTokenizer(tokenizer);
  },
};

/**
 * Adds a new low-rank adapter, which does not change the outputs until it is trained. The returned
 * model shares weights and runtime with the given one.
 * @throws INVALID_ARGUMENT for values out of range and targets that match nothing, INVALID_STATE
 * for a model that has an adapter.
 */
export async function getPeftModel(model: LanguageModel, options: PeftOptions = {}): Promise<LanguageModel> {
  checkIsModel("The first argument of getPeftModel is", model);
  return model.withCausalLM(await adapt(model.causalLM, options));
}

/** Whether an adapter came with another vocabulary, whose tokenizer is then in its folder. */
function isResized(adapted: CausalLM, base: CausalLM): boolean {
  return adapted.config.vocabSize !== base.config.vocabSize;
}

/** Loads the tokenizer at a path; undefined if there is none. */
async function loadTokenizerIfPresent(
  path: string | undefined,
  options: TokenizerOptions,
): Promise<Tokenizer | undefined> {
  return path === undefined ? undefined : AutoTokenizer.fromPretrained(path, options).catch(ignoreMissingFile);
}
