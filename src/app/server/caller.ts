import * as z from "zod";
import { LlamaGymError } from "../../core/errors.js";
import { checkServerAccess } from "../../core/server-address.js";
import { checkOptions, type OptionNames } from "../../core/settings.js";

/** Options of a `Caller`. */
export interface CallerOptions {
  /** Address of the server, such as http://127.0.0.1:8080/v1. */
  readonly baseURL: string;
  readonly apiKey?: string;
  /** Name of the model; by default the server's first. */
  readonly model?: string;
}

/** Options of `Caller.generate`. */
export interface CallerGenerateOptions {
  /** Completions of each context. Default 1. */
  readonly numReturnSequences?: number;
  readonly maxNewTokens?: number;
  readonly temperature?: number;
  readonly topK?: number;
  readonly topP?: number;
  readonly stop?: readonly string[];
  readonly seed?: number;
}

const callerGenerateOptionNames: OptionNames<CallerGenerateOptions> = {
  numReturnSequences: true,
  maxNewTokens: true,
  temperature: true,
  topK: true,
  topP: true,
  stop: true,
  seed: true,
};

/** A completion of a context. */
export interface CallerCompletion {
  readonly text: string;
  /** Sum of the tokens' log-probabilities under the model at temperature 1. */
  readonly logProb: number;
}

const score = z.object({
  data: z.array(
    z.array(z.object({ logprob: z.number(), outputs: z.record(z.string(), z.array(z.array(z.number()))).optional() })),
  ),
});
const completions = z.object({
  choices: z.array(z.object({ text: z.string(), logprobs: z.object({ token_logprobs: z.array(z.number()) }) })),
});
const failure = z.object({ error: z.object({ message: z.string() }) });

/**
 * Asks a server of `llamagym serve` for scores, completions and custom outputs, as Lamorel's Caller
 * does; many processes may share a server.
 */
export class Caller {
  /** @throws INVALID_ARGUMENT for an invalid address or key, and unknown options. */
  constructor(private readonly options: CallerOptions) {
    checkOptions("Caller", options, { baseURL: true, apiKey: true, model: true });
    const { baseURL, apiKey } = options;
    checkServerAccess({
      name: "baseURL",
      address: baseURL,
      example: "http://127.0.0.1:8080/v1",
      apiKey,
      keyHome: "`apiKey`",
    });
  }

  /**
   * Returns the log-probability of each candidate of each context.
   * @throws INVALID_ARGUMENT if the server rejects the request, INVALID_STATE if it does not
   * answer.
   */
  async score(contexts: readonly string[], candidates: readonly (readonly string[])[]): Promise<number[][]> {
    const items = contexts.map((prompt, i) => ({ prompt, candidates: candidates[i] }));
    const { data } = await this.post("/score", { items }, score);
    return data.map((scores) => scores.map(({ logprob }) => logprob));
  }

  /**
   * Returns registered outputs for each candidate of each context, by name: for each token a list
   * of numbers. Throws as `score` does.
   */
  async compute(
    outputs: readonly string[],
    contexts: readonly string[],
    candidates: readonly (readonly string[])[],
  ): Promise<Readonly<Record<string, number[][]>>[][]> {
    const items = contexts.map((prompt, i) => ({ prompt, candidates: candidates[i] }));
    const { data } = await this.post("/score", { items, outputs }, score);
    return data.map((scores) => scores.map((each) => each.outputs ?? {}));
  }

  /** Returns completions of each context. Throws as `score` does. */
  async generate(contexts: readonly string[], options: CallerGenerateOptions = {}): Promise<CallerCompletion[][]> {
    checkOptions("Caller.generate", options, callerGenerateOptionNames);
    const { numReturnSequences = 1, maxNewTokens, temperature, topK, topP, stop, seed } = options;
    const sampling = { temperature, top_k: topK, top_p: topP, stop, seed, max_tokens: maxNewTokens };
    const body = { ...sampling, prompt: contexts, n: numReturnSequences, logprobs: 0 };
    const { choices } = await this.post("/completions", body, completions);
    const sampled = choices.map(({ text, logprobs }) => ({
      text,
      logProb: logprobs.token_logprobs.reduce((sum, value) => sum + value, 0),
    }));
    return contexts.map((_, i) => sampled.slice(i * numReturnSequences, (i + 1) * numReturnSequences));
  }

  private async post<Schema extends z.ZodType>(path: string, body: object, schema: Schema): Promise<z.infer<Schema>> {
    const { baseURL, apiKey, model } = this.options;
    const headers = { "content-type": "application/json", ...(apiKey !== undefined && { "x-api-key": apiKey }) };
    const url = `${baseURL.replace(/\/$/, "")}${path}`;
    const unavailable = (cause: unknown) =>
      new LlamaGymError("INVALID_STATE", `${url} does not answer as a server of llamagym. Is it running?`, { cause });
    let response: Response;
    let answer: unknown;
    try {
      response = await fetch(url, { method: "POST", headers, body: JSON.stringify({ model, ...body }) });
      answer = await response.json();
    } catch (error) {
      throw unavailable(error);
    }
    const failed = failure.safeParse(answer);
    if (failed.success) {
      const code = response.status < 500 ? "INVALID_ARGUMENT" : "INVALID_STATE";
      throw new LlamaGymError(code, `${url}: ${failed.data.error.message}`);
    }
    const parsed = schema.safeParse(answer);
    if (parsed.success) return parsed.data;
    throw unavailable(parsed.error);
  }
}
