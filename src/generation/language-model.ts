import { checkOptions, oneOf, type OptionNames } from "../core/settings.js";
import { describeValue } from "../core/format.js";
import { invalidArgument, LlamaGymError } from "../core/errors.js";
import { saveOptionNames, type CausalLM, type SaveOptions } from "../models/index.js";
import type { ExportOptions } from "../models/export/index.js";
import { mergeAdapter } from "../models/adapters/index.js";
import { addChecksums } from "../core/files/checksums.js";
import { RandomStream } from "../core/random/random-stream.js";
import { runStepsWithPauses } from "../core/steps.js";
import type { Tokenizer } from "../models/text/index.js";
import { Completer } from "./completer.js";
import type { CompiledConstraint } from "./constraints/compiled-constraint.js";
import type { PatternConstraint, PatternConstraintOptions } from "./constraints/pattern-constraint.js";
import { ConstraintCompiler, type CompileOptions } from "./constraints/constraint-compiler.js";
import { EnginePolicy } from "./engine-policy.js";
import { readPattern, type OutputConstraint, type TextPattern } from "./constraints/output-constraint.js";
import { generationSettings, promptOptionNames, resolveOptions, type GenerationOptions } from "./generation-options.js";
import {
  type PromptEncoder,
  fitToContext,
  encodeContinuations,
  encodePrompt,
  type EncodedPrompt,
  type PromptInput,
} from "./prompt/encode-prompt.js";
import type {
  BatchOptions,
  ChoiceResult,
  ChooseOptions,
  ContinuationScore,
  Completion,
  ScoreOptions,
} from "./completion.js";
import type { PolicyBackend, TokenSampler } from "./policy-backend.js";
import { TextStream } from "./text-stream.js";

/**
 * Maximum number of choices that `choose` scores; the embedded model takes a millisecond for each.
 */
const MAX_SCORED_CHOICES = 4_096;

/** Options of a `LanguageModel`. */
export interface LanguageModelOptions {
  /** Maximum number of sequences in a batch; more wait. Default 64. */
  readonly maxNumSequences?: number;
  /** Path or hub id of the model, which saved adapters name as their base model. */
  readonly name?: string;
}

const scoreOptionNames: OptionNames<ScoreOptions> = {
  ...promptOptionNames,
  contextOverflow: oneOf(...generationSettings.contextOverflow.choices),
};

const chooseOptionNames: OptionNames<ChooseOptions> = { ...scoreOptionNames, temperature: true, seed: true };

/**
 * A language model that generates, scores and chooses. Calls may run concurrently: they share
 * batches, common prefixes of prompts are computed once, and keys and values are reused by later
 * prompts until the parameters change.
 */
export class LanguageModel {
  private readonly constraintCompiler: ConstraintCompiler;
  private closed = false;

  /** `AutoModelForCausalLM.fromPretrained` opens one from a path or hub id. */
  constructor(
    /** What samples, scores and trains the model. */
    readonly policy: PolicyBackend,
    private readonly textTokenizer: Tokenizer | undefined,
    private readonly options: LanguageModelOptions = {},
  ) {
    this.constraintCompiler = new ConstraintCompiler({
      tokenizer: () => this.tokenizer,
      vocabSize: policy.config.vocabSize,
      endTokens: () => this.endTokenIds,
    });
  }

  /** Creates a model that the engine in this process computes. */
  static fromCausalLM(
    causalLM: CausalLM,
    tokenizer: Tokenizer | undefined,
    options: LanguageModelOptions = {},
  ): LanguageModel {
    return new LanguageModel(new EnginePolicy(causalLM, options), tokenizer, options);
  }

  /**
   * Weights, parameters and runtime. @throws INVALID_STATE for a model whose weights a service has.
   */
  get causalLM(): CausalLM {
    const { causalLM, name } = this.policy;
    if (causalLM !== undefined) return causalLM;
    throw new LlamaGymError(
      "INVALID_STATE",
      `The weights of ${name} are on a service, and this needs them in this process. Use a model that is opened here.`,
    );
  }

