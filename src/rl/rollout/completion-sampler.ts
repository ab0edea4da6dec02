import type { LanguageModel } from "../../generation/language-model.js";
import { IncrementalDetokenizer } from "../../generation/incremental-detokenizer.js";
import type { FinishReason, SampleOutput } from "../../generation/sampling/sample-request.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import {
  constraintKey,
  compileConstraint,
  type CompiledConstraint,
  type OutputConstraint,
} from "../../generation/output-constraint.js";
import { DistributionCache, type PartialCompletion } from "../../generation/cache/distribution-cache.js";
import type { CompletionSettings } from "./rollout-settings.js";
import type { ActionCandidates } from "./trajectory.js";

/** A reply as it was sampled, and its text. */
export interface Completion extends Omit<SampleOutput, "rawLogProbs" | "values"> {
  readonly text: string;
  /** Of the state before each token, NaN where it is not known; undefined for an action that was drawn by its score. */
  readonly values?: readonly number[];
  /** The tokens among which each was drawn; undefined for a free reply. */
  readonly allowedTokens: readonly Int32Array[] | undefined;
  /** For an action that was drawn by its score. */
  readonly actionCandidates?: ActionCandidates;
}

export interface TurnRequest {
  readonly prompt: readonly number[];
  /** What the reply is held to. */
  readonly constraint?: OutputConstraint;
  readonly random: RandomStream;
  /** Ends the reply where it stands. */
  readonly signal?: AbortSignal;
}

/** Greedy replies and choice lists that are kept. */
const MAX_CACHED = 8192;

/** Patterns that are kept; a compiled one may be large. */
const MAX_CACHED_PATTERNS = 16;

/** From here on a distribution is too large to keep many. */
const MAX_CACHED_VOCABULARY = 4096;

/**
 * Draws replies for many episodes at once: wishes made in the same turn of the event loop are one batch. What was found out about
 * a prompt that comes again is not computed again while the parameters stand.
 */
export class CompletionSampler {
  private readonly endTokens: ReadonlySet<number>;
  private readonly choiceConstraints = new Map<string, CompiledConstraint>();
  private readonly patternConstraints = new Map<string, CompiledConstraint>();
  private readonly greedyCompletions = new Map<string, Promise<Completion>>();
  private readonly distributions = new DistributionCache();
  /** Sums of the log-probabilities of the choices' tokens, by prompt and choices. */
  private readonly candidateScores = new Map<string, Promise<readonly number[]>>();
  private parametersVersion: number;

  constructor(
    readonly model: LanguageModel,
    readonly settings: CompletionSettings,
  ) {
    this.endTokens = new Set(settings.ignoreEos ? [] : model.endTokenIds);
    this.parametersVersion = model.causalLM.parametersVersion;
  }

  /** The most tokens that a reply can have. Throws what `reply` throws for the form. */
  maxLength(constraint: OutputConstraint | undefined, prompt: readonly number[] = []): number {
    return constraint === undefined ? this.settings.maxNewTokens : this.compile(constraint, prompt).maxLength;
  }

  /**
   * The tokens that a reply of this text would be sampled as, with the token or the string that ends it; undefined for a text that
   * is not in the form.
   */
  encode(
    text: string,
    { prompt, constraint }: Pick<TurnRequest, "prompt" | "constraint">,
  ): readonly number[] | undefined {
    if (constraint !== undefined) return this.compile(constraint, prompt).encode(text);
    const { tokenizer } = this.model;
    const end = this.endOfTurnToken();
    const [stop = ""] = end === undefined ? this.settings.stop : [];
    return [...tokenizer.encodeContinuation(text + stop, prompt.at(-1)), ...(end === undefined ? [] : [end])];
  }

  /**
   * One reply. Throws INVALID_ARGUMENT for choices that tokenise alike and for a pattern that cannot be met,
   * CONTEXT_OVERFLOW for a prompt without room.
   */
  async sample(request: TurnRequest): Promise<Completion> {
    if (this.parametersVersion !== this.model.causalLM.parametersVersion) this.clearCaches();
    const { constraint } = request;
    if (this.settings.scoring !== undefined && constraint !== undefined && "choices" in constraint)
      return this.sampleCandidate({ ...request, choices: constraint.choices });
    if (this.settings.sampling.temperature > 0) return this.sampleTokens(request);
    const key = cacheKey(request);
    return this.greedyCompletions.get(key) ?? this.sampleGreedy(key, request);
  }

