import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { stringifyJson } from "../../core/lossless-json.js";
import { getOrCreatePromise } from "../../core/promise-cache.js";
import { runStepsWithPauses, type Steps } from "../../core/steps.js";
import { LruCache } from "../../core/lru-cache.js";
import {
  readConfigNumber,
  resolveOptions,
  UNFILTERED_SAMPLING,
  type LanguageModel,
  type JsonSchema,
  type PatternConstraint,
  type ScoredTokens,
  toToolError,
  encodePrompt,
  fitToContext,
  type EncodedPrompt,
} from "../../generation/index.js";
import type { SamplingParams } from "../../engine/runtime/index.js";
import { type ChatMessage, type RenderedText, FALLBACK_CHAT_TEMPLATE } from "../../models/text/index.js";
import type { ChatDelta, ChatEngine, ChatRequest, ChatResult } from "./chat-engine.js";
import { toolCallSchema, toolCallStart } from "../../envs/index.js";
import { ChoiceSampler, type ChoicePlan } from "./choice-sampler.js";
import {
  readToolCallFormat,
  toTemplateInput,
  unsupportedFormat,
  type FunctionTool,
  type ToolCallFormat,
} from "../../rl/tools/index.js";

/** Maximum length of all cached prompts, in characters; one takes some 10 bytes. */
const MAX_CACHED_PROMPTS_LENGTH = 2_000_000;

/**
 * Completes chats with a model. Requests that run at the same time share batches; equal prefixes of
 * prompts are computed once.
 */
export class ModelChatEngine implements ChatEngine {
  private readonly chatTemplate: string | undefined;
  private readonly prompts = new LruCache<Promise<EncodedPrompt>>(MAX_CACHED_PROMPTS_LENGTH, (key) => key.length);

  constructor(
    readonly model: LanguageModel,
    readonly modelName: string,
    /** Default the model's own. */
    chatTemplate?: string,
  ) {
    this.chatTemplate = chatTemplate ?? (model.tokenizer.chatTemplates.size > 0 ? undefined : FALLBACK_CHAT_TEMPLATE);
  }

  /** As generation_config.json has them; greedy where that sets do_sample to false. */
  get defaultSampling(): Pick<SamplingParams, "temperature" | "topP"> {
    const { generationConfig } = this.model.policy;
    const temperature = readConfigNumber("temperature", generationConfig) ?? 1;
    return {
      temperature: generationConfig.do_sample === false ? 0 : temperature,
      topP: readConfigNumber("topP", generationConfig) ?? 1,
    };
  }

  tokenBytes(token: number): Uint8Array {
    return this.model.tokenizer.tokenBytes(token);
  }

  /**
   * Returns the tokens of a request's prompt, as `generate` renders them. Throws as `generate`
   * does.
   */
  async renderPrompt(request: ChatRequest): Promise<readonly number[]> {
    return (await this.encode(request)).tokens;
  }

  /**
   * Renders a chat's prompt as `generate` does, and returns what follows the content of a message,
   * counted from the end; undefined if the chat template does not print it once. Throws as
   * `generate` does.
   */
  renderAfter(request: ChatRequest, indexFromEnd: number): RenderedText | undefined {
    const { messages, ...options } = this.toTemplateInput(request);
    const index = messages.length + indexFromEnd;
    return this.model.tokenizer.renderAfter(messages, index, { ...options, addGenerationPrompt: true });
  }

  async generate(request: ChatRequest, onDelta?: (delta: ChatDelta) => void): Promise<ChatResult> {
    const count = request.n ?? 1;
    const failure = count > 1 ? new AbortController() : undefined;
    const signals = [request.signal, failure?.signal].filter((each) => each !== undefined);
    const signal = signals.length > 1 ? AbortSignal.any(signals) : signals[0];
    const plan = await this.plan({ ...request, signal });
    request.onPrompt?.(plan.promptTokens.length);
    const samplers = Array.from({ length: count }, (_, index) => new ChoiceSampler(plan, index, onDelta));
    try {
      const { promptTokens } = plan;
      const [promptScores, ...choices] = await Promise.all([
        this.scorePrompt(promptTokens, request),
        ...samplers.map((sampler) => sampler.run()),
      ]);
      // The tokens with which a format begins are reused as those of the prompt are, and do not
      // belong to it.
      const cachedPromptTokens = Math.min(samplers[0].cachedTokens, promptTokens.length);
      return { promptTokens, cachedPromptTokens, choices, promptScores };
    } finally {
      // If one choice fails, the others end too.
      failure?.abort();
    }
  }

