import { invalidArgument, LlamaGymError } from "../core/errors.js";
import {
  checkOptions,
  checkSetting,
  checkSettings,
  choice,
  defineSettings,
  integer,
  list,
  number,
  type OtherOptions,
  type Settings,
} from "../core/settings.js";
import { printWarningOnce } from "../core/terminal-text.js";
import type { SamplingParams } from "../engine/runtime/index.js";
import type { ChatOptions } from "../models/text/index.js";
import type { JsonSchema } from "./constraints/json-schema/keywords.js";

/** Limits of numbers for which logits, divided or multiplied by them, stay finite in float32. */
const MIN_POSITIVE = 1e-6;
export const TEMPERATURE_LIMITS = { min: MIN_POSITIVE, max: 100 } as const;

/** Parameters of the distribution that tokens are sampled from. */
const samplingSettings = defineSettings({
  /** 0 is greedy, 1 is the model's distribution. */
  temperature: number({
    ...TEMPERATURE_LIMITS,
    allowsZero: true,
    short: "t",
    common: true,
    description: "Sampling temperature. 0 is greedy, 1 is the model's distribution.",
  }),
  /** Samples from the k most probable tokens; 0 disables it. */
  topK: integer({ min: 0, description: "Sample from the k most probable tokens. 0 disables it." }),
  /** Samples from the most probable tokens up to this cumulative probability. */
  topP: number({
    min: MIN_POSITIVE,
    max: 1,
    allowsZero: true,
    description: "Sample from the most probable tokens up to this cumulative probability. 0 keeps one token.",
  }),
  /** Samples from tokens at least this probable relative to the most probable one. */
  minP: number({
    min: MIN_POSITIVE,
    max: 1,
    allowsZero: true,
    description: "Sample from tokens at least this probable relative to the most probable one.",
  }),
  /** Penalty of tokens that occurred before; 1 disables it. */
  repetitionPenalty: number({
    min: 0.01,
    max: 100,
    description: "Penalty of tokens that occurred before; 1 disables it.",
  }),
});

/** Numbers that control generation. */
const numberSettings = defineSettings({
  /** Maximum number of tokens to generate. */
  maxNewTokens: integer({ min: 1, common: true, description: "Maximum number of tokens to generate." }),
  ...samplingSettings,
  /** Random seed. */
  // The seeds of choices and prompts, which are added to it, stay exact.
  seed: integer({ min: 0, max: 2 ** 48, common: true, description: "Random seed." }),
});

/** Sampling parameters that leave the model's distribution as it is. */
export const UNFILTERED_SAMPLING = { topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 } as const;

/**
 * Sampling of a trained policy: by default from the model's distribution, because the trained
 * distribution is the sampled one.
 */
export const policySamplingSettings = defineSettings({
  /** Default 1. */
  temperature: number({ ...TEMPERATURE_LIMITS, default: 1, description: "Sampling temperature during training." }),
  /** Samples from the k most probable tokens. Default 0: from all. */
  topK: { ...samplingSettings.topK, default: UNFILTERED_SAMPLING.topK },
  /** Samples from the most probable tokens up to this cumulative probability. Default 1. */
  topP: { ...samplingSettings.topP, default: UNFILTERED_SAMPLING.topP },
  /** Samples from tokens at least this probable relative to the most probable one. Default 0. */
  minP: { ...samplingSettings.minP, default: UNFILTERED_SAMPLING.minP },
  /** Penalty of tokens that occurred before. Default 1: none. */
  repetitionPenalty: { ...samplingSettings.repetitionPenalty, default: UNFILTERED_SAMPLING.repetitionPenalty },
});

type NumericOption = keyof typeof numberSettings;

/** Numbers and choices that control generation. */
const plainSettings = defineSettings({
  ...numberSettings,
  /**
   * If a prompt leaves no room for a completion, "error" (the default) throws CONTEXT_OVERFLOW and
   * "drop-oldest" drops the oldest tokens, or the oldest messages after the system's.
   */
  contextOverflow: choice({
    choices: ["error", "drop-oldest"],
    default: "error",
    description: "What to do with a prompt that is too long: fail, or drop its oldest part.",
  }),
});

/** How a prompt that leaves no room for a completion is handled. */
export type ContextOverflow = Settings<typeof plainSettings>["contextOverflow"];

/** Options of generation that are also options of the command line. */
export const generationSettings = defineSettings({
  ...plainSettings,
  stop: list({ description: "Text that ends the completion. May be repeated." }),
});

/**
 * Options of generation. Defaults come from the model's generation_config.json, then from
 * Transformers.
 */
