import { LlamaGymError } from "../core/errors.js";
import type { CausalLM } from "../models/causal-lm.js";
import { mergeAdapter } from "../models/adapters/merge-adapter.js";
import { loadTrainedValues, saveModel, type SaveOptions } from "../models/save-model.js";
import { RandomStream } from "../core/random/random-stream.js";
import type { Tokenizer } from "../models/text/index.js";
import { type TextPattern, readPattern } from "./constraints/text-pattern.js";
import type { PatternConstraint, PatternConstraintOptions } from "./constraints/pattern-constraint.js";
import { ConstraintCompiler } from "./constraints/constraint-compiler.js";
import { resolveOptions, type GenerationOptions, type ContextOverflow } from "./generation-options.js";
import { fitToContext, encodePrompt, type EncodedPrompt, type PromptInput } from "./prompt/encode-prompt.js";
import { IncrementalDetokenizer } from "./incremental-detokenizer.js";
import type {
  BatchOptions,
  ChoiceResult,
  ChooseOptions,
  ContinuationScore,
  Completion,
  ScoreOptions,
} from "./completion.js";
import { Sampler } from "./sampling/sampler.js";
import { TextStream } from "./text-stream.js";

/** What a LanguageModel is made with. */
export interface LanguageModelOptions {
  /** Replies that are computed at once; more wait. Default 64. */
  readonly maxNumSequences?: number;
  /** What adapters saved from it call their base model: the path or hub id that it was opened by. */
  readonly name?: string;
}

/**
 * A language model that replies, scores and chooses. All calls may run at the same time: they share batches, prompts' common
 * beginnings are computed once, and what was read is kept for the next turn while the parameters stand.
 */
export class LanguageModel {
  private readonly samplers = new Map<boolean, Promise<Sampler>>();
  private readonly constraintCompiler: ConstraintCompiler;
  private closed = false;

  /** `AutoModelForCausalLM.fromPretrained` makes one from a path or hub id. */
  constructor(
    /** Weights, parameters and runtime, for training. */
    readonly causalLM: CausalLM,
    private readonly textTokenizer: Tokenizer | undefined,
    private readonly options: LanguageModelOptions = {},
  ) {
    this.constraintCompiler = new ConstraintCompiler({
      tokenizer: () => this.tokenizer,
      vocabSize: causalLM.config.vocabSize,
      endTokens: () => this.endTokenIds,
    });
  }

  /** Throws INVALID_STATE for a model that came without tokenizer files. */
  get tokenizer(): Tokenizer {
    if (this.textTokenizer !== undefined) return this.textTokenizer;
    throw new LlamaGymError(
      "INVALID_STATE",
      `${this.causalLM.source.path} has no tokenizer.json, so prompts must be token ids. Give fromPretrained a tokenizer to use text.`,
    );
  }

  get hasTokenizer(): boolean {
    return this.textTokenizer !== undefined;
  }

  /** The tokens that end a reply. */
  get endTokenIds(): readonly number[] {
    return [...new Set([...this.causalLM.eosTokenIds, ...(this.textTokenizer?.eosTokenIds ?? [])])];
  }

  /** The same tokenizer and options over another form of the model; for getPeftModel. */
  withCausalLM(causalLM: CausalLM): LanguageModel {
    return new LanguageModel(causalLM, this.textTokenizer, this.options);
  }

  /** The same model with another tokenizer. */
  withTokenizer(tokenizer: Tokenizer): LanguageModel {
    return tokenizer === this.textTokenizer ? this : new LanguageModel(this.causalLM, tokenizer, this.options);
  }

  /**
   * Streams a reply: gives its text in pieces as they become certain, and returns the whole reply at the end. Leaving the loop
   * early ends the reply. Throws INVALID_ARGUMENT, CONTEXT_OVERFLOW and TEMPLATE_FAILED.
   */
  async *stream(input: PromptInput, options: GenerationOptions = {}): AsyncGenerator<string, Completion> {
    const textStream = new TextStream();
    const earlyExit = new AbortController();
    const signal =
      options.signal === undefined ? earlyExit.signal : AbortSignal.any([options.signal, earlyExit.signal]);
    const completion = this.draw(input, { ...options, signal }, (piece) => textStream.write(piece));
    // The error reaches the reader below; here it only ends the stream.
    completion.catch(() => {}).finally(() => textStream.end());
    try {
      yield* textStream.read();
      return await completion;
    } finally {
      earlyExit.abort();
    }
  }

  /** One reply. Throws as `generate` does. */
  async generate(input: PromptInput, options: GenerationOptions = {}): Promise<Completion> {
    return this.draw(input, options, () => {});
  }

