import type { JsonObject } from "../../core/json.js";
import type { FunctionTool, ToolCall } from "../../rl/tools/index.js";
import type { CompletionCache, JsonSchema, PromptInput, TokenLogProb, ScoredTokens } from "../../generation/index.js";
import type { SamplingParams } from "../../engine/runtime/index.js";

/** Whether a completion may, must or must not call a tool, or which one it calls. */
export type ToolChoice = "auto" | "none" | "required" | { readonly name: string };

/** A request for completions of one prompt, in any wire format. */
export interface ChatRequest {
  /**
   * Messages in the form that chat templates read (arguments of tool calls are objects), or a text
   * or token ids to continue.
   */
  readonly input: PromptInput;
  /** Tokens of the prompt, instead of those that `input` is rendered to. */
  readonly promptTokens?: readonly number[];
  readonly tools?: readonly FunctionTool[];
  /** Further variables of the chat template, such as { enable_thinking: false }. */
  readonly variables?: JsonObject;
  /**
   * Whether the completion continues the last message, of which it is not a part. Default false.
   */
  readonly continueFinalMessage?: boolean;
  /**
   * Whether the prompt ends with the header of the assistant's message. Default true, unless the
   * last message is continued.
   */
  readonly addGenerationPrompt?: boolean;
  /** Default "auto". */
  readonly toolChoice?: ToolChoice;
  /** Names of the tools that a completion may call, of those in the prompt. Default all. */
  readonly allowedTools?: readonly string[];
  /** Whether a completion may call more than one tool. Default true. */
  readonly parallelToolCalls?: boolean;
  /** Constrains the text to JSON of this schema. */
  readonly jsonSchema?: JsonSchema;
  /**
   * Defaults come from the model's generation_config.json; without one, the model's distribution at
   * temperature 1.
   */
  readonly sampling?: Partial<SamplingParams>;
  /** Maximum number of tokens; by default, and at most, the rest of the context. */
  readonly maxNewTokens?: number;
  /** Strings that end the completion and are not part of its text. */
  readonly stop?: readonly string[];
  /** Seed of the first choice; choice i has `seed + i`. */
  readonly seed?: number;
  /** Number of choices. Default 1. */
  readonly n?: number;
  /**
   * Number of most probable tokens to return for each token; by default not even `rawLogProbs` of
   * constrained tokens are computed.
   */
  readonly topLogProbs?: number;
  /**
   * Number of most probable tokens to return for each token of the prompt; by default the prompt is
   * not scored.
   */
  readonly promptTopLogProbs?: number;
  /**
   * Distributions of earlier completions with the same parameters and sampling; not used with
   * `topLogProbs`.
   */
  readonly cache?: CompletionCache;
  /** Ends the completion with "aborted". */
  readonly signal?: AbortSignal;
  /** Called with the number of the prompt's tokens before anything is sampled. */
  readonly onPrompt?: (tokenCount: number) => void;
}

/** A piece of a choice: text, or a whole tool call. */
export interface ChatDelta {
  /** Index of the choice. */
  readonly index: number;
  readonly text?: string;
  readonly toolCall?: ToolCall;
}

/** Why a completion ended. */
export type ChatFinishReason = "stop" | "length" | "tool_calls" | "aborted";

/** A completion of a request with its tokens. */
export interface ChatChoice {
  readonly index: number;
  /** Text without tool calls. */
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
  readonly finishReason: ChatFinishReason;
  /** The stop string that ended the completion. */
  readonly stopString: string | undefined;
  /**
   * All tokens of the completion, including those that open and close tool calls and a sampled end
   * token.
   */
  readonly tokens: readonly number[];
  /**
   * Log-probability of each token under the distribution it was sampled from; 0 where the format
   * forces a token.
   */
  readonly logProbs: readonly number[];
  /**
   * Log-probability of each token under the model at temperature 1; NaN where the model was not run
   * for the token.
   */
  readonly rawLogProbs: readonly number[];
  /** Value of the state before each token; NaN where unknown. */
  readonly values: readonly number[];
  /** The tokens among which each token was sampled; undefined at unconstrained positions. */
  readonly allowedTokens: readonly (Int32Array | undefined)[];
  /**
   * The most probable tokens at each token; empty where none were requested or the model was not
   * run.
   */
  readonly topLogProbs: readonly (readonly TokenLogProb[])[];
}

/** Completions of a request. */
export interface ChatResult {
  readonly promptTokens: readonly number[];
  /** Number of the prompt's tokens whose keys and values were reused. */
  readonly cachedPromptTokens: number;
  readonly choices: readonly ChatChoice[];
  /** Scores of the prompt's tokens but the first, if `promptTopLogProbs` asked for them. */
  readonly promptScores?: ScoredTokens;
}

/** A source of chat completions: a model, or a model whose completions are recorded. */
export interface ChatEngine {
  /** Name of the model in responses. */
  readonly modelName: string;
  /** Sampling of requests that say nothing about it. Default 1 and 1. */
  readonly defaultSampling?: Pick<SamplingParams, "temperature" | "topP">;
  /**
   * Completes a request and reports pieces as soon as they are certain.
   * @throws INVALID_ARGUMENT for an invalid request or an unsupported schema, CONTEXT_OVERFLOW for
   * a prompt that is too long, TEMPLATE_FAILED for messages that the chat template rejects.
   */
  generate(request: ChatRequest, onDelta?: (delta: ChatDelta) => void): Promise<ChatResult>;
  /**
   * Returns the number of tokens of a request's prompt. @throws as `generate` does, but for
   * CONTEXT_OVERFLOW.
   */
  countPromptTokens(request: ChatRequest): Promise<number>;
  /** Returns the UTF-8 bytes of a token, for log-probabilities. */
  tokenBytes(token: number): Uint8Array;
}