export interface GenerationOptions
  extends
    Partial<Settings<typeof plainSettings>>,
    Pick<ChatOptions, "tools" | "chatTemplate" | "variables" | "splitSpecialTokens"> {
  /** Strings that end the completion and are not part of its text. */
  readonly stop?: string | readonly string[];
  /** Tokens that end the completion, in addition to the model's end tokens. */
  readonly stopTokenIds?: readonly number[];
  /** Whether the model's end tokens do not end the completion. */
  readonly ignoreEos?: boolean;
  /** Constrains the completion to one of these texts. */
  readonly choices?: readonly string[];
  /**
   * Constrains the completion to this regular expression; see docs/constrained-decoding.md for the
   * supported syntax.
   */
  readonly regex?: string | RegExp;
  /**
   * Constrains the completion to JSON of this schema, on one line; see docs/constrained-decoding.md
   * for the keywords.
   */
  readonly jsonSchema?: JsonSchema;
  /** Ends the completion with finishReason "aborted". */
  readonly signal?: AbortSignal;
  /** Whether to use the model's adapter. Default true. */
  readonly adapter?: boolean;
}

/** The names of options that say how a prompt is encoded and whether the adapter is used. */
export const promptOptionNames = {
  adapter: Boolean,
  tools: Array,
  chatTemplate: String,
  variables: Object,
  splitSpecialTokens: Boolean,
} as const;

const otherOptions: OtherOptions<GenerationOptions, typeof generationSettings> = {
  stopTokenIds: Array,
  ignoreEos: Boolean,
  choices: true,
  regex: true,
  jsonSchema: true,
  signal: AbortSignal,
  ...promptOptionNames,
};

/** Default of `maxNewTokens` if the model's files have none. */
const DEFAULT_MAX_NEW_TOKENS = 256;

/** Transformers' defaults for sampling (GenerationConfig). */
const SAMPLING_DEFAULTS: SamplingParams = { ...UNFILTERED_SAMPLING, temperature: 1, topK: 50 };

/** Options that imply sampling. */
const SAMPLING_OPTIONS = ["topK", "topP", "minP", "seed"] as const;

/**
 * Fields of generation_config.json that change Transformers' completions and that llamagym does not
 * have, with the values that change nothing; none of them does if it is null, false or empty.
 */
const MISSING_FIELDS: Readonly<Record<string, readonly unknown[]>> = {
  num_beams: [1],
  num_beam_groups: [1],
  diversity_penalty: [0],
  penalty_alpha: [0],
  dola_layers: [],
  typical_p: [1],
  epsilon_cutoff: [0],
  eta_cutoff: [0],
  top_h: [1],
  min_length: [0],
  min_new_tokens: [0],
  max_time: [],
  stop_strings: [],
  no_repeat_ngram_size: [0],
  encoder_no_repeat_ngram_size: [0],
  encoder_repetition_penalty: [1],
  exponential_decay_length_penalty: [],
  bad_words_ids: [],
  force_words_ids: [],
  constraints: [],
  sequence_bias: [],
  suppress_tokens: [],
  begin_suppress_tokens: [],
  forced_bos_token_id: [],
  forced_eos_token_id: [],
  guidance_scale: [1],
  token_healing: [],
  watermarking_config: [],
};

/** Options with all defaults resolved. */
export interface ResolvedOptions {
  readonly sampling: SamplingParams;
  readonly maxNewTokens: number;
  /** Whether `maxNewTokens` was requested; otherwise a long prompt shortens the completion. */
  readonly isLengthExplicit: boolean;
  readonly stop: readonly string[];
}

/**
 * Checks options and resolves defaults. Tokens are sampled if the temperature is above 0, if
 * another sampling option is set, or if the model's files set do_sample; otherwise decoding is
 * greedy.
 * @throws INVALID_ARGUMENT for an invalid option, FILE_CORRUPT for an invalid value in
 * generation_config.json.
 */