  /**
   * The states of frozen layers, which samplers and learners of this model share; undefined without
   * frozen layers.
   */
  get frozenStates() {
    return this.policy.frozenStates;
  }

  /** @throws INVALID_STATE if the model was opened without tokenizer files. */
  get tokenizer(): Tokenizer {
    if (this.textTokenizer !== undefined) return this.textTokenizer;
    throw new LlamaGymError(
      "INVALID_STATE",
      `${this.policy.name} has no tokenizer.json, so prompts must be token ids. Pass fromPretrained a tokenizer to use text.`,
    );
  }

  /** Path or hub id of the base model. */
  get name(): string {
    return this.options.name ?? this.policy.name;
  }

  get hasTokenizer(): boolean {
    return this.textTokenizer !== undefined;
  }

  /** The tokens that end a completion. */
  get endTokenIds(): readonly number[] {
    return [...new Set([...this.policy.eosTokenIds, ...(this.textTokenizer?.eosTokenIds ?? [])])];
  }

  /** Returns a model with the same tokenizer and options, for getPeftModel. */
  withCausalLM(causalLM: CausalLM): LanguageModel {
    return LanguageModel.fromCausalLM(causalLM, this.textTokenizer, this.options);
  }

  /** Returns the same model with another tokenizer. */
  withTokenizer(tokenizer: Tokenizer): LanguageModel {
    return tokenizer === this.textTokenizer ? this : new LanguageModel(this.policy, tokenizer, this.options);
  }

  /**
   * Streams a completion: yields its text in pieces as soon as they are certain, and returns the
   * completion. Leaving the loop early aborts it.
   * @throws INVALID_ARGUMENT for an invalid prompt or option, CONTEXT_OVERFLOW for a prompt that is
   * too long, TEMPLATE_FAILED for messages that the chat template rejects.
   */
  async *stream(input: PromptInput, options: GenerationOptions = {}): AsyncGenerator<string, Completion> {
    const textStream = new TextStream();
    const earlyExit = new AbortController();
    const signal =
      options.signal === undefined ? earlyExit.signal : AbortSignal.any([options.signal, earlyExit.signal]);
    const completion = this.complete(input, { ...options, signal }, (piece) => textStream.write(piece));
    // The `await` below reports the error; here it only ends the stream.
    completion.catch(() => {}).finally(() => textStream.end());
    try {
      yield* textStream.read();
      return await completion;
    } finally {
      earlyExit.abort();
    }
  }

  /** Generates a completion. Throws as `stream` does. */
  async generate(input: PromptInput, options: GenerationOptions = {}): Promise<Completion> {
    return this.complete(input, options);
  }

  /**
   * Generates completions of many prompts in one batch, each equal to `generate` with its seed.
   * Throws as `stream` does.
   */
  async generateBatch(
    inputs: readonly PromptInput[],
    { seeds, ...options }: BatchOptions = {},
  ): Promise<readonly Completion[]> {
    if (seeds !== undefined && seeds.length !== inputs.length) {
      throw invalidArgument(`\`seeds\` must have one entry per prompt (${inputs.length}), got ${seeds.length}.`);
    }
    const seedOf = (i: number) => seeds?.[i] ?? (options.seed === undefined ? undefined : options.seed + i);
    return Promise.all(inputs.map((input, i) => this.generate(input, { ...options, seed: seedOf(i) })));
  }

  /**
   * Computes the log-probability of each continuation of a prompt, in one batch. Include a leading
   * space in a text if the prompt ends without one. Throws as `stream` does.
   */
  async score(
    input: PromptInput,
    continuations: readonly (string | readonly number[])[],
    options: ScoreOptions = {},
  ): Promise<readonly ContinuationScore[]> {
    checkOptions("LanguageModel.score", options, scoreOptionNames);
    const prompt = await this.encodePrompt(input, options);
    const continuationTokens = await runStepsWithPauses(encodeContinuations(continuations, prompt, this.promptEncoder));
    const scores = await this.scoreTokens(prompt, continuationTokens, options);
    return scores.map((tokenLogProbs, i) => ({
      logProb: tokenLogProbs.reduce((sum, value) => sum + value, 0),
      tokenLogProbs,
      tokens: continuationTokens[i],
    }));
  }

