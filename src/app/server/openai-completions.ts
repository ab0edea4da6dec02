import * as z from "zod";
import { decodeUtf8 } from "../../core/bytes.js";
import type { ChatChoice, ChatDelta, ChatEngine, ChatRequest, ChatResult } from "./chat-engine.js";
import { generationSettings, type TokenLogProb } from "../../generation/index.js";
import { streamOptions } from "./openai-chat.js";
import { formatUsage } from "./openai-chat-stream.js";
import { MAX_TOKEN_VALUES } from "./read-json-body.js";
import { settingField } from "./setting-field.js";
import { formatOpenAiError, openAiErrorEvent } from "./openai-error.js";
import {
  createId,
  ignored,
  MAX_CHOICES_PER_REQUEST,
  MAX_TOP_LOG_PROBS,
  listUnknownFields,
  noBias,
  noPenalty,
  parseVendorBody,
  readSampling,
  readSeed,
  samplingFields,
  seedField,
  listOf,
  stopField,
  toStopStrings,
  unixTime,
  type ServerEvent,
  type StreamEncoder,
  type WireFormat,
} from "./wire-format.js";

/** Maximum number of prompts of one request; each takes a sequence of the batch. */
const MAX_PROMPTS = 128;

/** One check for all: a prompt can have millions of tokens. */
const tokens = z.custom<readonly number[]>(
  (value) =>
    Array.isArray(value) && value.length > 0 && value.every((token) => Number.isSafeInteger(token) && token >= 0),
  "must be a list of token ids >= 0",
);

export const completionBody = z.strictObject({
  model: z.string().nullish(),
  prompt: z.union([
    z.string().min(1),
    tokens,
    listOf(z.string().min(1), { min: 1, max: MAX_PROMPTS }),
    listOf(tokens, { min: 1, max: MAX_PROMPTS }),
  ]),
  echo: z.boolean().nullish(),
  ...samplingFields,
  frequency_penalty: noPenalty,
  presence_penalty: noPenalty,
  logit_bias: noBias,
  max_tokens: settingField({ ...generationSettings.maxNewTokens, min: 0 }).nullish(),
  stop: stopField,
  seed: seedField,
  n: z.number().int().min(1).max(MAX_CHOICES_PER_REQUEST).nullish(),
  best_of: z.literal(1, "is not supported").nullish(),
  suffix: z.literal("", "is not supported").nullish(),
  logprobs: z.number().int().min(0).max(MAX_TOP_LOG_PROBS).nullish(),
  stream: z.boolean().nullish(),
  stream_options: streamOptions.nullish(),
  user: ignored,
});

type CompletionBody = z.infer<typeof completionBody>;

/** OpenAI's number of tokens where a request has none. */
const DEFAULT_MAX_TOKENS = 16;

/** POST /v1/completions of OpenAI: texts that continue prompts, without a chat template. */
export const openAiCompletions: WireFormat = {
  path: "/completions",
  maxCommas: MAX_TOKEN_VALUES,
  parse(body) {
    const { parsed, ignoredFields } = parseVendorBody(completionBody, body);
    const isEcho = parsed.echo === true;
    const base = { id: createId("cmpl-"), object: "text_completion", created: unixTime() };
    const format = (results: readonly ChatResult[], engine: ChatEngine) =>
      results.flatMap((result, i) =>
        result.choices.map((choice) =>
          formatChoice(choice, { engine, parsed, index: i * result.choices.length + choice.index, result }),
        ),
      );
    return {
      model: parsed.model ?? undefined,
      isStream: parsed.stream === true,
      ignoredFields: [...ignoredFields, ...listUnknownFields("stream_options", parsed.stream_options, streamOptions)],
      requests: listPrompts(parsed.prompt).map((input) => toRequest(parsed, input)),
      respond: (sampled, engine) => {
        const results = parsed.max_tokens === 0 ? withoutCompletions(sampled) : sampled;
        const choices = format(results, engine);
        return { ...base, model: engine.modelName, choices, usage: formatUsage(results) };
      },
      stream: (engine): StreamEncoder => {
        const chunk = (choices: readonly object[], others: object = {}): ServerEvent => ({
          data: JSON.stringify({ ...base, model: engine.modelName, choices, ...others }),
        });
        const indexOf = ({ index }: { readonly index: number }, request: number) => request * (parsed.n ?? 1) + index;
        return {
          start: () => [],
          delta: (delta: ChatDelta, request) =>
            isEcho
              ? []
              : [chunk([{ index: indexOf(delta, request), text: delta.text, logprobs: null, finish_reason: null }])],
          // The prompt comes before the first delta, and is known with its scores at the end.
          end: (sampled) => {
            const results = parsed.max_tokens === 0 ? withoutCompletions(sampled) : sampled;
            return [
              ...format(results, engine).map((choice) => chunk([isEcho ? choice : { ...choice, text: "" }])),
              ...(parsed.stream_options?.include_usage === true ? [chunk([], { usage: formatUsage(results) })] : []),
              { data: "[DONE]" },
            ];
          },
        };
      },
    };
  },
  formatError: formatOpenAiError,
  errorEvent: openAiErrorEvent,
};