  /** Replies to many prompts at once; each is what `reply` gives for its prompt and seed alone. Throws as `generate` does. */
  async generateBatch(
    inputs: readonly PromptInput[],
    { seeds, ...options }: BatchOptions = {},
  ): Promise<readonly Completion[]> {
    if (seeds !== undefined && seeds.length !== inputs.length) {
      throw new LlamaGymError("INVALID_ARGUMENT", `There are ${seeds.length} seeds for ${inputs.length} prompts.`);
    }
    const { seed } = options;
    return Promise.all(
      inputs.map(async (input, i) => {
        const promptSeed = seeds?.[i] ?? (seed === undefined ? undefined : seed + i);
        return this.generate(input, promptSeed === undefined ? options : { ...options, seed: promptSeed });
      }),
    );
  }

  /**
   * How likely each continuation is after a prompt: the log-probabilities of its tokens under the model. Texts are tokenised
   * as they follow the prompt; give one its leading space where the prompt ends without.
   * Throws INVALID_ARGUMENT, CONTEXT_OVERFLOW and TEMPLATE_FAILED.
   */
  async score(
    input: PromptInput,
    continuations: readonly (string | readonly number[])[],
    options: ScoreOptions = {},
  ): Promise<readonly ContinuationScore[]> {
    const prompt = this.encodePrompt(input, options);
    const previousToken = prompt.tokens.at(-1);
    const continuationTokens = continuations.map((continuation, i) => {
      const tokens =
        typeof continuation === "string"
          ? this.tokenizer.encodeContinuation(continuation, previousToken)
          : continuation;
      if (tokens.length > 0) return tokens;
      throw new LlamaGymError("INVALID_ARGUMENT", `Continuation ${i} is empty; give it at least one token.`);
    });
    const scores = await this.scoreTokens(prompt, continuationTokens, options);
    return scores.map((tokenLogProbs, i) => ({
      logProb: tokenLogProbs.reduce((sum, value) => sum + value, 0),
      tokenLogProbs,
      tokens: continuationTokens[i],
    }));
  }

  /**
   * Draws one of several texts, from the same distribution as `generate` with `choices`, but with all choices read at once:
   * one pass instead of one for each token, and every choice's probability. See ChoiceConstraint.
   * Throws INVALID_ARGUMENT, CONTEXT_OVERFLOW and TEMPLATE_FAILED.
   */
  async choose(input: PromptInput, choices: readonly string[], options: ChooseOptions = {}): Promise<ChoiceResult> {
    const { temperature = 1, seed, ...scoreOptions } = options;
    resolveOptions({ temperature, seed });
    const prompt = this.encodePrompt(input, scoreOptions);
    const constraint = this.constraintCompiler.compileChoices(choices, prompt.tokens.at(-1));
    const scores = await this.scoreTokens(prompt, constraint.sequences, scoreOptions);
    const logProbs = constraint.logProbs(scores, temperature === 0 ? 1 : temperature);
    const probabilities = logProbs.map(Math.exp);
    const index =
      temperature === 0
        ? probabilities.indexOf(Math.max(...probabilities))
        : sampleIndex(probabilities, new RandomStream(seed).random());
    return { choice: choices[index], index, logProb: logProbs[index], probabilities };
  }

  /**
   * What holds a reply to a pattern, for a sampler and for a trainer that computes probabilities under it: `generate` makes the
   * same of `regex` and `jsonSchema`. What a pattern compiles to is kept. Throws INVALID_ARGUMENT for a pattern that is not
   * supported or does not fit into `maxTokens`, TOKENIZER_UNSUPPORTED for a tokenizer that puts text between tokens.
   */
  compilePattern(pattern: TextPattern, options: PatternConstraintOptions = {}): PatternConstraint {
    return this.constraintCompiler.compilePattern(pattern, options);
  }

  /**
   * Saves the model and its tokenizer: of an adapted model the adapter as PEFT does, else a folder that Transformers opens.
   * `mergeAndUnload` first saves an adapted model whole. Throws FILE_WRITE_FAILED.
   */
  async savePretrained(folder: string, options: SaveOptions = {}): Promise<void> {
    await saveModel(this.causalLM, folder, { baseModelName: this.options.name, ...options });
    await this.textTokenizer?.save(folder);
  }

  /** Takes back the trained values that `savePretrained` wrote for this form of the model. Throws as `restoreTrained` does. */
  async loadTrainedValues(folder: string): Promise<void> {
    await loadTrainedValues(this.causalLM, folder);
  }

  /** The model with its adapter merged into its weights; it shares the runtime with this one. */
  async mergeAndUnload(): Promise<LanguageModel> {
    return this.withCausalLM(await mergeAdapter(this.causalLM));
  }

