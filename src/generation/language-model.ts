import { LlamaGymError } from "../errors.js";
import type { CausalLM } from "../models/causal-lm.js";
import { mergeAdapter } from "../models/merging.js";
import { restoreTrained, saveModel, type SaveOptions } from "../models/saving.js";
import { RandomStream } from "../tensor/random.js";
import type { Tokenizer } from "../text/index.js";
import { type Pattern, patternOf } from "./constraints/pattern.js";
import type { PatternConstraint, PatternConstraintOptions } from "./constraints/pattern-constraint.js";
import { ReplyConstraints } from "./constraints/reply-constraints.js";
import { resolveOptions, type GenerationOptions, type OverflowPolicy } from "./options.js";
import { fitPrompt, readPrompt, type Prompt, type PromptInput } from "./prompt.js";
import { ReplyText } from "./reply-text.js";
import type { BatchOptions, Choice, ChooseOptions, ContinuationScore, ModelReply, ScoreOptions } from "./results.js";
import { Sampler } from "./sampler.js";
import { TextStream } from "./text-stream.js";

/** What a LanguageModel is made with. */
export interface LanguageModelOptions {
  /** Replies that are computed at once; more wait. Default 64. */
  readonly maxRows?: number;
  /** What adapters saved from it call their base model: the path or hub id that it was opened by. */
  readonly name?: string;
}

/**
 * A language model that replies, scores and chooses. All calls may run at the same time: they share batches, prompts' common
 * beginnings are computed once, and what was read is kept for the next turn while the parameters stand.
 */
export class LanguageModel {
  private readonly samplers = new Map<boolean, Promise<Sampler>>();
  private readonly constraints: ReplyConstraints;
  private closed = false;