type Prompt = string | readonly number[];

function listPrompts(prompt: CompletionBody["prompt"]): readonly Prompt[] {
  if (typeof prompt === "string") return [prompt];
  return typeof prompt[0] === "number" ? [prompt as number[]] : (prompt as Prompt[]);
}

function toRequest(body: CompletionBody, input: Prompt): ChatRequest {
  return {
    input,
    sampling: readSampling(body),
    maxNewTokens: Math.max(1, body.max_tokens ?? DEFAULT_MAX_TOKENS),
    stop: toStopStrings(body.stop),
    seed: readSeed(body.seed),
    n: body.n ?? 1,
    topLogProbs: body.logprobs ?? undefined,
    promptTopLogProbs: body.echo === true ? (body.logprobs ?? undefined) : undefined,
  };
}

/** Results of requests for no token, for which one was sampled. */
function withoutCompletions(results: readonly ChatResult[]): ChatResult[] {
  const nothing = {
    text: "",
    tokens: [],
    logProbs: [],
    rawLogProbs: [],
    values: [],
    allowedTokens: [],
    topLogProbs: [],
  };
  return results.map((result) => ({
    ...result,
    choices: result.choices.map((choice) => ({ ...choice, ...nothing, finishReason: "length" })),
  }));
}

interface ChoiceFormat {
  readonly engine: ChatEngine;
  readonly parsed: CompletionBody;
  readonly index: number;
  readonly result: ChatResult;
}

function formatChoice(choice: ChatChoice, { engine, parsed, index, result }: ChoiceFormat) {
  const { text, finishReason } = choice;
  const echoed = parsed.echo === true ? result : undefined;
  const logprobs = typeof parsed.logprobs === "number" ? formatLogProbs(choice, engine, echoed) : null;
  return {
    index,
    text: (echoed === undefined ? "" : decode(echoed.promptTokens, engine)) + text,
    logprobs,
    finish_reason: finishReason === "length" ? "length" : "stop",
  };
}

const decode = (tokens: readonly number[], engine: ChatEngine) =>
  decodeUtf8(Buffer.concat(tokens.map((token) => engine.tokenBytes(token))));

/**
 * Log-probabilities in the form of OpenAI's older API, of an echoed prompt as well; nothing comes
 * before its first token.
 */
function formatLogProbs(
  { tokens: sampled, rawLogProbs, topLogProbs }: ChatChoice,
  engine: ChatEngine,
  echoed: ChatResult | undefined,
): object {
  const { promptTokens = [], promptScores } = echoed ?? {};
  const [start, prompt] = echoed === undefined ? [[], undefined] : [[null], promptScores];
  const texts = [...promptTokens, ...sampled].map((token) => decode([token], engine));
  const formatTop = (top: readonly TokenLogProb[]) =>
    // Tokens of incomplete characters may have one text: the most probable comes last, and counts.
    Object.fromEntries([...top].reverse().map(({ token, logProb }) => [decode([token], engine), logProb]));
  let offset = 0;
  return {
    tokens: texts,
    token_logprobs: [...start, ...(prompt?.logProbs ?? []), ...rawLogProbs],
    top_logprobs: [...start, ...[...(prompt?.topLogProbs ?? []), ...topLogProbs].map(formatTop)],
    text_offset: texts.map((text) => {
      offset += text.length;
      return offset - text.length;
    }),
  };
}
