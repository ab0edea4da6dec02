import { checkNumber, type NumberRule } from "../core/check-number.js";
import { invalidArgument, LlamaGymError } from "../core/errors.js";
import type { SamplingParams } from "../engine/runtime/kernels/sampling.js";
import type { ChatOptions } from "../models/text/index.js";
import type { JsonSchema } from "./constraints/json-schema/keywords.js";

/** Every number that shapes a reply; the command line is made from the same table. */
export const numericOptions = {
  maxNewTokens: {
    integer: true,
    min: 1,
    description: "tokens that a reply has at most",
    configKey: "max_new_tokens",
  },
  temperature: {
    min: 0,
    description: "0 takes the most probable token, 1 samples from the model's own distribution",
    configKey: "temperature",
  },
  topK: { integer: true, min: 0, description: "keep the k most probable tokens; 0 keeps all", configKey: "top_k" },
  topP: { above: 0, max: 1, description: "keep the most probable tokens up to this mass", configKey: "top_p" },
  minP: { min: 0, max: 1, description: "keep tokens this probable beside the best", configKey: "min_p" },
  repetitionPenalty: {
    above: 0,
    description: "above 1, tokens seen before become less likely",
    configKey: "repetition_penalty",
  },
  seed: { integer: true, min: 0, description: "the same seed gives the same reply" },
} as const satisfies Record<string, NumberRule>;

type NumericOption = keyof typeof numericOptions;

/** What happens to a prompt that leaves no room for the reply. */
export const contextOverflowModes = ["error", "drop-oldest"] as const;
export type ContextOverflow = (typeof contextOverflowModes)[number];

/** How a reply is generated. What is not given comes from the model's generation_config.json, then from Transformers' defaults. */
export interface GenerationOptions
  extends Partial<Record<NumericOption, number>>, Pick<ChatOptions, "tools" | "chatTemplate" | "variables"> {
  /** Strings that end the reply; they and what follows are not part of its text. */
  readonly stop?: string | readonly string[];
  /** Tokens that end the reply, beside the model's own end tokens. */
  readonly stopTokenIds?: readonly number[];
  /** The model's own end tokens do not end the reply. */
  readonly ignoreEos?: boolean;
  /** The reply is one of these texts, drawn token by token among those that lead to one. */
  readonly choices?: readonly string[];
  /** The reply matches this regular expression as a whole; docs/constrained-decoding.md says which are supported. */
  readonly regex?: string | RegExp;
  /** The reply is a JSON value that this schema allows, in one line; docs/constrained-decoding.md says which are supported. */
  readonly jsonSchema?: JsonSchema;
  /** Ends the reply where it stands; it then has finishReason "aborted". */
  readonly signal?: AbortSignal;
  /** False replies as the model does without its adapter. Default true. */
  readonly adapter?: boolean;
  /**
   * For a prompt that leaves no room for the reply: "error" (the default) throws CONTEXT_OVERFLOW; "drop-oldest" leaves out
   * the oldest tokens, or of a list of messages the oldest after the system's.
   */
  readonly contextOverflow?: ContextOverflow;
}

const nonNumericOptions = [
  "stop",
  "stopTokenIds",
  "ignoreEos",
  "choices",
  "regex",
  "jsonSchema",
  "signal",
  "adapter",
  "contextOverflow",
  "tools",
  "chatTemplate",
  "variables",
] as const satisfies readonly (keyof GenerationOptions)[];

/** Tokens of a reply when neither the caller nor the model's files say how many. */
const DEFAULT_MAX_NEW_TOKENS = 256;

/** Transformers' defaults for sampling (GenerationConfig). */
const SAMPLING_DEFAULTS: SamplingParams = { temperature: 1, topK: 50, topP: 1, minP: 0, repetitionPenalty: 1 };

/** Options that only mean something when tokens are drawn at random. */
const SAMPLING_OPTIONS = ["topK", "topP", "minP", "seed"] as const;

/** What a reply is generated with, all of it decided. */
export interface ResolvedOptions {
  readonly sampling: SamplingParams;
  readonly maxNewTokens: number;
  /** Whether the caller asked for that many; otherwise a full context may shorten the reply. */
  readonly isLengthExplicit: boolean;
  readonly stop: readonly string[];
}

/**
 * Checks options and fills in what is missing. Tokens are drawn at random when a temperature above 0 is asked for, or any other
 * setting of random drawing, or when the model's files ask for it (do_sample); else the most probable is taken.
 * Throws INVALID_ARGUMENT, and FILE_CORRUPT for a value in generation_config.json that cannot be.
 */
