import * as z from "zod";
import { system } from "#platform";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { LruCache, sizeByKey } from "../../core/lru-cache.js";
import { checkServerAccess } from "../../core/server-address.js";
import type { LanguageModel, PolicyScorer } from "../../generation/index.js";
import type { TokenBatch } from "../../models/graphs/index.js";
import { ServiceConnection, unpackSequences } from "../../tinker/index.js";
import { differentTokens } from "./check-model.js";
import type { ScoringPolicy, TeacherServer } from "./learner.js";

/** Sequences of a request, and requests at the same time. */
const SEQUENCES_PER_REQUEST = 16;
const MAX_CONCURRENT = 4;
/** Seconds of a request: a server may run on processors. */
const TIMEOUT_SECONDS = 600;
/** Seconds for which a server that does not answer is asked again, at the start and later. */
const START_WAIT_SECONDS = 5;
const MAX_WAIT_SECONDS = 300;
/** Tokens that are compared before the run. */
const NUM_PROBE_TOKENS = 256;
/** Started kilobytes of keys and scores that are kept: prompts of environments recur. */
const MAX_CACHED_SIZE = 100_000;

const models = z.object({ data: z.array(z.object({ id: z.string() })).min(1) });
const completions = z.object({
  choices: z.array(
    z.object({
      index: z.int(),
      logprobs: z.object({ tokens: z.array(z.string()), token_logprobs: z.array(z.number().nullable()) }),
    }),
  ),
});

/** What a server knows about the tokens of a sequence. */
interface EchoedTokens {
  readonly texts: readonly string[];
  /** The first token has none. */
  readonly logProbs: readonly (number | null)[];
}

/** A server with OpenAI's API. */
export class OpenAiServer {
  readonly baseURL: string;
  private readonly connection: ServiceConnection;
  private model: string | undefined;

  /** @throws INVALID_ARGUMENT for an invalid address. */
  constructor({ baseURL, apiKey = system.env.OPENAI_API_KEY ?? "", model }: TeacherServer) {
    const keyHome = "`apiKey` or OPENAI_API_KEY";
    checkServerAccess({ name: "baseURL", address: baseURL, example: "http://127.0.0.1:8000/v1", apiKey, keyHome });
    this.baseURL = baseURL;
    this.model = model;
    this.connection = new ServiceConnection({
      baseUrl: baseURL,
      apiKey,
      scheme: "bearer",
      apiPath: "/",
      keyVariable: "OPENAI_API_KEY",
      docs: "docs/algorithms/distillation.md",
      maxWaitSeconds: MAX_WAIT_SECONDS,
    });
  }

  /**
   * Sends a request to the model, by default the server's first, and again while the server is
   * busy; one that has not answered yet gets a few seconds. @throws SERVICE_FAILED
   */
  async post(path: string, body: object): Promise<unknown> {
    if (this.model === undefined) {
      const { json } = await this.connection.send({
        path: "models",
        method: "GET",
        maxWaitSeconds: START_WAIT_SECONDS,
      });
      const parsed = models.safeParse(json);
      this.model = parsed.success ? parsed.data.data[0].id : "";
    }
    const json = { ...(this.model === "" ? {} : { model: this.model }), ...body };
    return (await this.connection.send({ path, json, timeoutMs: 1000 * TIMEOUT_SECONDS })).json;
  }

  close(): void {
    this.connection.close();
  }
}

/**
 * Connects to a teacher at a URL and checks that it has the student's tokens.
 * @throws INVALID_ARGUMENT for an invalid address and another tokenizer, SERVICE_FAILED if the
 * server does not answer or does not score prompts.
 */
export async function connectTeacher(options: TeacherServer, student: LanguageModel): Promise<ScoringPolicy> {
  const server = new OpenAiServer(options);
  const client = new PromptScores(server);
  const { vocabSize, maxPositions } = student.policy.config;
  await checkTokens(client, student);
  const createScorer = async (): Promise<PolicyScorer> => ({
    run: async (batch) => ({
      logProbs: await scoreBatch(client, batch, server.baseURL),
      maxLogProbs: undefined,
      entropy: undefined,
      values: undefined,
      outputs: {},
    }),
    release: async () => server.close(),
  });
  // What attention costs there is not known here, so that batches are not split for it.
  const config = { vocabSize, maxPositions, hiddenSize: Infinity, heads: 1 };
  return { config, valueHead: undefined, maxAlternatives: Infinity, createScorer };
}

/** Log-probabilities of prompts at a server, which has the same weights for the whole run. */
class PromptScores {
  private readonly cache = new LruCache<readonly (number | null)[]>(
    MAX_CACHED_SIZE,
    (key, { length }) => sizeByKey(key) + Math.ceil(length / 128),
  );

  constructor(private readonly server: OpenAiServer) {}

