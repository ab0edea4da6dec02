import type { RandomStream } from "../../core/random/random-stream.js";
import { sampleIndex } from "../../core/random/sample-index.js";
import {
  CompletionCache,
  MAX_SMALL_VOCABULARY,
  type Completion,
  type ChoiceConstraint,
  type CompiledConstraint,
  constraintKey,
  type OutputConstraint,
  type LanguageModel,
  type SampleRequest,
} from "../../generation/index.js";
import { recordsKeptTokens, type CompletionSettings } from "./rollout-settings.js";
import type { ActionCandidates } from "./trajectory.js";

export interface TurnCompletion extends Pick<
  Completion,
  "tokens" | "logProbs" | "finishReason" | "text" | "allowedTokens"
> {
  /**
   * Value of the state before each token, NaN where unknown; undefined for an action sampled by its
   * score.
   */
  readonly values?: readonly number[];
  /** Whether `allowedTokens` are those that top-k, top-p and min-p kept. */
  readonly hasKeptTokens?: boolean;
  /** Only for an action sampled by its score. */
  readonly actionCandidates?: ActionCandidates;
}

/** A given completion with what it is chosen from. */
type EncodedTurn = Pick<TurnCompletion, "tokens" | "allowedTokens" | "actionCandidates">;

/** Choices with their scores; arrays have one entry per choice. */
interface ScoredChoices {
  readonly sequences: readonly (readonly number[])[];
  /** Factors of the sums of log-probabilities: 1 / (length * temperature). */
  readonly weights: readonly number[];
  readonly logProbs: readonly number[];
  readonly probabilities: readonly number[];
  /** exp(score - highest score), and their sum. */
  readonly expScores: readonly number[];
  readonly total: number;
}

export interface TurnRequest extends Pick<SampleRequest, "onDistribution"> {
  readonly prompt: readonly number[];
  readonly constraint?: OutputConstraint;
  readonly random: RandomStream;
  /** Maximum length of an unconstrained completion, instead of the settings'. */
  readonly maxNewTokens?: number;
  /** Ends the completion with "aborted". */
  readonly signal?: AbortSignal;
}

/**
 * Samples the policy's completions for many episodes at once: requests made in the same turn of the
 * event loop run as one batch. Results for prompts that recur are cached until the parameters
 * change.
 */
export class CompletionSampler {
  private readonly endTokens: ReadonlySet<number>;
  private readonly cache = new CompletionCache();

  constructor(
    readonly model: LanguageModel,
    readonly settings: CompletionSettings,
  ) {
    this.endTokens = new Set(settings.ignoreEos ? [] : model.endTokenIds);
  }

  /** Returns the maximum length of a completion. Throws as `sample` does for the constraint. */
  maxLength(constraint: OutputConstraint | undefined, prompt: readonly number[] = []): number {
    return constraint === undefined ? this.settings.maxNewTokens : this.compile(constraint, prompt).maxLength;
  }

  /**
   * Returns a text as the completion of a turn, with what it is chosen from; `undefined` if it
   * violates the constraint. Throws as `sample` does for the constraint.
   */
  encodeTurn(
    text: string,
    { prompt, constraint }: Pick<TurnRequest, "prompt" | "constraint">,
  ): EncodedTurn | undefined {
    if (constraint === undefined) return { tokens: this.encode(text, prompt), allowedTokens: undefined };
    if (this.settings.actionScoring !== undefined && "choices" in constraint) {
      const chosen = constraint.choices.indexOf(text);
      if (chosen === -1) return undefined;
      const candidates = this.encodeCandidates(prompt, constraint.choices);
      const actionCandidates = { ...candidates, chosen };
      return { tokens: candidates.sequences[chosen], allowedTokens: undefined, actionCandidates };
    }
    const compiled = this.compile(constraint, prompt);
    const tokens = compiled.encode(text);
    if (tokens === undefined) return undefined;
    const cursor = compiled.cursor();
    const allowedTokens = tokens.map((token) => {
      const allowed = cursor.allowedTokens;
      cursor.advance(token);
      return allowed;
    });
    return { tokens, allowedTokens };
  }