  /**
   * Samples one of several texts from the same distribution as `generate` with `choices`, but
   * scores all choices in one pass and returns their probabilities. See ChoiceConstraint. Throws as
   * `stream` does.
   */
  async choose(input: PromptInput, choices: readonly string[], options: ChooseOptions = {}): Promise<ChoiceResult> {
    checkOptions("LanguageModel.choose", options, chooseOptionNames);
    const { temperature = 1, seed, ...scoreOptions } = options;
    resolveOptions({ temperature, seed });
    const prompt = await this.encodePrompt(input, scoreOptions);
    const constraint = this.constraintCompiler.compileChoices(choices, prompt.tokens.at(-1));
    if (choices.length > MAX_SCORED_CHOICES)
      throw invalidArgument(
        `\`choose\` scores at most ${MAX_SCORED_CHOICES} choices, got ${choices.length}. Use generate.`,
      );
    const scores = await this.scoreTokens(prompt, constraint.sequences, scoreOptions);
    const chosen = constraint.choose(scores, temperature, new RandomStream(seed));
    return { choice: choices[chosen.index], ...chosen };
  }

  /**
   * Compiles a pattern to a constraint for a Sampler, as `generate` does with `regex` and
   * `jsonSchema`. Compiled patterns are cached.
   * @throws INVALID_ARGUMENT for a pattern that is unsupported or does not fit into `maxNewTokens`.
   * @throws TOKENIZER_UNSUPPORTED if the tokenizer inserts text between tokens.
   */
  compilePattern(pattern: TextPattern, options: PatternConstraintOptions = {}): PatternConstraint {
    return this.constraintCompiler.compilePattern(pattern, options);
  }

  /**
   * Compiles a large pattern in advance, with pauses for other work. Throws as `compilePattern`
   * does.
   */
  preparePattern(pattern: TextPattern): Promise<void> {
    return this.constraintCompiler.prepare(pattern);
  }

  /**
   * Compiles choices or a pattern. Throws as `compilePattern` does, and INVALID_ARGUMENT for
   * choices with equal tokens.
   */
  compileConstraint(constraint: OutputConstraint, options: CompileOptions): CompiledConstraint {
    return this.constraintCompiler.compile(constraint, options);
  }

  /**
   * Saves model and tokenizer for Transformers, or the adapter for PEFT; call `mergeAndUnload`
   * first to save an adapted model whole.
   * @throws FILE_WRITE_FAILED
   */
  async savePretrained(folder: string, options: SaveOptions = {}): Promise<void> {
    checkOptions("savePretrained", options, saveOptionNames);
    await this.policy.save(folder, { baseModelName: this.options.name, ...options });
    await addChecksums(folder, (await this.textTokenizer?.save(folder)) ?? []);
  }

  /**
   * Exports the model with its adapter merged for Transformers, transformers.js, or llama.cpp and
   * Ollama, or the adapter for PEFT.
   * @throws INVALID_ARGUMENT, INVALID_STATE for a folder that is not empty, MODEL_UNSUPPORTED and
   * TOKENIZER_UNSUPPORTED for what a format cannot represent, FILE_WRITE_FAILED.
   */
  async export(folder: string, options: ExportOptions): Promise<void> {
    const { exportModel } = await import("../models/export/export-model.js");
    await exportModel(this, folder, options);
  }

  /** Loads the trained values that `savePretrained` wrote for a model of the same form. */
  async loadTrainedValues(folder: string): Promise<void> {
    await this.policy.loadTrainedValues(folder);
  }

  /** Returns the model with its adapter merged into its weights, in the same runtime. */
  async mergeAndUnload(): Promise<LanguageModel> {
    return this.withCausalLM(await mergeAdapter(this.causalLM));
  }

  /**
   * Returns the sampler behind all calls; with `adapter: false` that of the model without its
   * adapter (the reference policy).
   */
  async sampler(options: { adapter?: boolean } = {}): Promise<TokenSampler> {
    if (this.closed) throw new LlamaGymError("INVALID_STATE", "This model is closed.");
    return this.policy.sampler(options);
  }

