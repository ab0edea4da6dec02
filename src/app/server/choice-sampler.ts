import { type FunctionTool, type ToolCall, parseToolCalls, type ToolCallFormat } from "../../rl/tools/index.js";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { RandomStream } from "../../core/random/random-stream.js";
import type { SamplingParams } from "../../engine/runtime/index.js";
import {
  MAX_SMALL_VOCABULARY,
  type CompletionCache,
  type Completer,
  type Completion,
  type CompiledConstraint,
  type TokenConstraint,
  type JsonSchema,
  type LanguageModel,
  type TokenLogProb,
} from "../../generation/index.js";
import type { ChatChoice, ChatDelta, ChatFinishReason } from "./chat-engine.js";
import { unionSchema } from "../../envs/index.js";
import { SchemaOrMarker } from "./schema-or-marker.js";

/**
 * Schemas of at most this many texts are compiled to them: their completions have few decisions,
 * and mostly forced tokens.
 */
const MAX_TEXTS = 64;

/** A checked request, the same for all of its choices. */
export interface ChoicePlan {
  readonly model: LanguageModel;
  readonly completer: Completer;
  readonly promptTokens: readonly number[];
  /** Whether the completion continues the prompt's text, instead of starting a text. */
  readonly isContinuation: boolean;
  readonly maxNewTokens: number;
  readonly sampling: SamplingParams;
  /** Without the filters of generation_config.json. */
  readonly constrainedSampling: SamplingParams;
  readonly stop: readonly string[];
  readonly seed: number | undefined;
  readonly topLogProbs: number | undefined;
  readonly jsonSchema: JsonSchema | undefined;
  /** Tools that the completion may call. */
  readonly tools: readonly FunctionTool[];
  readonly callSchema: JsonSchema | undefined;
  /** Whether the completion is a tool call. */
  readonly mustCall: boolean;
  readonly parallelToolCalls: boolean;
  readonly format: ToolCallFormat;
  readonly cache: CompletionCache | undefined;
  readonly signal: AbortSignal | undefined;
}

/** What one call of the completer samples. */
interface Segment {
  readonly constraint?: TokenConstraint;
  readonly stopTokens?: readonly number[];
  readonly stopStrings?: readonly string[];
  readonly onText?: (piece: string) => void;
}

/**
 * Samples one choice: text, in which the model may open tool calls, whose JSON is then constrained.
 */
export class ChoiceSampler {
  /** Number of the prompt's tokens whose keys and values were reused. */
  cachedTokens = 0;
  private readonly tokens: number[] = [];
  private readonly logProbs: number[] = [];
  private readonly rawLogProbs: number[] = [];
  private readonly values: number[] = [];
  private readonly allowedTokens: (Int32Array | undefined)[] = [];
  private readonly topLogProbs: (readonly TokenLogProb[])[] = [];
  private readonly toolCalls: ToolCall[] = [];
  private readonly random: RandomStream;
  /** Tokens that open a tool call; none in a format without a marker. */
  private readonly openTokens: readonly number[];
  private text = "";
  private stopString: string | undefined;
  /** Beginning of a call's JSON that was sampled with the marker before it. */
  private callStart = "";

  constructor(
    private readonly plan: ChoicePlan,
    private readonly index: number,
    private readonly onDelta: ((delta: ChatDelta) => void) | undefined,
  ) {
    const { seed, tools, format, promptTokens } = plan;
    this.random = new RandomStream(seed === undefined ? undefined : seed + index);
    this.openTokens = tools.length === 0 ? [] : this.encode(format.open, promptTokens.at(-1));
  }

  async run(): Promise<ChatChoice> {
    const { mustCall, parallelToolCalls } = this.plan;
    let finishReason: ChatFinishReason | undefined;
    if (mustCall) {
      this.appendForcedTokens(this.openTokens);
      finishReason = await this.sampleCall(false);
    }
    while (finishReason === undefined) {
      finishReason = await this.sampleText();
      finishReason ??= await this.sampleCall(parallelToolCalls);
    }
    if (finishReason === "stop" && this.toolCalls.length > 0) finishReason = "tool_calls";
    const { index, text, toolCalls, stopString, tokens, logProbs, rawLogProbs, values, allowedTokens, topLogProbs } =
      this;
    const recorded = { tokens, logProbs, rawLogProbs, values, allowedTokens, topLogProbs };
    return { index, text, toolCalls, finishReason, stopString, ...recorded };
  }

