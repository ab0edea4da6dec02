import { yieldToEventLoop } from "#platform";
import { invalidArgument } from "../core/errors.js";
import { sampleFromDistribution } from "../engine/runtime/index.js";
import {
  ChoiceConstraint,
  RunningSequence,
  type SampleOutput,
  type SampleRequest,
  type ScoredTokens,
  type TokenSampler,
} from "../generation/index.js";
import type { SampleParams, SamplingClient } from "./client/sampling-client.js";
import type { SampledSequence } from "./wire/sample-response.js";

/** Largest seed that services take. */
const MAX_SEED = 2 ** 31;

interface WaitingSample {
  readonly request: SampleRequest;
  readonly resolve: (sample: SampledSequence) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Samples and scores on a service, which computes one set of weights at a time: `getClient` returns
 * the client of the current ones. Equal requests made in the same turn of the event loop are one
 * request for several samples.
 */
export class RemoteSampler implements TokenSampler {
  private readonly waiting = new Map<string, WaitingSample[]>();
  private scores = new Map<string, Promise<readonly number[]>>();
  private scoringClient: SamplingClient | undefined;

  constructor(private readonly getClient: () => Promise<SamplingClient>) {}

  async sample(request: SampleRequest): Promise<SampleOutput> {
    checkRequest(request);
    const sequence = RunningSequence.forSampling(request);
    if (request.signal?.aborted === true) return sequence.toOutput("aborted");
    const completed = request.constraint === undefined ? this.complete(sequence) : this.choose(sequence);
    return unlessAborted(completed, request.signal, () => sequence.toOutput("aborted"));
  }

  async resume(sequence: RunningSequence): Promise<SampleOutput> {
    return this.sample(sequence.request!);
  }

  async score(prompt: readonly number[], continuation: readonly number[]): Promise<readonly number[]> {
    if (continuation.length === 0) return [];
    const client = await this.getClient();
    if (this.scoringClient !== client) {
      this.scoringClient = client;
      this.scores = new Map();
    }
    const tokens = [...prompt, ...continuation];
    const key = `${tokens.join()};${continuation.length}`;
    let score = this.scores.get(key);
    if (score === undefined) {
      score = client.scoreLast(tokens, continuation.length);
      this.scores.set(key, score);
      score.catch(() => this.scores.delete(key));
    }
    return score;
  }

  async scoreTokens(
    prompt: readonly number[],
    continuation: readonly number[],
    alternatives = 0,
  ): Promise<ScoredTokens> {
    if (continuation.length === 0) return { logProbs: [], topLogProbs: [] };
    if (alternatives === 0) return { logProbs: await this.score(prompt, continuation), topLogProbs: [] };
    const count = continuation.length;
    const response = await (
      await this.getClient()
    ).sample({
      prompt: [...prompt, ...continuation],
      params: { maxTokens: 1, temperature: 1, topK: -1, topP: 1 },
      topkPrompt: alternatives,
    });
    return {
      logProbs: (response.promptLogprobs ?? []).slice(-count).map((value) => value ?? NaN),
      topLogProbs: (response.topkPromptLogprobs ?? [])
        .slice(-count)
        .map((row) => row.map(({ token, logprob }) => ({ token, logProb: logprob }))),
    };
  }

  async release(): Promise<void> {}

  /** Samples an unconstrained completion. */
  private async complete(sequence: RunningSequence): Promise<SampleOutput> {
    const request = sequence.request!;
    const { sampling, topLogProbs } = request;
    const sampled = await this.enqueue(request);
    for (const [i, token] of sampled.tokens.entries()) {
      const logProb = sampled.logprobs?.[i] ?? NaN;
      sequence.appendToken({
        token,
        // As in the engine, a greedy token is not sampled.
        logProb: sampling.temperature === 0 ? 0 : logProb,
        rawLogProb: logProb,
        value: NaN,
        distribution: undefined,
        ...(topLogProbs === undefined
          ? {}
          : {
              topLogProbs: (sampled.topkLogprobs?.[i] ?? []).map(({ token: id, logprob }) => ({
                token: id,
                logProb: logprob,
              })),
            }),
      });
      if (sequence.finishReason !== undefined) return sequence.toOutput(sequence.finishReason);
    }
    return sequence.toOutput(sampled.stopReason);
  }

  private enqueue(request: SampleRequest): Promise<SampledSequence> {
    const { prompt, maxNewTokens, sampling, stopTokens, stopStrings = [], topLogProbs } = request;
    const key = JSON.stringify([prompt, maxNewTokens, sampling, [...stopTokens], stopStrings, topLogProbs]);
    return new Promise((resolve, reject) => {
      const group = this.waiting.get(key);
      if (group !== undefined) {
        group.push({ request, resolve, reject });
        return;
      }
      this.waiting.set(key, [{ request, resolve, reject }]);
      void yieldToEventLoop().then(() => this.send(key));
    });
  }