  private async scorePrompt(
    tokens: readonly number[],
    { promptTopLogProbs }: ChatRequest,
  ): Promise<ScoredTokens | undefined> {
    if (promptTopLogProbs === undefined) return undefined;
    const sampler = await this.model.sampler();
    return sampler.scoreTokens(tokens.slice(0, 1), tokens.slice(1), promptTopLogProbs);
  }

  async countPromptTokens(request: ChatRequest): Promise<number> {
    return (await this.encode(request)).tokens.length;
  }

  private async plan(request: ChatRequest): Promise<ChoicePlan> {
    const { model } = this;
    const { sampling: given = {}, parallelToolCalls = true } = request;
    const mustCall = isCallRequired(request);
    const { generationConfig } = model.policy;
    const options = {
      ...given,
      temperature: given.temperature ?? this.defaultSampling.temperature,
      topK: given.topK ?? readConfigNumber("topK", generationConfig) ?? 0,
      seed: request.seed,
      maxNewTokens: request.maxNewTokens,
    };
    const { sampling } = resolveOptions(options, generationConfig);
    const constrainedSampling = { ...sampling, ...UNFILTERED_SAMPLING, ...given };
    const { maxPositions } = model.policy.config;
    const maxNewTokens = request.maxNewTokens ?? maxPositions;
    const prompt = await this.encode(request);
    const budget = { maxNewTokens, isLengthExplicit: false, maxPositions, contextOverflow: undefined };
    const { tokens: promptTokens, maxNewTokens: allowedNewTokens } = await runStepsWithPauses(
      fitToContext(prompt, budget),
    );
    const tools = this.selectTools(request);
    const format = this.toolCallFormat(request) ?? unsupportedFormat(tools);
    const callSchema = tools.length === 0 ? undefined : toolCallSchema(tools, format, parallelToolCalls);
    // Rejects unsupported schemas before anything is sampled.
    if (request.jsonSchema !== undefined) await this.prepareSchema(request.jsonSchema);
    if (format.separator === undefined && callSchema !== undefined) await this.prepareCalls(tools, callSchema, format);
    else await this.prepareTools(tools);
    return {
      model,
      completer: await model.completer(),
      promptTokens,
      isContinuation: prompt.isContinuation,
      maxNewTokens: allowedNewTokens,
      sampling,
      constrainedSampling,
      stop: request.stop ?? [],
      seed: request.seed,
      topLogProbs: request.topLogProbs,
      jsonSchema: request.jsonSchema,
      tools,
      callSchema,
      mustCall,
      parallelToolCalls,
      format,
      cache: request.cache,
      signal: request.signal,
    };
  }

  /** Compiles a schema. @throws INVALID_ARGUMENT for one that is not supported. */
  private async prepareSchema(jsonSchema: JsonSchema): Promise<PatternConstraint> {
    await this.model.preparePattern({ jsonSchema });
    return this.model.compilePattern({ jsonSchema });
  }

  /**
   * Compiles the schema of the calls of all tools. @throws INVALID_ARGUMENT with the name of a tool
   * that cannot be called.
   */
  private async prepareCalls(
    tools: readonly FunctionTool[],
    callSchema: JsonSchema,
    format: ToolCallFormat,
  ): Promise<void> {
    let calls: PatternConstraint;
    try {
      calls = await this.prepareSchema(callSchema);
    } catch (error) {
      await this.prepareTools(tools);
      throw error;
    }
    const uncallable = tools.filter(({ name }) => !calls.allowsStart(toolCallStart(name, format)));
    await this.prepareTools(uncallable);
    // A schema whose values are nested too deeply within a call, though not by itself.
    for (const { name } of uncallable)
      throw toToolError(invalidArgument("The JSON schema matches no text within a call."), name);
  }

