import type { ChatMessage } from "../../../models/text/index.js";
import type { Metrics } from "../../algorithms/learner.js";
import type { TurnCompletion } from "../../rollout/completion-sampler.js";
import type { Turn, TurnRecording } from "../../rollout/trajectory.js";
import type { ToolCaller, ToolChat } from "../../tools/index.js";

/** A completion of a prompt, with the results of tools that it called. */
export interface PromptCompletion extends TurnCompletion, Pick<Turn, "numToolTokens"> {
  /** Only of a recorded completion. */
  readonly distributions?: TurnRecording["distributions"];
  /** The completion as messages, with tools. */
  readonly messages?: readonly ChatMessage[];
}

/**
 * Samples the tokens after a prompt, at `offset` of the completion; all parts of a completion use
 * one random stream.
 */
export type SampleCompletion = (
  prompt: readonly number[],
  options?: { readonly offset?: number; readonly maxNewTokens?: number },
) => Promise<PromptCompletion>;

/** A prompt of messages with its tokens. */
export interface ToolPrompt {
  readonly messages: readonly ChatMessage[];
  readonly tokens: readonly number[];
}

export interface ToolRolloutOptions {
  readonly chat: ToolChat;
  readonly caller: ToolCaller;
  /** Maximum number of tokens of a completion, results of tools included. */
  readonly maxCompletionLength: number;
  /** Maximum number of times that results of tools are returned to a completion. */
  readonly maxToolCallingIterations: number;
}

/**
 * Samples completions in which the model calls tools: executes the calls, appends their results and
 * continues the completion, as TRL does. Tokens of results are the only ones allowed at their
 * positions, so that they are no decisions of the policy.
 */
export class ToolRollout {
  constructor(private readonly options: ToolRolloutOptions) {}

  /** Samples a completion of each prompt; `sample[i]` samples a part of completion i. */
  async complete(
    prompts: readonly ToolPrompt[],
    sample: readonly SampleCompletion[],
  ): Promise<{ readonly completions: readonly PromptCompletion[]; readonly metrics: Metrics }> {
    const { maxToolCallingIterations } = this.options;
    const episodes = prompts.map((prompt, i) => new ToolEpisode(prompt, sample[i], this.options));
    let continued = episodes;
    await Promise.all(continued.map(async (episode) => episode.sample()));
    for (let iteration = 0; iteration < maxToolCallingIterations && continued.length > 0; iteration++) {
      // Parts are sampled in rounds, so that no result depends on how long tools take.
      const hasResults = await Promise.all(continued.map(async (episode) => episode.callTools()));
      continued = continued.filter((_, i) => hasResults[i]);
      await Promise.all(continued.map(async (episode) => episode.sample()));
    }
    const calls = episodes.reduce((sum, { numCalls }) => sum + numCalls, 0);
    const failures = episodes.reduce((sum, { numFailures }) => sum + numFailures, 0);
    return {
      completions: episodes.map((episode) => episode.toCompletion()),
      metrics: {
        "tools/call_frequency": calls / episodes.length,
        "tools/failure_frequency": calls === 0 ? 0 : failures / calls,
      },
    };
  }
}

/** A completion in which tools may be called. */
class ToolEpisode {
  numCalls = 0;
  numFailures = 0;
  private readonly tokens: number[] = [];
  private readonly logProbs: number[] = [];
  private readonly allowedTokens: (Int32Array | undefined)[] = [];
  private readonly messages: ChatMessage[] = [];
  private numToolTokens = 0;
  private last: TurnCompletion | undefined;
  private calls: ReturnType<ToolChat["parse"]>["calls"] = [];

  constructor(
    private readonly prompt: ToolPrompt,
    private readonly sampleCompletion: SampleCompletion,
    private readonly options: ToolRolloutOptions,
  ) {}

  /** Samples the next part of the completion. */
  async sample(): Promise<void> {
    const { tokens, prompt, options } = this;
    this.last = await this.sampleCompletion([...prompt.tokens, ...tokens], {
      offset: tokens.length,
      maxNewTokens: options.maxCompletionLength - tokens.length,
    });
    this.append(this.last.tokens, this.last.logProbs, (i) => this.last!.allowedTokens?.[i]);
    const { message, calls } = options.chat.parse(this.last.tokens, this.numCalls);
    this.messages.push(message);
    this.calls = calls;
  }

  /**
   * Executes the calls of the last part and appends their results; returns false if there are no
   * calls, or no room for a token after their results.
   */
  async callTools(): Promise<boolean> {
    const { prompt, options, calls, tokens, messages } = this;
    const { chat, caller, maxCompletionLength } = options;
    if (calls.length === 0 || this.last!.finishReason === "length") return false;
    const results = await Promise.all(calls.map(async (call) => caller.call(call)));
    this.numCalls += results.length;
    this.numFailures += results.filter(({ isFailure }) => isFailure).length;
    const toolMessages = results.map(({ content }, i): ChatMessage => {
      const { id, name } = calls[i];
      return { role: "tool", tool_call_id: id, name, content };
    });
    const added = chat.encodeResults(prompt.messages, toolMessages, tokens.at(-1)!);
    if (tokens.length + added.length >= maxCompletionLength) return false;
    this.append(
      added,
      added.map(() => 0),
      (i) => Int32Array.of(added[i]),
    );
    this.numToolTokens += added.length;
    messages.push(...toolMessages);
    return true;
  }

  toCompletion(): PromptCompletion {
    const { tokens, logProbs, allowedTokens, messages, numToolTokens, last, options } = this;
    const isConstrained = allowedTokens.some((allowed) => allowed !== undefined);
    return {
      ...last!,
      values: undefined,
      tokens,
      logProbs,
      allowedTokens: (isConstrained ? allowedTokens : undefined) as TurnCompletion["allowedTokens"],
      numToolTokens,
      text: options.chat.decode(tokens),
      messages,
    };
  }

  private append(
    tokens: readonly number[],
    logProbs: readonly number[],
    allowedTokens: (i: number) => Int32Array | undefined,
  ): void {
    tokens.forEach((token, i) => {
      this.tokens.push(token);
      this.logProbs.push(logProbs[i]);
      this.allowedTokens.push(allowedTokens(i));
    });
  }
}