export function resolveOptions(
  options: GenerationOptions,
  generationConfig: Readonly<Record<string, unknown>> = {},
): ResolvedOptions {
  checkOptions(options);
  const optionOrConfig = (name: NumericOption) => options[name] ?? readConfigNumber(name, generationConfig);
  const doSample = generationConfig.do_sample === true || SAMPLING_OPTIONS.some((name) => options[name] !== undefined);
  const temperature = options.temperature ?? (doSample ? (readConfigNumber("temperature", generationConfig) ?? 1) : 0);
  // Of what a constraint allows, only what the caller asks for may take something away.
  const isUnconstrained = listConstraintOptions(options).length === 0;
  const samplingParam = (name: "topK" | "topP" | "minP" | "repetitionPenalty") =>
    isUnconstrained ? (optionOrConfig(name) ?? SAMPLING_DEFAULTS[name]) : (options[name] ?? UNMODIFIED_SAMPLING[name]);
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

const UNMODIFIED_SAMPLING = { topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 };

function checkOptions(options: GenerationOptions): void {
  const known = [...Object.keys(numericOptions), ...nonNumericOptions];
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw invalidArgument(`There is no generation option "${unknown}". Known: ${known.join(", ")}.`);
  for (const name of Object.keys(numericOptions) as NumericOption[]) {
    const value: unknown = options[name];
    if (value !== undefined) checkNumber(name, value, numericOptions[name]);
  }
  const { stop, stopTokenIds, choices, contextOverflow } = options;
  const stopStrings = typeof stop === "string" ? [stop] : stop;
  if (stopStrings?.some((text) => typeof text !== "string" || text === "") === true)
    throw invalidArgument("stop must be a text, or a list of texts, that are not empty.");
  if (stopTokenIds?.some((id) => !Number.isSafeInteger(id) || id < 0) === true)
    throw invalidArgument(`stopTokenIds must be token ids, not [${stopTokenIds.join(", ")}].`);
  if (contextOverflow !== undefined && !contextOverflowModes.includes(contextOverflow))
    throw invalidArgument(
      `contextOverflow must be ${contextOverflowModes.join(" or ")}, not ${JSON.stringify(contextOverflow)}.`,
    );
  if (choices !== undefined && (stop !== undefined || stopTokenIds !== undefined || options.maxNewTokens !== undefined))
    throw invalidArgument("A choice ends by itself: choices cannot go with stop, stopTokenIds or maxNewTokens.");
  checkConstraintOptions(options);
}

/** What holds a reply: there may be one of these. */
const CONSTRAINT_OPTIONS = ["choices", "regex", "jsonSchema"] as const;

function listConstraintOptions(options: GenerationOptions): string[] {
  return CONSTRAINT_OPTIONS.filter((name) => options[name] !== undefined);
}

function checkConstraintOptions(options: GenerationOptions): void {
  const [constraint, other] = listConstraintOptions(options);
  if (other !== undefined)
    throw invalidArgument(`A reply can be held in one way: ${constraint} cannot go with ${other}.`);
  const { regex, jsonSchema } = options;
  if (regex !== undefined && typeof regex !== "string" && !(regex instanceof RegExp))
    throw invalidArgument(`regex must be a text or a RegExp, not ${JSON.stringify(regex)}.`);
  if (jsonSchema !== undefined && (typeof jsonSchema !== "object" || jsonSchema === null || Array.isArray(jsonSchema)))
    throw invalidArgument(`jsonSchema must be an object, not ${JSON.stringify(jsonSchema)}.`);
  if (regex === undefined && jsonSchema === undefined) return;
  const stopOption = (["stop", "stopTokenIds", "ignoreEos"] as const).find((name) => options[name] !== undefined);
  if (stopOption !== undefined)
    throw invalidArgument(`A reply ends where its ${constraint} lets it: ${constraint} cannot go with ${stopOption}.`);
}

function readConfigNumber(name: NumericOption, config: Readonly<Record<string, unknown>>): number | undefined {
  const rule: NumberRule = numericOptions[name];
  const value = rule.configKey === undefined ? undefined : config[rule.configKey];
  if (value === undefined || value === null) return undefined;
  try {
    checkNumber(rule.configKey!, value, rule);
  } catch (error) {
    const { message } = error as LlamaGymError;
    throw new LlamaGymError("FILE_CORRUPT", `The model's generation_config.json cannot be used: ${message}`);
  }
  return value as number;
}