  /** Tokenizes a text as it would be sampled, with the token or string that ends it. */
  private encode(text: string, prompt: readonly number[]): readonly number[] {
    const endToken = this.endOfTurnToken();
    const [stop = ""] = endToken === undefined ? this.settings.stop : [];
    const { tokenizer } = this.model;
    // The stop string may be a special token.
    const literals = tokenizer.splitSpecialTokens ? Array.from({ length: text.length }, (_, i) => i) : undefined;
    const tokens = tokenizer.encodeContinuation({ text: text + stop, literals }, prompt.at(-1));
    return endToken === undefined ? tokens : [...tokens, endToken];
  }

  /**
   * Samples a completion.
   * @throws INVALID_ARGUMENT for choices with equal tokens and for a pattern that cannot match.
   * @throws CONTEXT_OVERFLOW for a prompt that leaves no room for a completion.
   */
  async sample(request: TurnRequest): Promise<TurnCompletion> {
    this.cache.keepVersion(this.model.policy.cacheVersion);
    const { prompt, constraint, maxNewTokens = "" } = request;
    if (this.settings.actionScoring !== undefined && constraint !== undefined && "choices" in constraint)
      return this.sampleCandidate(request, constraint.choices);
    if (this.settings.sampling.temperature > 0) return this.sampleTokens(request);
    const key = `greedy;${maxNewTokens};${prompt.join()};${constraint === undefined ? "" : constraintKey(constraint)}`;
    const isComplete = ({ finishReason }: TurnCompletion) => finishReason !== "aborted";
    return this.cache.getOrCompute(key, () => this.sampleTokens(request), isComplete);
  }

  /**
   * Returns a given text as an unconstrained completion, with the log-probabilities of its tokens
   * at temperature 1.
   */
  async score(prompt: readonly number[], text: string): Promise<TurnCompletion> {
    const tokens = this.encode(text, prompt);
    const completer = await this.model.completer();
    const [logProbs] = await completer.score(prompt, [tokens]);
    return { tokens, logProbs, text, finishReason: "stop", allowedTokens: undefined };
  }

  /**
   * Returns the end token that the chat template appends to a completion; undefined if a stop
   * string ends completions.
   */
  private endOfTurnToken(): number | undefined {
    const { tokenizer } = this.model;
    if (this.settings.ignoreEos || tokenizer.chatTemplates.size === 0) return undefined;
    const { ids, assistantSpans } = tokenizer.encodeChat([
      { role: "user", content: "?" },
      { role: "assistant", content: "!" },
    ]);
    const start = assistantSpans.at(0)?.[0] ?? ids.length;
    return ids.slice(start).find((id) => this.endTokens.has(id)) ?? tokenizer.eosTokenId;
  }

  private async sampleTokens({
    prompt,
    constraint,
    random,
    onDistribution,
    maxNewTokens = this.settings.maxNewTokens,
    signal,
  }: TurnRequest): Promise<TurnCompletion> {
    const { sampling, stop } = this.settings;
    const compiled = constraint === undefined ? undefined : this.compile(constraint, prompt);
    const isPattern = constraint !== undefined && !("choices" in constraint);
    const isSmall = this.hasSmallDistributions(constraint);
    const isSampled = sampling.temperature > 0;
    const { hasDistributions } = this.model.policy;
    const isCached = isSampled && hasDistributions && (isSmall || this.cache.isRecurring(prompt));
    const completer = await this.model.completer();
    const hasKeptTokens = recordsKeptTokens(this.settings);
    const completion = await completer.complete({
      prompt,
      sampling,
      maxNewTokens: compiled?.maxLength ?? maxNewTokens,
      random,
      stop: { tokens: this.endTokens, strings: isPattern ? [] : stop },
      constraint: compiled,
      isContinuation: true,
      skipForcedTokens: true,
      skipRawLogProbs: true,
      recordsKeptTokens: hasKeptTokens,
      cache: isCached ? this.cache : undefined,
      // Large distributions would be copied and summarized for it.
      onDistribution: isCached && isSmall ? onDistribution : undefined,
      signal,
    });
    if (isSampled && !isCached) this.cache.remember(prompt, completion.tokens);
    return hasKeptTokens ? { ...completion, hasKeptTokens } : completion;
  }

