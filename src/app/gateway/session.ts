import { getOrCreatePromise } from "../../core/promise-cache.js";
import { type CompletionCache, UNFILTERED_SAMPLING } from "../../generation/index.js";
import type { LruCache } from "../../core/lru-cache.js";
import { LlamaGymError } from "../../core/errors.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import { stream } from "../../core/random/streams.js";
import { isReward, REWARD_RULE } from "../../envs/index.js";
import type { ChatMessage } from "../../models/text/index.js";
import type { EpisodeSummary, Trajectory } from "../../rl/rollout/index.js";
import { describePrompt } from "../../rl/train/index.js";
import type { JudgedConversation } from "../judge/judge.js";
import type { ChatDelta, ChatEngine, ChatRequest, ChatResult } from "../server/chat-engine.js";
import type { ModelChatEngine } from "../server/model-chat-engine.js";
import { RequestError } from "../server/request-error.js";
import { describeChoice, SessionTree } from "./session-tree.js";
import type { UpdateGate } from "./update-gate.js";

/**
 * Completions of a session; an agent that loops is stopped here, before its records fill the
 * memory.
 */
const MAX_TURNS = 10_000;

/** What all sessions of a gateway share. */
export interface SessionContext {
  readonly engine: ModelChatEngine;
  readonly gate: UpdateGate;
  readonly seed: number;
  /** Temperature of all completions: the trained distribution is the sampled one. */
  readonly temperature: number;
  readonly maxCompletionLength: number;
  /** Next-token distributions of recurring prompts. */
  readonly cache: CompletionCache;
  /** Greedy completions so far, of an evaluation; undefined where completions are sampled. */
  readonly greedy?: LruCache<Promise<ChatResult>>;
  /** Returns the number of updates so far. */
  readonly updates: () => number;
  /** Adds a reward to the last turn of an ended session. */
  readonly sessionReward?: (conversation: JudgedConversation) => MaybePromise<number>;
}

/** A finished session as training data. */
export interface SessionRecord {
  readonly trajectory: Trajectory;
  readonly summary: EpisodeSummary;
  /** Prompts that did not continue recorded tokens. */
  readonly segments: number;
  /** Number of updates before each turn was sampled. */
  readonly updatesAtTurns: readonly number[];
}

/** An episode of an agent that calls the gateway: records what is sampled, and the rewards. */
export class GatewaySession implements ChatEngine {
  private readonly tree: SessionTree;
  private readonly updatesAtTurns: number[] = [];
  private readonly random;
  private endedBy: Trajectory["end"] | undefined;
  private lastUse = performance.now();
  private pending = 0;
  /** Rewards that were given before the first completion. */
  private earlyReward = 0;
  /** The messages of the last completion, with it. */
  private conversation: JudgedConversation = { messages: [] };
  private finished: Promise<SessionRecord | undefined> | undefined;

  constructor(
    readonly id: string,
    readonly index: number,
    private readonly context: SessionContext,
    /** Sessions with the same task form groups. */
    readonly task: string | undefined,
  ) {
    this.tree = new SessionTree(context.engine);
    this.random = stream(context.seed, "sessions", index);
  }

  get modelName(): string {
    return this.context.engine.modelName;
  }

  get turns(): number {
    return this.tree.turns.length;
  }

  /** Whether the session belongs to an evaluation, which is not trained. */
  get isGreedy(): boolean {
    return this.context.greedy !== undefined;
  }

  get isEnded(): boolean {
    return this.endedBy !== undefined;
  }

  /** Milliseconds since the last call; 0 while a completion is sampled. */
  get idleMs(): number {
    return this.pending > 0 ? 0 : performance.now() - this.lastUse;
  }

  tokenBytes(token: number): Uint8Array {
    return this.context.engine.tokenBytes(token);
  }

  get defaultSampling() {
    return this.context.engine.defaultSampling;
  }

  async countPromptTokens(request: ChatRequest): Promise<number> {
    return this.context.engine.countPromptTokens(request);
  }