  /** A reply that is kept, unless it is not whole. */
  private async sampleGreedy(key: string, request: TurnRequest): Promise<Completion> {
    if (this.greedyCompletions.size >= MAX_CACHED) this.greedyCompletions.clear();
    const pending = this.sampleTokens(request);
    this.greedyCompletions.set(key, pending);
    let isComplete = false;
    try {
      const completion = await pending;
      isComplete = completion.finishReason !== "aborted";
      return completion;
    } finally {
      if (!isComplete) this.greedyCompletions.delete(key);
    }
  }

  /** The end token that the chat template puts behind a reply, undefined where a string ends replies. */
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

  private clearCaches(): void {
    this.greedyCompletions.clear();
    this.candidateScores.clear();
    this.distributions.clear();
    this.parametersVersion = this.model.causalLM.parametersVersion;
  }

  private async sampleTokens(request: TurnRequest): Promise<Completion> {
    const { prompt, constraint, random, signal } = request;
    const { sampling, maxNewTokens, stop } = this.settings;
    const compiled = constraint === undefined ? undefined : this.compile(constraint, prompt);
    const maxLength = compiled?.maxLength ?? maxNewTokens;
    const stopTokens = compiled === undefined ? this.endTokens : NO_TOKENS;
    const text = new IncrementalDetokenizer(this.model.tokenizer, {
      // A pattern's reply ends where the pattern lets it.
      stop: constraint === undefined || "choices" in constraint ? stop : [],
      stopTokens: this.endTokens,
      previousToken: prompt.at(-1),
    });
    const draft: PartialCompletion & { finishReason: FinishReason | undefined } = {
      tokens: [],
      logProbs: [],
      values: [],
      finishReason: undefined,
    };
    let numDetokenized = 0;
    /** Why the reply is over, undefined while it is not. */
    const finishReason = (): FinishReason | undefined => {
      for (; numDetokenized < draft.tokens.length; numDetokenized++) text.push(draft.tokens[numDetokenized]);
      const last = draft.tokens.at(-1);
      if (last === undefined) return undefined;
      if (stopTokens.has(last) || compiled?.allowedTokens(draft.tokens).length === 0) return "stop";
      if (text.hasMatchedStopString) return "stop_string";
      return draft.tokens.length >= maxLength ? "length" : undefined;
    };
    const usesCache = this.isCacheable(constraint);
    const key = usesCache ? cacheKey(request) : "";
    const compute = async () => {
      const prefix = [...draft.tokens];
      const sampler = await this.model.sampler();
      const output = await sampler.sample({
        prompt: [...prompt, ...prefix],
        sampling,
        maxNewTokens: maxLength - prefix.length,
        random: () => random.random(),
        stopTokens,
        shouldStop: () => text.hasMatchedStopString,
        constraint: compiled && { allowedTokens: (tokens) => compiled.allowedTokens([...prefix, ...tokens]) },
        skipForcedTokens: true,
        onDistribution: usesCache
          ? (distribution, value) => this.distributions.add(key, draft.tokens, distribution, value)
          : undefined,
        onToken: (token) => {
          draft.tokens.push(token);
          finishReason();
        },
        signal,
      });
      draft.logProbs.push(...output.logProbs);
      draft.values.push(...output.values);
      draft.finishReason = output.finishReason;
    };
    if (usesCache) {
      const isFinished = () => finishReason() !== undefined;
      await this.distributions.complete(key, draft, { random: () => random.random(), isFinished, compute });
    } else {
      await compute();
    }
    text.flush();
    const { tokens, logProbs, values } = draft;
    return {
      tokens,
      logProbs,
      values,
      finishReason: draft.finishReason ?? finishReason()!,
      text: text.text,
      allowedTokens: compiled && tokens.map((_token, i) => compiled.allowedTokens(tokens.slice(0, i))),
    };
  }