  /** `AutoModelForCausalLM.fromPretrained` makes one from a path or hub id. */
  constructor(
    /** Weights, parameters and runtime, for training. */
    readonly causalLM: CausalLM,
    private readonly textTokenizer: Tokenizer | undefined,
    private readonly options: LanguageModelOptions = {},
  ) {
    this.constraints = new ReplyConstraints({
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
  async *generate(input: PromptInput, options: GenerationOptions = {}): AsyncGenerator<string, ModelReply> {
    const stream = new TextStream();
    const left = new AbortController();
    const signal = options.signal === undefined ? left.signal : AbortSignal.any([options.signal, left.signal]);
    const reply = this.draw(input, { ...options, signal }, (piece) => stream.write(piece));
    // The error reaches the reader below; here it only ends the stream.
    reply.catch(() => {}).finally(() => stream.end());
    try {
      yield* stream.read();
      return await reply;
    } finally {
      left.abort();
    }
  }

  /** One reply. Throws as `generate` does. */
  async reply(input: PromptInput, options: GenerationOptions = {}): Promise<ModelReply> {
    return this.draw(input, options, () => {});
  }

  /** Replies to many prompts at once; each is what `reply` gives for its prompt and seed alone. Throws as `generate` does. */
  async replyBatch(
    inputs: readonly PromptInput[],
    { seeds, ...options }: BatchOptions = {},
  ): Promise<readonly ModelReply[]> {
    if (seeds !== undefined && seeds.length !== inputs.length) {
      throw new LlamaGymError("INVALID_ARGUMENT", `There are ${seeds.length} seeds for ${inputs.length} prompts.`);
    }
    const { seed } = options;
    return Promise.all(
      inputs.map(async (input, i) => {
        const own = seeds?.[i] ?? (seed === undefined ? undefined : seed + i);
        return this.reply(input, own === undefined ? options : { ...options, seed: own });
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
    const prompt = this.readPrompt(input, options);
    const previous = prompt.tokens.at(-1);
    const all = continuations.map((continuation, i) => {
      const tokens =
        typeof continuation === "string" ? this.tokenizer.encodeContinuation(continuation, previous) : continuation;
      if (tokens.length > 0) return tokens;
      throw new LlamaGymError("INVALID_ARGUMENT", `Continuation ${i} is empty; give it at least one token.`);
    });
    const scores = await this.scoreTokens(prompt, all, options);
    return scores.map((tokenLogProbs, i) => ({
      logProb: tokenLogProbs.reduce((sum, value) => sum + value, 0),
      tokenLogProbs,
      tokens: all[i],
    }));
  }

  /**
   * Draws one of several texts, from the same distribution as `generate` with `choices`, but with all choices read at once:
   * one pass instead of one for each token, and every choice's probability. See ChoiceConstraint.
   * Throws INVALID_ARGUMENT, CONTEXT_OVERFLOW and TEMPLATE_FAILED.
   */
  async choose(input: PromptInput, choices: readonly string[], options: ChooseOptions = {}): Promise<Choice> {
    const { temperature = 1, seed, ...others } = options;
    resolveOptions({ temperature, seed });
    const prompt = this.readPrompt(input, others);
    const constraint = this.constraints.choices(choices, prompt.tokens.at(-1));
    const scores = await this.scoreTokens(prompt, constraint.sequences, others);
    const logProbs = constraint.logProbs(scores, temperature === 0 ? 1 : temperature);
    const probabilities = logProbs.map(Math.exp);
    const index =
      temperature === 0
        ? probabilities.indexOf(Math.max(...probabilities))
        : pick(probabilities, new RandomStream(seed).random());
    return { choice: choices[index], index, logProb: logProbs[index], probabilities };
  }

  /**
   * What holds a reply to a pattern, for a sampler and for a trainer that computes probabilities under it: `generate` makes the
   * same of `regex` and `jsonSchema`. What a pattern compiles to is kept. Throws INVALID_ARGUMENT for a pattern that is not
   * supported or does not fit into `maxTokens`, TOKENIZER_UNSUPPORTED for a tokenizer that puts text between tokens.
   */
  patternConstraint(pattern: Pattern, options: PatternConstraintOptions = {}): PatternConstraint {
    return this.constraints.pattern(pattern, options);
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
  async loadTrained(folder: string): Promise<void> {
    await restoreTrained(this.causalLM, folder);
  }

  /** The model with its adapter merged into its weights; it shares the runtime with this one. */
  async mergeAndUnload(): Promise<LanguageModel> {
    return this.withCausalLM(await mergeAdapter(this.causalLM));
  }

  /** The sampler behind all calls, for rollouts of many conversations. `adapter: false` replies as the reference policy. */
  async sampler({ adapter = true }: { adapter?: boolean } = {}): Promise<Sampler> {
    if (this.closed) throw new LlamaGymError("INVALID_STATE", "This model was closed.");
    const key = adapter || this.causalLM.adapter === undefined;
    let sampler = this.samplers.get(key);
    if (sampler === undefined) {
      const other = this.samplers.get(!key);
      sampler =
        other === undefined
          ? Sampler.create(this.causalLM, { ...this.options, adapter: key })
          : other.then((found) => found.sibling({ ...this.options, adapter: key }));
      this.samplers.set(key, sampler);
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
  ): Promise<ModelReply> {
    const { settings, stop, ...length } = resolveOptions(options, this.causalLM.source.generationConfig);
    const prompt = this.readPrompt(input, options);
    const choices =
      options.choices === undefined ? undefined : this.constraints.choices(options.choices, prompt.tokens.at(-1));
    const asked = choices === undefined ? length : { maxNewTokens: choices.longest, lengthIsAsked: true };
    const { tokens, maxNewTokens } = this.fit(prompt, { ...asked, overflow: options.overflow });
    const pattern = patternOf(options);
    const start = prompt.continues ? "continued" : "fresh";
    const constraint = choices ?? (pattern && this.patternConstraint(pattern, { start, maxTokens: maxNewTokens }));
    // A constraint says itself where a reply ends; a token that it contains must not cut it off.
    const ends = constraint === undefined && options.ignoreEos !== true ? this.endTokenIds : [];
    const stopTokens = new Set([...ends, ...(options.stopTokenIds ?? [])]);
    const silent = constraint === undefined ? stopTokens : new Set(this.endTokenIds);
    const continuedFrom = prompt.continues ? tokens.at(-1) : undefined;
    const text =
      this.hasTokenizer || stop.length > 0
        ? new ReplyText(this.tokenizer, { stop, stopTokens: silent, continuedFrom })
        : undefined;
    const random = new RandomStream(options.seed);
    const sampler = await this.sampler({ adapter: options.adapter });
    const reply = await sampler.reply({
      prompt: tokens,
      settings,
      maxNewTokens,
      random: () => random.random(),
      stopTokens,
      stopWhen: () => text?.stopped === true,
      constraint,
      onToken: (token) => onText(text?.push(token) ?? ""),
      signal: options.signal,
    });
    onText(text?.end() ?? "");
    return {
      ...reply,
      text: text?.text ?? "",
      promptTokens: tokens,
      choice: choices?.choiceOf(reply.tokens),
      constraint,
    };
  }

  private readPrompt(input: PromptInput, options: ScoreOptions): Prompt {
    const reader = {
      vocabSize: this.causalLM.config.vocabSize,
      tokenizer: () => this.tokenizer,
      bosTokenId: this.textTokenizer?.bosTokenId,
    };
    return readPrompt(input, reader, options);
  }

  private fit(
    prompt: Prompt,
    request: { overflow: OverflowPolicy | undefined; maxNewTokens: number; lengthIsAsked: boolean },
  ) {
    return fitPrompt(prompt, { ...request, maxPositions: this.causalLM.config.maxPositions });
  }

  private async scoreTokens(
    prompt: Prompt,
    continuations: readonly (readonly number[])[],
    { adapter, overflow }: ScoreOptions,
  ): Promise<number[][]> {
    const maxNewTokens = Math.max(1, ...continuations.map(({ length }) => length));
    const { tokens } = this.fit(prompt, { overflow, maxNewTokens, lengthIsAsked: true });
    const sampler = await this.sampler({ adapter });
    return Promise.all(continuations.map((continuation) => sampler.score(tokens, continuation)));
  }
}

/** The index at which the running sum of probabilities passes a uniform number. */
function pick(probabilities: readonly number[], uniform: number): number {
  let remaining = uniform;
  const index = probabilities.findIndex((probability) => (remaining -= probability) < 0);
  return index === -1 ? probabilities.findLastIndex((probability) => probability > 0) : index;
}