  /**
   * Samples completions with the gateway's temperature, and records them.
   * @throws RequestError 409 after the end of the session, and what the engine throws.
   */
  async generate(request: ChatRequest, onDelta?: (delta: ChatDelta) => void): Promise<ChatResult> {
    this.checkOpen("complete anything");
    if (this.turns >= MAX_TURNS)
      throw new RequestError(409, `The session has ${MAX_TURNS} completions, the most that one may have. End it.`);
    const { engine, gate, temperature, maxCompletionLength, cache, greedy, updates } = this.context;
    const seed = this.random.integers(0, 2 ** 31);
    this.pending++;
    try {
      return await gate.run(async () => {
        cache.keepVersion(engine.model.policy.cacheVersion);
        const promptTokens = await this.tree.promptTokens(request);
        const completion: ChatRequest = {
          ...request,
          promptTokens,
          // The trained distribution is the model's own.
          sampling: { ...UNFILTERED_SAMPLING, temperature: greedy === undefined ? temperature : 0 },
          maxNewTokens: Math.min(request.maxNewTokens ?? Infinity, maxCompletionLength),
        };
        const result = await (greedy === undefined || onDelta !== undefined
          ? engine.generate({ ...completion, seed, cache }, onDelta)
          : getOrCreatePromise(greedy, JSON.stringify({ ...completion, input: undefined, signal: undefined }), () =>
              engine.generate({ ...completion, signal: undefined }),
            ));
        if (!this.isEnded) this.record(request, result, updates());
        return result;
      });
    } finally {
      this.pending--;
      this.lastUse = performance.now();
    }
  }

  /**
   * Adds a reward to a turn, by default the last one so far; later rewards add up.
   * @throws RequestError 409 after the end of the session, 400 for a reward or sum of rewards out
   * of range or a turn that does not exist.
   */
  reward(reward: number, turn?: number): void {
    this.checkOpen("be rewarded");
    this.lastUse = performance.now();
    const { turns } = this.tree;
    if (turn === undefined && turns.length === 0) this.earlyReward = this.addReward(this.earlyReward, reward);
    else if (turn === undefined || turn in turns) {
      const rewarded = turns.at(turn ?? -1)!;
      rewarded.reward = this.addReward(rewarded.reward, reward);
    } else
      throw new RequestError(400, `The session has ${turns.length} turns, numbered from 0; there is no turn ${turn}.`);
  }

  /** Ends the session. @throws RequestError 409 if it was ended before. */
  end(end: "terminated" | "truncated" = "terminated"): void {
    this.checkOpen("end again");
    this.endedBy = end;
  }

  /**
   * Returns an ended session, with the reward of `sessionReward`, as one trajectory of its turns;
   * undefined without turns.
   * @throws REWARD_FAILED for a reward out of range, and what `sessionReward` throws.
   */
  finish(): Promise<SessionRecord | undefined> {
    return (this.finished ??= this.addSessionReward().then(() => this.toRecord()));
  }

  /**
   * Returns the sum of a turn's rewards. @throws RequestError 400 for a reward or sum out of range.
   */
  private addReward(earlier: number, reward: number): number {
    const sum = earlier + reward;
    const [subject, value] = isReward(reward) ? ["The sum of a turn's rewards", sum] : ["A reward", reward];
    if (isReward(value)) return sum;
    throw new RequestError(400, `${subject} is ${String(value)} in session ${this.id}; it must be ${REWARD_RULE}.`);
  }

  private async addSessionReward(): Promise<void> {
    const { sessionReward } = this.context;
    const last = this.tree.turns.at(-1);
    if (sessionReward === undefined || last === undefined) return;
    const reward = await sessionReward(this.conversation);
    if (!isReward(reward))
      throw new LlamaGymError(
        "REWARD_FAILED",
        `\`sessionReward\` returned ${String(reward)} for session ${this.id}; it must return ${REWARD_RULE}.`,
      );
    last.reward += reward;
  }

  private toRecord(): SessionRecord | undefined {
    const { tree, updatesAtTurns, endedBy: end = "truncated" } = this;
    const { turns, segments } = tree;
    const last = turns.at(-1);
    if (last === undefined) return undefined;
    turns[0].reward += this.earlyReward;
    this.earlyReward = 0;
    const bootstrapPrompt = end === "terminated" ? undefined : [...last.prompt, ...last.tokens];
    const total = turns.reduce((sum, { reward }) => sum + reward, 0);
    return {
      trajectory: { turns, end, bootstrapPrompt },
      summary: { return: total, turns: turns.length, end },
      segments,
      updatesAtTurns,
    };
  }

  private record(request: ChatRequest, result: ChatResult, updates: number): void {
    this.tree.record(request, result);
    if (this.context.sessionReward !== undefined) this.conversation = toConversation(request, result);
    while (this.updatesAtTurns.length < this.turns) this.updatesAtTurns.push(updates);
  }

  private checkOpen(verb: string): void {
    if (this.isEnded)
      throw new RequestError(409, `Session ${this.id} has ended and cannot ${verb}.`, { code: "session_ended" });
  }
}

/** Returns the messages of a request with its first completion. */
function toConversation({ input }: ChatRequest, { choices: [choice] }: ChatResult): JudgedConversation {
  const isChat = Array.isArray(input) && typeof input[0] === "object";
  const history = isChat ? (input as readonly ChatMessage[]) : [{ role: "user", content: describePrompt(input) }];
  return { messages: [...history, { role: "assistant", content: describeChoice(choice) }] };
}