  /**
   * Returns the probabilities with which choices are sampled after a prompt, at temperature 0 those
   * at temperature 1.
   */
  async choiceProbabilities(prompt: readonly number[], choices: readonly string[]): Promise<readonly number[]> {
    this.cache.keepVersion(this.model.policy.cacheVersion);
    if (this.settings.actionScoring !== undefined) {
      return (await this.scoreChoices(prompt, choices)).probabilities;
    }
    const constraint = this.compile({ choices }, prompt) as ChoiceConstraint;
    const completer = await this.model.completer();
    const logProbs = await completer.score(prompt, constraint.sequences);
    return constraint.logProbs(logProbs, this.settings.sampling.temperature || 1).map(Math.exp);
  }

  /** Samples one of the choices by their scores; at temperature 0 takes the best. */
  private async sampleCandidate({ prompt, random }: TurnRequest, choices: readonly string[]): Promise<TurnCompletion> {
    const { temperature } = this.settings.sampling;
    const { sequences, weights, logProbs, probabilities, expScores, total } = await this.scoreChoices(prompt, choices);
    const chosen =
      temperature === 0 ? logProbs.indexOf(Math.max(...logProbs)) : sampleIndex(expScores, random.random() * total);
    return {
      tokens: sequences[chosen],
      logProbs: [logProbs[chosen]],
      finishReason: "stop",
      text: choices[chosen],
      allowedTokens: undefined,
      actionCandidates: { sequences, weights, chosen, probabilities },
    };
  }

  /**
   * Scores choices by the mean of their log-probabilities; turns in the same state share the
   * result.
   */
  private async scoreChoices(prompt: readonly number[], choices: readonly string[]): Promise<ScoredChoices> {
    const key = `scores;${prompt.join()};${constraintKey({ choices })}`;
    return this.cache.getOrCompute(key, () => this.computeScores(prompt, choices));
  }

  private async computeScores(prompt: readonly number[], choices: readonly string[]): Promise<ScoredChoices> {
    const { sequences, weights } = this.encodeCandidates(prompt, choices);
    const logProbSums = await this.scoreCandidates(prompt, sequences);
    const scores = logProbSums.map((sum, i) => sum * weights[i]);
    const maxScore = Math.max(...scores);
    const expScores = scores.map((score) => Math.exp(score - maxScore));
    const total = expScores.reduce((sum, value) => sum + value, 0);
    const logProbs = scores.map((score) => score - maxScore - Math.log(total));
    return { sequences, weights, logProbs, probabilities: expScores.map((score) => score / total), expScores, total };
  }

  private encodeCandidates(
    prompt: readonly number[],
    choices: readonly string[],
  ): Pick<ScoredChoices, "sequences" | "weights"> {
    const { tokenizer } = this.model;
    const { splitSpecialTokens } = tokenizer;
    const temperature = this.settings.sampling.temperature || 1;
    const sequences = choices.map((choice) =>
      tokenizer.encodeContinuation(choice, prompt.at(-1), { splitSpecialTokens }),
    );
    const lengths = choices.map((choice, i) => this.scoringLength(choice, sequences[i]));
    return { sequences, weights: lengths.map((length) => 1 / length / temperature) };
  }

  private async scoreCandidates(
    prompt: readonly number[],
    candidates: readonly (readonly number[])[],
  ): Promise<number[]> {
    const completer = await this.model.completer();
    const logProbsPerCandidate = await completer.score(prompt, candidates);
    return logProbsPerCandidate.map((logProbs) => logProbs.reduce((sum, logProb) => sum + logProb, 0));
  }

  private scoringLength(choice: string, tokens: readonly number[]): number {
    if (this.settings.actionScoring === "token") return tokens.length;
    return this.settings.actionScoring === "word" ? Math.max(1, choice.trim().split(/\s+/).length) : 1;
  }

  private hasSmallDistributions(constraint: OutputConstraint | undefined): boolean {
    const hasChoices = constraint !== undefined && "choices" in constraint;
    return hasChoices || this.model.policy.config.vocabSize <= MAX_SMALL_VOCABULARY;
  }

  private compile(constraint: OutputConstraint, prompt: readonly number[]): CompiledConstraint {
    const { maxNewTokens } = this.settings;
    return this.model.compileConstraint(constraint, { previousToken: prompt.at(-1), maxNewTokens });
  }
}
