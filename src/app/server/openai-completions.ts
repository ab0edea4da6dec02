import * as z from "zod";
import { decodeUtf8 } from "../../core/bytes.js";
import type { ChatChoice, ChatDelta, ChatEngine, ChatRequest, ChatResult } from "./chat-engine.js";
import { formatUsage } from "./openai-chat.js";
import { formatOpenAiError, openAiErrorEvent } from "./openai-error.js";
import {
  createId,
  ignored,
  MAX_CHOICES_PER_REQUEST,
  MAX_TOP_LOG_PROBS,
  noPenalty,
  maxTokensField,
  parseVendorBody,
  readSampling,
  readSeed,
  samplingFields,
  seedField,
  stopField,
  toStopStrings,
  unixTime,
  type ServerEvent,
  type StreamEncoder,
  type WireFormat,
} from "./wire-format.js";

/** Maximum number of prompts of one request; each takes a sequence of the batch. */
const MAX_PROMPTS = 128;

const tokens = z.array(z.number().int().min(0)).min(1);

export const completionBody = z.strictObject({
  model: z.string().optional(),
  prompt: z.union([
    z.string().min(1),
    tokens,
    z.array(z.string().min(1)).min(1).max(MAX_PROMPTS),
    z.array(tokens).min(1).max(MAX_PROMPTS),
  ]),
  echo: z.boolean().nullish(),
  ...samplingFields,
  frequency_penalty: noPenalty,
  presence_penalty: noPenalty,
  max_tokens: maxTokensField.nullish(),
  stop: stopField,
  seed: seedField,
  n: z.number().int().min(1).max(MAX_CHOICES_PER_REQUEST).nullish(),
  best_of: z.literal(1, "is not supported").nullish(),
  suffix: z.literal("", "is not supported").nullish(),
  logprobs: z.number().int().min(0).max(MAX_TOP_LOG_PROBS).nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  user: ignored,
});

type CompletionBody = z.infer<typeof completionBody>;

/** OpenAI's number of tokens where a request has none. */
const DEFAULT_MAX_TOKENS = 16;

/** POST /v1/completions of OpenAI: texts that continue prompts, without a chat template. */
export const openAiCompletions: WireFormat = {
  path: "/completions",
  parse(body) {
    const { parsed, ignoredFields } = parseVendorBody(completionBody, body);
    const base = { id: createId("cmpl-"), object: "text_completion", created: unixTime() };
    const format = (results: readonly ChatResult[], engine: ChatEngine) =>
      results.flatMap(({ choices, promptTokens }, i) =>
        choices.map((choice) => {
          const echoed = parsed.echo === true ? decode(promptTokens, engine) : "";
          return formatChoice(choice, { engine, parsed, index: i * choices.length + choice.index, echoed });
        }),
      );
    return {
      model: parsed.model,
      isStream: parsed.stream === true,
      ignoredFields,
      requests: listPrompts(parsed.prompt).map((input) => toRequest(parsed, input)),
      respond: (results, engine) => ({
        ...base,
        model: engine.modelName,
        choices: format(results, engine),
        usage: formatUsage(results),
      }),
      stream: (engine): StreamEncoder => {
        const chunk = (choices: readonly object[], others: object = {}): ServerEvent => ({
          data: JSON.stringify({ ...base, model: engine.modelName, choices, ...others }),
        });
        const indexOf = ({ index }: { readonly index: number }, request: number) => request * (parsed.n ?? 1) + index;
        return {
          start: () => [],
          delta: (delta: ChatDelta, request) => [
            chunk([{ index: indexOf(delta, request), text: delta.text, logprobs: null, finish_reason: null }]),
          ],
          end: (results) => [
            ...format(results, engine).map((choice) => chunk([{ ...choice, text: "" }])),
            ...(parsed.stream_options?.include_usage === true ? [chunk([], { usage: formatUsage(results) })] : []),
            { data: "[DONE]" },
          ],
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
    maxNewTokens: body.max_tokens ?? DEFAULT_MAX_TOKENS,
    stop: toStopStrings(body.stop),
    seed: readSeed(body.seed),
    n: body.n ?? 1,
    topLogProbs: body.logprobs ?? undefined,
  };
}

interface ChoiceFormat {
  readonly engine: ChatEngine;
  readonly parsed: CompletionBody;
  readonly index: number;
  readonly echoed: string;
}

function formatChoice(choice: ChatChoice, { engine, parsed, index, echoed }: ChoiceFormat) {
  const { text, finishReason } = choice;
  const logprobs = typeof parsed.logprobs === "number" ? formatLogProbs(choice, engine, echoed.length) : null;
  return { index, text: echoed + text, logprobs, finish_reason: finishReason === "length" ? "length" : "stop" };
}

const decode = (tokens: readonly number[], engine: ChatEngine) =>
  decodeUtf8(Buffer.concat(tokens.map((token) => engine.tokenBytes(token))));

/** Log-probabilities in the form of OpenAI's older API. */
function formatLogProbs({ tokens, rawLogProbs, topLogProbs }: ChatChoice, engine: ChatEngine, start: number): object {
  const texts = tokens.map((token) => decode([token], engine));
  let offset = start;
  return {
    tokens: texts,
    token_logprobs: rawLogProbs,
    top_logprobs: topLogProbs.map((top) =>
      Object.fromEntries(top.map(({ token, logProb }) => [decode([token], engine), logProb])),
    ),
    text_offset: texts.map((text) => {
      offset += text.length;
      return offset - text.length;
    }),
  };
}