  /** Draws one of the choices by their scores; at temperature 0 the best. */
  private async sampleCandidate(request: TurnRequest & { readonly choices: readonly string[] }): Promise<Completion> {
    const { prompt, choices: choiceConstraints, random } = request;
    const { temperature } = this.settings.sampling;
    const sequences = choiceConstraints.map((choice) => this.model.tokenizer.encodeContinuation(choice, prompt.at(-1)));
    const key = `${prompt.join()};${choiceConstraints.join("\u0000")}`;
    let logProbSums = this.candidateScores.get(key);
    if (logProbSums === undefined) {
      if (this.candidateScores.size >= MAX_CACHED) this.candidateScores.clear();
      this.candidateScores.set(key, (logProbSums = this.scoreCandidates(prompt, sequences)));
    }
    const lengths = choiceConstraints.map((choice, i) => this.scoringLength(choice, sequences[i]));
    const weights = lengths.map((length) => 1 / length / (temperature || 1));
    const scores = (await logProbSums).map((sum, i) => sum * weights[i]);
    const maxScore = Math.max(...scores);
    const expScores = scores.map((score) => Math.exp(score - maxScore));
    const total = expScores.reduce((sum, mass) => sum + mass, 0);
    const chosen = temperature === 0 ? scores.indexOf(maxScore) : sampleIndex(expScores, random.random() * total);
    return {
      tokens: sequences[chosen],
      logProbs: [scores[chosen] - maxScore - Math.log(total)],
      finishReason: "stop",
      text: choiceConstraints[chosen],
      allowedTokens: undefined,
      actionCandidates: { sequences, weights, chosen },
    };
  }

  private async scoreCandidates(
    prompt: readonly number[],
    candidates: readonly (readonly number[])[],
  ): Promise<number[]> {
    const sampler = await this.model.sampler();
    const logProbsPerCandidate = await Promise.all(candidates.map((candidate) => sampler.score(prompt, candidate)));
    return logProbsPerCandidate.map((logProbs) => logProbs.reduce((sum, logProb) => sum + logProb, 0));
  }

  private scoringLength(choice: string, tokens: readonly number[]): number {
    if (this.settings.scoring === "token") return tokens.length;
    return this.settings.scoring === "word" ? Math.max(1, choice.trim().split(/\s+/).length) : 1;
  }

  /** Whether distributions are kept: not greedy replies', not large ones. */
  private isCacheable(constraint: OutputConstraint | undefined): boolean {
    const { sampling } = this.settings;
    if (sampling.temperature === 0) return false;
    const isSmall = constraint !== undefined && "choices" in constraint;
    return isSmall || this.model.causalLM.config.vocabSize <= MAX_CACHED_VOCABULARY;
  }

  private compile(constraint: OutputConstraint, prompt: readonly number[]): CompiledConstraint {
    const previousToken = prompt.at(-1);
    const key = `${previousToken};${constraintKey(constraint)}`;
    const [cache, maxEntries] =
      "choices" in constraint ? [this.choiceConstraints, MAX_CACHED] : [this.patternConstraints, MAX_CACHED_PATTERNS];
    let compiled = cache.get(key);
    if (compiled === undefined) {
      compiled = compileConstraint(this.model, constraint, { previousToken, maxNewTokens: this.settings.maxNewTokens });
      if (cache.size >= maxEntries) cache.clear();
      cache.set(key, compiled);
    }
    return compiled;
  }
}

/** Equal for wishes whose replies are drawn from the same distribution. */
function cacheKey({ prompt, constraint }: TurnRequest): string {
  return `${prompt.join()};${constraint === undefined ? "" : constraintKey(constraint)}`;
}

const NO_TOKENS: ReadonlySet<number> = new Set();

/** Where the running sum of masses passes a number. */
function sampleIndex(weights: readonly number[], target: number): number {
  let remaining = target;
  const index = weights.findIndex((mass) => (remaining -= mass) < 0);
  return index === -1 ? weights.findLastIndex((mass) => mass > 0) : index;
}