  private get remaining(): number {
    return this.plan.maxNewTokens - this.tokens.length;
  }

  private get lastToken(): number | undefined {
    return this.tokens.at(-1) ?? this.plan.promptTokens.at(-1);
  }

  /**
   * Samples text up to its end, or through the marker that opens a tool call; undefined for the
   * latter.
   */
  private async sampleText(): Promise<ChatFinishReason | undefined> {
    const { model, tools, format, stop } = this.plan;
    if (this.remaining <= 0) return "length";
    const marker = tools.length === 0 ? "" : format.open.trim();
    const markerToken = marker === "" ? undefined : model.tokenizer.tokenToId(marker);
    // Where the whole completion may be a call, its text is kept back.
    const isCallCandidate = tools.length > 0 && marker === "";
    const constraint = this.tokens.length === 0 ? this.compileText() : undefined;
    const { tokens, finishReason, text } = await this.complete({
      constraint,
      stopTokens: markerToken === undefined ? model.endTokenIds : [...model.endTokenIds, markerToken],
      stopStrings: marker === "" ? stop : [...stop, marker],
      onText: isCallCandidate ? undefined : (piece) => this.emitText(piece),
    });
    if (finishReason === "aborted") return "aborted";
    if (isCallCandidate && !this.emitCalls(text)) this.emitText(text);
    if (finishReason === "length") return "length";
    const written = finishReason === "stop_string" ? model.tokenizer.decodeContinuation(tokens) : "";
    this.stopString = stop.find((string) => written.includes(string));
    if (marker === "" || this.stopString !== undefined) return "stop";
    if (tokens.at(-1) === markerToken || (constraint instanceof SchemaOrMarker && constraint.isMarker(tokens))) {
      this.appendForcedTokens(this.openTokens.slice(1));
      return undefined;
    }
    const end = written.lastIndexOf(marker) + marker.length;
    if (end < marker.length) return "stop";
    // The token that completes the marker may also begin the call.
    this.callStart = written.slice(end).trimStart();
    if (end === written.length) this.appendForcedTokens(this.encode(format.open.slice(marker.length), this.lastToken));
    return undefined;
  }

  /** Samples a tool call and closes it. Returns undefined if the completion continues. */
  private async sampleCall(mayContinue: boolean): Promise<ChatFinishReason | undefined> {
    const { model, format, callSchema } = this.plan;
    const close = this.encode(format.close, this.lastToken);
    const end = mayContinue ? [] : model.endTokenIds.slice(0, 1);
    let call = this.callStart;
    let schema = callSchema!;
    let constraint: CompiledConstraint | undefined;
    this.callStart = "";
    if (call === "") {
      if (format.separator !== undefined) {
        const { tool, finishReason } = await this.sampleToolName(format.separator);
        if (tool === undefined) return finishReason;
        call = tool.name + format.separator;
        schema = tool.parameters;
      }
      constraint = this.compile(schema, this.remaining - close.length - end.length);
      if (constraint === undefined) return "length";
    }
    const { finishReason, text } = await this.complete({
      constraint,
      stopTokens: model.endTokenIds,
      stopStrings: constraint === undefined ? [format.close.trim()] : [],
    });
    if (finishReason === "aborted" || (finishReason === "length" && constraint === undefined)) return finishReason;
    call += text;
    if (!this.emitCalls(call)) this.emitText(format.open + call);
    if (constraint !== undefined) this.appendForcedTokens([...close, ...end]);
    if (!mayContinue) return "stop";
    return finishReason === "stop" && constraint === undefined ? "stop" : undefined;
  }

  /**
   * Samples the name of a tool with the separator after it; `tool` is undefined if the completion
   * ended before.
   */
  private async sampleToolName(separator: string): Promise<{ tool?: FunctionTool; finishReason: ChatFinishReason }> {
    const { model, tools } = this.plan;
    const choices = tools.map(({ name }) => name + separator);
    const options = { previousToken: this.lastToken, maxNewTokens: this.remaining };
    const { choice, finishReason } = await this.complete({ constraint: model.compileConstraint({ choices }, options) });
    const isAborted = finishReason === "aborted";
    return { tool: choice === undefined ? undefined : tools[choice], finishReason: isAborted ? "aborted" : "length" };
  }