  private async send(key: string): Promise<void> {
    const group = this.waiting.get(key)!;
    this.waiting.delete(key);
    try {
      const [{ request }] = group;
      // Each completion takes one number, so that its stream does not depend on the others of the
      // group.
      const [seed] = group.map((each) => Math.floor(each.request.random() * MAX_SEED));
      const { sequences } = await (
        await this.getClient()
      ).sample({
        prompt: request.prompt,
        count: group.length,
        params: { ...toParams(request), seed },
        topkSample: request.topLogProbs ?? 0,
      });
      group.forEach(({ resolve, reject }, i) => {
        const sampled = sequences.at(i);
        if (sampled !== undefined) resolve(sampled);
        else reject(invalidArgument(`The service returned ${sequences.length} samples of ${group.length}.`));
      });
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  }

  /**
   * Samples one of several choices from their exact probabilities, token by token as the engine
   * does.
   */
  private async choose(sequence: RunningSequence): Promise<SampleOutput> {
    const request = sequence.request!;
    const { constraint, prompt, sampling } = request;
    if (!(constraint instanceof ChoiceConstraint))
      throw invalidArgument(
        "A regular expression or JSON schema constrains each token by the model's logits, which a Tinker service does not " +
          "return. Leave completions free (actionMode free) or list the choices (actionMode choices).",
      );
    const edges = await this.scoreEdges(prompt, constraint);
    for (;;) {
      sequence.appendForcedTokens();
      const { finishReason, allowedTokens, tokens } = sequence;
      if (finishReason !== undefined) return sequence.toOutput(finishReason);
      const rawLogProbs = Array.from(allowedTokens!, (token) => edges.get([...tokens, token].join()) ?? 0);
      const { token, logProb } = sampleAmong(allowedTokens!, rawLogProbs, sampling.temperature, request.random);
      const rawLogProb = rawLogProbs[allowedTokens!.indexOf(token)];
      sequence.appendToken({ token, logProb, rawLogProb, value: NaN, distribution: undefined });
    }
  }

  /**
   * Scores the tokens of choices at which others were possible, by the tokens of the choice up to
   * each.
   */
  private async scoreEdges(prompt: readonly number[], constraint: ChoiceConstraint): Promise<Map<string, number>> {
    const beginnings = new Map<string, readonly number[]>();
    for (const tokens of constraint.sequences) {
      const cursor = constraint.cursor();
      let end = 0;
      tokens.forEach((token, i) => {
        if (cursor.allowedTokens.length > 1) end = i + 1;
        cursor.advance(token);
      });
      if (end > 0) beginnings.set(tokens.slice(0, end).join(), tokens.slice(0, end));
    }
    const edges = new Map<string, number>();
    await Promise.all(
      Array.from(beginnings.values(), async (tokens) => {
        const logProbs = await this.score(prompt, tokens);
        logProbs.forEach((logProb, i) => edges.set(tokens.slice(0, i + 1).join(), logProb));
      }),
    );
    return edges;
  }
}

function sampleAmong(ids: Int32Array, logProbs: readonly number[], temperature: number, random: () => number) {
  const max = Math.max(...logProbs);
  if (temperature === 0) return { token: ids[logProbs.indexOf(max)], logProb: 0 };
  const probabilities = Float64Array.from(logProbs, (logProb) => Math.exp((logProb - max) / temperature));
  return sampleFromDistribution({ ids, probabilities, count: ids.length }, random());
}

function toParams({ maxNewTokens, sampling, stopTokens, stopStrings = [] }: SampleRequest): SampleParams {
  const { temperature, topK, topP } = sampling;
  return {
    maxTokens: maxNewTokens,
    temperature,
    topK: topK === 0 ? -1 : topK,
    topP,
    // The protocol takes strings or tokens. The model's own end tokens end a completion in any
    // case.
    stop: stopStrings.length > 0 ? stopStrings : [...stopTokens],
  };
}

/** @throws INVALID_ARGUMENT for what services do not sample. */
function checkRequest({ sampling, recordsKeptTokens }: SampleRequest): void {
  const { minP, repetitionPenalty } = sampling;
  const name = minP > 0 ? "minP" : repetitionPenalty !== 1 ? "repetitionPenalty" : undefined;
  if (name !== undefined) throw invalidArgument(`A Tinker service does not sample with \`${name}\`. Leave it out.`);
  if (recordsKeptTokens === true)
    throw invalidArgument("A Tinker service does not say which tokens topK and topP kept. Leave them out in training.");
}

/** Returns the result, or that of `aborted` as soon as the signal aborts. */
async function unlessAborted<Result>(
  result: Promise<Result>,
  signal: AbortSignal | undefined,
  aborted: () => Result,
): Promise<Result> {
  if (signal === undefined) return result;
  let stop: (() => void) | undefined;
  const abort = new Promise<Result>((resolve) => {
    stop = () => resolve(aborted());
    signal.addEventListener("abort", stop, { once: true });
  });
  try {
    return await Promise.race([result, abort]);
  } finally {
    signal.removeEventListener("abort", stop!);
  }
}