  /** The sampler behind all calls, for rollouts of many conversations. `adapter: false` replies as the reference policy. */
  async sampler({ adapter = true }: { adapter?: boolean } = {}): Promise<Sampler> {
    if (this.closed) throw new LlamaGymError("INVALID_STATE", "This model was closed.");
    const usesAdapter = adapter || this.causalLM.adapter === undefined;
    let sampler = this.samplers.get(usesAdapter);
    if (sampler === undefined) {
      const other = this.samplers.get(!usesAdapter);
      sampler =
        other === undefined
          ? Sampler.create(this.causalLM, { ...this.options, adapter: usesAdapter })
          : other.then((found) => found.withAdapter({ ...this.options, adapter: usesAdapter }));
      this.samplers.set(usesAdapter, sampler);
    }
    return sampler;
  }

  /** Ends the runtime and closes the files, of this model and of all that share its weights. */
  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    await this.causalLM.close();
  }

  private async draw(
    input: PromptInput,
    options: GenerationOptions,
    onText: (piece: string) => void,
  ): Promise<Completion> {
    const { sampling, stop, ...length } = resolveOptions(options, this.causalLM.source.generationConfig);
    const prompt = this.encodePrompt(input, options);
    const choices =
      options.choices === undefined
        ? undefined
        : this.constraintCompiler.compileChoices(options.choices, prompt.tokens.at(-1));
    const requestedLength =
      choices === undefined ? length : { maxNewTokens: choices.maxLength, isLengthExplicit: true };
    const { tokens, maxNewTokens } = this.fit(prompt, { ...requestedLength, overflow: options.overflow });
    const pattern = readPattern(options);
    const start = prompt.isContinuation ? "continued" : "fresh";
    const compiled = choices ?? (pattern && this.compilePattern(pattern, { start, maxNewTokens }));
    // A constraint says itself where a reply ends; a token that it contains must not cut it off.
    const endTokens = compiled === undefined && options.ignoreEos !== true ? this.endTokenIds : [];
    const stopTokens = new Set([...endTokens, ...(options.stopTokenIds ?? [])]);
    const skippedTokens = compiled === undefined ? stopTokens : new Set(this.endTokenIds);
    const previousToken = prompt.isContinuation ? tokens.at(-1) : undefined;
    const text =
      this.hasTokenizer || stop.length > 0
        ? new IncrementalDetokenizer(this.tokenizer, { stop, stopTokens: skippedTokens, previousToken })
        : undefined;
    const random = new RandomStream(options.seed);
    const sampler = await this.sampler({ adapter: options.adapter });
    const output = await sampler.sample({
      prompt: tokens,
      sampling,
      maxNewTokens,
      random: () => random.random(),
      stopTokens,
      shouldStop: () => text?.hasMatchedStopString === true,
      constraint: compiled,
      onToken: (token) => onText(text?.push(token) ?? ""),
      signal: options.signal,
    });
    onText(text?.flush() ?? "");
    return {
      ...output,
      text: text?.text ?? "",
      promptTokens: tokens,
      choice: choices?.findChoice(output.tokens),
      constraint: compiled,
    };
  }

  private encodePrompt(input: PromptInput, options: ScoreOptions): EncodedPrompt {
    const encoder = {
      vocabSize: this.causalLM.config.vocabSize,
      tokenizer: () => this.tokenizer,
      bosTokenId: this.textTokenizer?.bosTokenId,
    };
    return encodePrompt(input, encoder, options);
  }

  private fit(
    prompt: EncodedPrompt,
    request: { overflow: ContextOverflow | undefined; maxNewTokens: number; isLengthExplicit: boolean },
  ) {
    return fitToContext(prompt, { ...request, maxPositions: this.causalLM.config.maxPositions });
  }

  private async scoreTokens(
    prompt: EncodedPrompt,
    continuations: readonly (readonly number[])[],
    { adapter, overflow }: ScoreOptions,
  ): Promise<number[][]> {
    const maxNewTokens = Math.max(1, ...continuations.map(({ length }) => length));
    const { tokens } = this.fit(prompt, { overflow, maxNewTokens, isLengthExplicit: true });
    const sampler = await this.sampler({ adapter });
    return Promise.all(continuations.map((continuation) => sampler.score(tokens, continuation)));
  }
}

/** The index at which the running sum of probabilities passes a uniform number. */
function sampleIndex(probabilities: readonly number[], uniform: number): number {
  let remaining = uniform;
  const index = probabilities.findIndex((probability) => (remaining -= probability) < 0);
  return index === -1 ? probabilities.findLastIndex((probability) => probability > 0) : index;
}