  /** Returns the constraint on the first text: JSON of the response's schema, or a tool call. */
  private compileText(): TokenConstraint | undefined {
    const { jsonSchema, callSchema, format } = this.plan;
    if (jsonSchema === undefined) return undefined;
    const schema = callSchema === undefined || format.open !== "" ? jsonSchema : unionSchema(callSchema, jsonSchema);
    const constraint = this.compile(schema, this.remaining);
    if (constraint === undefined)
      throw invalidArgument(`The JSON schema needs more than the ${this.remaining} tokens that are left. Allow more.`);
    return this.openTokens.length === 0 ? constraint : new SchemaOrMarker(constraint, this.openTokens[0]);
  }

  /** Compiles a schema; undefined if its shortest text does not fit. */
  private compile(jsonSchema: JsonSchema, maxNewTokens: number): CompiledConstraint | undefined {
    const { model, isContinuation } = this.plan;
    const start = this.tokens.length === 0 ? (isContinuation ? "continuation" : "start") : undefined;
    try {
      const options = { start, previousToken: this.lastToken, maxNewTokens, maxTexts: MAX_TEXTS } as const;
      return model.compileConstraint({ jsonSchema }, options);
    } catch (error) {
      // The schema itself was compiled before, so that its length is the only reason left.
      if (error instanceof LlamaGymError && error.code === "INVALID_ARGUMENT") return undefined;
      throw error;
    }
  }

  private async complete({ constraint, stopTokens = [], stopStrings = [], onText }: Segment): Promise<Completion> {
    const { model, completer, promptTokens, topLogProbs, signal, isContinuation } = this.plan;
    const sampling = constraint === undefined ? this.plan.sampling : this.plan.constrainedSampling;
    const isCacheable =
      topLogProbs === undefined && sampling.temperature > 0 && model.policy.config.vocabSize <= MAX_SMALL_VOCABULARY;
    const isFirst = this.tokens.length === 0;
    const completion = await completer.complete({
      prompt: isFirst ? promptTokens : [...promptTokens, ...this.tokens],
      sampling,
      maxNewTokens: this.remaining,
      random: this.random,
      stop: { tokens: new Set(stopTokens), strings: stopStrings },
      constraint,
      isContinuation: isContinuation || !isFirst,
      topLogProbs,
      skipForcedTokens: topLogProbs === undefined,
      skipRawLogProbs: topLogProbs === undefined,
      cache: isCacheable ? this.plan.cache : undefined,
      onText,
      signal,
    });
    if (isFirst) this.cachedTokens = completion.cachedTokens;
    for (const name of ["tokens", "logProbs", "rawLogProbs", "values"] as const)
      for (const value of completion[name]) this[name].push(value);
    completion.tokens.forEach((_, i) => {
      this.allowedTokens.push(completion.allowedTokens?.[i]);
      this.topLogProbs.push(completion.topLogProbs?.[i] ?? []);
    });
    return completion;
  }

  /** Appends tokens that the format of tool calls leaves no choice about. */
  private appendForcedTokens(tokens: readonly number[]): void {
    for (const token of tokens) {
      this.tokens.push(token);
      this.logProbs.push(0);
      this.rawLogProbs.push(NaN);
      this.values.push(NaN);
      this.allowedTokens.push(Int32Array.of(token));
      this.topLogProbs.push([]);
    }
  }

  private encode(text: string, previousToken: number | undefined): readonly number[] {
    return text === "" ? [] : this.plan.model.tokenizer.encodeContinuation(text, previousToken);
  }

  private emitText(piece: string): void {
    // Whitespace between tool calls is part of their format.
    const text = this.toolCalls.length > 0 && this.text.trim() === "" ? piece.trimStart() : piece;
    if (text === "") return;
    this.text += text;
    this.onDelta?.({ index: this.index, text });
  }

  /** Emits the calls that a text consists of; false if it is no call. */
  private emitCalls(text: string): boolean {
    const calls = parseToolCalls(text, this.plan.tools, this.plan.format);
    for (const toolCall of calls ?? []) {
      this.toolCalls.push(toolCall);
      this.onDelta?.({ index: this.index, toolCall });
    }
    return calls !== undefined;
  }
}