  /**
   * Compiles the schemas of tools, one after another. @throws INVALID_ARGUMENT with the name of a
   * tool that cannot be called.
   */
  private async prepareTools(tools: readonly FunctionTool[]): Promise<void> {
    for (const { name, parameters } of tools)
      await this.prepareSchema(parameters).catch((error: unknown) => {
        throw toToolError(error, name);
      });
  }

  /** Returns the tools that the completion may call. */
  private selectTools({ tools = [], toolChoice = "auto", allowedTools }: ChatRequest): readonly FunctionTool[] {
    if (toolChoice === "none") return [];
    const names = typeof toolChoice === "string" ? allowedTools : [toolChoice.name];
    const selected = names === undefined ? tools : tools.filter(({ name }) => names.includes(name));
    if (toolChoice === "auto" || selected.length > 0) return selected;
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      typeof toolChoice === "string"
        ? "A tool call is required, but the request has no tools."
        : `The tool choice ${JSON.stringify(toolChoice.name)} is not one of the request's tools.`,
    );
  }

  /** Returns the format of tool calls; undefined for a template whose format is not supported. */
  private toolCallFormat(request: ChatRequest): ToolCallFormat | undefined {
    const { chatTemplates } = this.model.tokenizer;
    const template = this.chatTemplate ?? chatTemplates.get("tool_use") ?? chatTemplates.get("default");
    return readToolCallFormat(template, isCallRequired(request));
  }

  /** Encodes a prompt with pauses, in which other requests are served. */
  private async encode(request: ChatRequest): Promise<EncodedPrompt> {
    const { input, promptTokens, tools = [], variables, continueFinalMessage, addGenerationPrompt } = request;
    const { tokenizer, policy } = this.model;
    const isChat = Array.isArray(input) && typeof input[0] === "object";
    if (promptTokens !== undefined)
      return asWhole({ tokens: promptTokens, isContinuation: !isChat || continueFinalMessage === true });
    const encoder = {
      vocabSize: policy.config.vocabSize,
      tokenizer: () => tokenizer,
      bosTokenId: tokenizer.bosTokenId,
    };
    const { maxPositions } = policy.config;
    if (!isChat) return runStepsWithPauses(encodePrompt(input, encoder, {}, maxPositions));
    const key = [input, tools, isCallRequired(request), variables, continueFinalMessage, addGenerationPrompt];
    return getOrCreatePromise(this.prompts, stringifyJson(key), async () => {
      const { messages, ...templateOptions } = this.toTemplateInput(request);
      const options = { ...templateOptions, continueFinalMessage, addGenerationPrompt };
      return asWhole(await runStepsWithPauses(encodePrompt(messages, encoder, options, maxPositions)));
    });
  }

  /** Returns the messages and options with which the chat template is rendered. */
  private toTemplateInput(request: ChatRequest) {
    const { chatTemplate } = this;
    const messages = request.input as readonly ChatMessage[];
    const { tools = [], variables } = request;
    return { ...toTemplateInput(messages, tools, this.toolCallFormat(request)), chatTemplate, variables };
  }
}

/**
 * Returns a prompt that is not truncated. It refers to its tokens alone, so that a cached one keeps
 * no request in memory.
 */
function asWhole({ tokens, isContinuation }: Pick<EncodedPrompt, "tokens" | "isContinuation">): EncodedPrompt {
  // eslint-disable-next-line require-yield
  const truncatedTo = function* (): Steps<readonly number[]> {
    return tokens;
  };
  return { tokens, isContinuation, truncatedTo };
}

function isCallRequired({ toolChoice = "auto" }: ChatRequest): boolean {
  return toolChoice !== "auto" && toolChoice !== "none";
}