  /** Returns a completer over `sampler`. */
  async completer(options: { adapter?: boolean } = {}): Promise<Completer> {
    return new Completer(await this.sampler(options), this.textTokenizer);
  }

  /**
   * Runs work that leaves no trace in later results: what it computed is not reused, so that these
   * are the same to the last bit as without it.
   */
  async runIsolated<Result>(work: () => Promise<Result>): Promise<Result> {
    const stateCount = this.frozenStates?.count;
    try {
      return await work();
    } finally {
      this.policy.clearCaches();
      if (stateCount !== undefined) this.frozenStates!.truncate(stateCount);
    }
  }

  /** Closes the runtime and the files of this model and of all models that share its weights. */
  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    await this.policy.close();
  }

  private async complete(
    input: PromptInput,
    options: GenerationOptions,
    onText?: (piece: string) => void,
  ): Promise<Completion> {
    const { choices, contextOverflow, adapter, seed, signal } = options;
    const { sampling, stop, ...length } = resolveOptions(options, this.policy.generationConfig);
    const tokenizer = stop.length > 0 ? this.tokenizer : this.textTokenizer;
    const prompt = await this.encodePrompt(input, options);
    const choiceConstraint =
      choices === undefined ? undefined : this.constraintCompiler.compileChoices(choices, prompt.tokens.at(-1));
    const { maxPositions } = this.policy.config;
    const requestedLength =
      choiceConstraint === undefined ? length : { maxNewTokens: choiceConstraint.maxLength, isLengthExplicit: true };
    const { tokens, maxNewTokens } = await runStepsWithPauses(
      fitToContext(prompt, { ...requestedLength, contextOverflow, maxPositions }),
    );
    const pattern = readPattern(options);
    const { isContinuation } = prompt;
    const start = isContinuation ? "continuation" : "start";
    const constraint = choiceConstraint ?? (pattern && this.compilePattern(pattern, { start, maxNewTokens }));
    const endTokens = constraint === undefined && options.ignoreEos === true ? [] : this.endTokenIds;
    const completer = new Completer(await this.sampler({ adapter }), tokenizer);
    return completer.complete({
      prompt: tokens,
      sampling,
      maxNewTokens,
      random: new RandomStream(seed),
      stop: { tokens: new Set([...endTokens, ...(options.stopTokenIds ?? [])]), strings: stop },
      constraint,
      isContinuation,
      onText,
      signal,
    });
  }

  private encodePrompt(input: PromptInput, options: ScoreOptions): Promise<EncodedPrompt> {
    const maxTokens = options.contextOverflow === "drop-oldest" ? undefined : this.policy.config.maxPositions;
    return runStepsWithPauses(encodePrompt(input, this.promptEncoder, options, maxTokens));
  }

  private get promptEncoder(): PromptEncoder {
    const { vocabSize } = this.policy.config;
    return { vocabSize, tokenizer: () => this.tokenizer, bosTokenId: this.textTokenizer?.bosTokenId };
  }

  private async scoreTokens(
    prompt: EncodedPrompt,
    continuations: readonly (readonly number[])[],
    { adapter, contextOverflow }: ScoreOptions,
  ): Promise<(readonly number[])[]> {
    const maxNewTokens = continuations.reduce((max, { length }) => Math.max(max, length), 1);
    const { maxPositions } = this.policy.config;
    const { tokens } = await runStepsWithPauses(
      fitToContext(prompt, { contextOverflow, maxNewTokens, isLengthExplicit: true, maxPositions }),
    );
    return (await this.completer({ adapter })).score(tokens, continuations);
  }
}

/**
 * @throws INVALID_ARGUMENT for what JavaScript may pass instead of a model; `subject` begins the
 * message, such as "`model` must be".
 */
export function checkIsModel(subject: string, model: unknown): void {
  if (typeof (model as Partial<LanguageModel> | null | undefined)?.withTokenizer === "function") return;
  throw invalidArgument(
    `${subject} a model, such as await AutoModelForCausalLMWithValueHead.fromPretrained("embedded"), got ${describeValue(model)}.`,
  );
}