  /** Returns the log-probability of each token of each sequence. @throws SERVICE_FAILED */
  async score(sequences: readonly (readonly number[])[]): Promise<readonly (readonly (number | null)[])[]> {
    const keys = sequences.map((tokens) => tokens.join(","));
    const missing = new Map(sequences.flatMap((tokens, i) => (this.cache.get(keys[i]) ? [] : [[keys[i], tokens]])));
    const scored = new Map<string, readonly (number | null)[]>();
    const entries = [...missing];
    const next = async (): Promise<void> => {
      const batch = entries.splice(0, SEQUENCES_PER_REQUEST);
      if (batch.length === 0) return;
      const echoed = await this.request(batch.map(([, tokens]) => tokens));
      batch.forEach(([key], i) => scored.set(key, echoed[i].logProbs));
      await next();
    };
    await Promise.all(Array.from({ length: MAX_CONCURRENT }, next));
    const found = keys.map((key) => scored.get(key) ?? this.cache.get(key)!);
    for (const [key, logProbs] of scored) this.cache.set(key, logProbs);
    return found;
  }

  /**
   * Requests the echo of sequences with one token behind them, which every server grants.
   * @throws SERVICE_FAILED
   */
  async request(sequences: readonly (readonly number[])[]): Promise<readonly EchoedTokens[]> {
    const body = { prompt: sequences, max_tokens: 1, temperature: 0, echo: true, logprobs: 1 };
    const answer = await this.server.post("completions", body);
    const parsed = completions.safeParse(answer);
    const choices = parsed.success ? [...parsed.data.choices].sort((a, b) => a.index - b.index) : [];
    const echoed = choices.map(({ logprobs }) => ({ texts: logprobs.tokens, logProbs: logprobs.token_logprobs }));
    const hasScores = (tokens: readonly number[], i: number) => {
      const { texts = [], logProbs = [] } = echoed.at(i) ?? {};
      return texts.length >= tokens.length && logProbs.slice(1, tokens.length).every((value) => value !== null);
    };
    if (echoed.length === sequences.length && sequences.every(hasScores)) return echoed;
    throw new LlamaGymError(
      "SERVICE_FAILED",
      `${this.server.baseURL} does not return the log-probabilities of prompts (\`echo\` and \`logprobs\` of /completions), with which a ` +
        "teacher scores tokens. llamagym serve, vLLM and SGLang do. With other servers, train on the teacher's completions with llamagym sft.",
    );
  }
}

/**
 * Scores the selected tokens of a batch. @throws INVALID_ARGUMENT for what a server cannot score
 */
async function scoreBatch(
  client: PromptScores,
  { groups, selected, temperature = 1, headTokens }: TokenBatch,
  baseURL: string,
): Promise<Float32Array> {
  if (selected.some(({ allowedTokens }) => allowedTokens !== undefined))
    throw invalidArgument(
      `The teacher at ${baseURL} cannot score tokens that were sampled among a part of the vocabulary. Set topK, topP and minP to 0, 1 and 0.`,
    );
  // Among alternatives, the temperature changes all scores by the same term, which cancels out.
  if (temperature !== 1 && headTokens === undefined)
    throw invalidArgument(
      `The teacher at ${baseURL} scores free completions at temperature 1, and the student samples at ${temperature}. Set temperature to 1.`,
    );
  const sequences = unpackSequences({ groups, selected });
  const scores = await client.score(sequences.map(({ tokens }) => tokens));
  const logProbs = new Float32Array(selected.length);
  sequences.forEach((sequence, i) => {
    for (const { position, index } of sequence.targets) logProbs[index] = scores[i][position]! / temperature;
  });
  return logProbs;
}

/**
 * Compares the texts of tokens from the whole vocabulary. @throws INVALID_ARGUMENT for other ones,
 * SERVICE_FAILED
 */
async function checkTokens(client: PromptScores, student: LanguageModel): Promise<void> {
  const { vocabSize, maxPositions } = student.policy.config;
  const count = Math.min(NUM_PROBE_TOKENS, vocabSize, Math.floor(maxPositions / 2));
  const probe = Array.from({ length: count }, (_, i) => Math.floor((i * (vocabSize - 1)) / Math.max(1, count - 1)));
  const [{ texts }] = await client.request([probe]);
  if (!student.hasTokenizer) return;
  const own = probe.map((token) => student.tokenizer.decode([token], { skipSpecialTokens: false }));
  const differs = own.findIndex(
    (text, i) => isReadable(text) && isReadable(texts[i]) && text.trim() !== texts[i].trim(),
  );
  if (differs !== -1) throw differentTokens(probe[differs], texts[differs], own[differs]);
}

/** Whether a token's text is complete characters, which all servers write alike. */
function isReadable(text: string): boolean {
  return text !== "" && !text.includes("\uFFFD");
}