export function resolveOptions(
  options: GenerationOptions,
  generationConfig: Readonly<Record<string, unknown>> = {},
): ResolvedOptions {
  checkGenerationOptions(options);
  warnOfMissingFields(generationConfig);
  const optionOrConfig = (name: NumericOption) => options[name] ?? readConfigNumber(name, generationConfig);
  const doSample = generationConfig.do_sample === true || SAMPLING_OPTIONS.some((name) => options[name] !== undefined);
  const temperature = options.temperature ?? (doSample ? (readConfigNumber("temperature", generationConfig) ?? 1) : 0);
  // Filters from generation_config.json must not remove tokens that a constraint allows.
  const isUnconstrained = listConstraintOptions(options).length === 0;
  const samplingParam = (name: keyof typeof UNFILTERED_SAMPLING) =>
    isUnconstrained ? (optionOrConfig(name) ?? SAMPLING_DEFAULTS[name]) : (options[name] ?? UNFILTERED_SAMPLING[name]);
  return {
    sampling: {
      temperature,
      topK: samplingParam("topK"),
      topP: samplingParam("topP"),
      minP: samplingParam("minP"),
      repetitionPenalty: samplingParam("repetitionPenalty"),
    },
    maxNewTokens: optionOrConfig("maxNewTokens") ?? DEFAULT_MAX_NEW_TOKENS,
    isLengthExplicit: options.maxNewTokens !== undefined,
    stop: typeof options.stop === "string" ? [options.stop] : (options.stop ?? []),
  };
}

function warnOfMissingFields(generationConfig: Readonly<Record<string, unknown>>): void {
  const fields = Object.keys(MISSING_FIELDS).filter((name) => {
    const value = generationConfig[name] ?? false;
    const isEmpty = typeof value === "object" && Object.keys(value).length === 0;
    return value !== false && !isEmpty && !MISSING_FIELDS[name]?.includes(value);
  });
  if (fields.length > 0)
    printWarningOnce(
      `The model's generation_config.json sets ${fields.join(", ")}, which llamagym does not have: completions are generated as without.`,
    );
}

function checkGenerationOptions(options: GenerationOptions): void {
  checkOptions<GenerationOptions>("Generation", options, { ...generationSettings, ...otherOptions });
  const { stop, stopTokenIds, choices } = options;
  checkSettings(generationSettings, { ...options, stop: typeof stop === "string" ? [stop] : stop });
  if (stopTokenIds?.some((id) => !Number.isSafeInteger(id) || id < 0) === true)
    throw invalidArgument(`\`stopTokenIds\` must be token ids, got [${stopTokenIds.join(", ")}].`);
  if (choices !== undefined && (stop !== undefined || stopTokenIds !== undefined || options.maxNewTokens !== undefined))
    throw invalidArgument(
      "`choices` is incompatible with `stop`, `stopTokenIds` and `maxNewTokens`: a choice ends by itself.",
    );
  checkConstraintOptions(options);
}

/** Options that constrain a completion; they are mutually exclusive. */
const CONSTRAINT_OPTIONS = ["choices", "regex", "jsonSchema"] as const;

function listConstraintOptions(options: GenerationOptions): string[] {
  return CONSTRAINT_OPTIONS.filter((name) => options[name] !== undefined);
}

function checkConstraintOptions(options: GenerationOptions): void {
  const [constraint, other] = listConstraintOptions(options);
  if (other !== undefined)
    throw invalidArgument(`\`${constraint}\` and \`${other}\` are mutually exclusive; set only one of them.`);
  const { regex, jsonSchema } = options;
  if (regex !== undefined && typeof regex !== "string" && !(regex instanceof RegExp))
    throw invalidArgument(`\`regex\` must be a string or RegExp, got ${String(regex)}.`);
  if (jsonSchema !== undefined && (typeof jsonSchema !== "object" || jsonSchema === null || Array.isArray(jsonSchema)))
    throw invalidArgument(
      `\`jsonSchema\` must be an object, got ${Array.isArray(jsonSchema) ? "a list" : String(jsonSchema)}.`,
    );
  if (regex === undefined && jsonSchema === undefined) return;
  const stopOption = (["stop", "stopTokenIds", "ignoreEos"] as const).find((name) => options[name] !== undefined);
  if (stopOption !== undefined)
    throw invalidArgument(
      `\`${constraint}\` is incompatible with \`${stopOption}\`: the pattern decides where the completion ends.`,
    );
}

/**
 * Reads a number of generation_config.json: `max_new_tokens` for `maxNewTokens`. @throws
 * FILE_CORRUPT for one out of range.
 */
export function readConfigNumber(name: NumericOption, config: Readonly<Record<string, unknown>>): number | undefined {
  const key = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const value = name === "seed" ? undefined : config[key];
  if (value === undefined || value === null) return undefined;
  // vLLM's value for no limit, which files for it have.
  if (name === "topK" && value === -1) return 0;
  try {
    checkSetting(`\`${key}\``, value, numberSettings[name]);
  } catch (error) {
    const { message } = error as LlamaGymError;
    throw new LlamaGymError("FILE_CORRUPT", `Invalid generation_config.json of the model: ${message}`);
  }
  return value as number;
}
