import type { EpisodeSpec, CollectOptions, Rollout } from "../../rl/rollout/index.js";
import { errorMessage, LlamaGymError } from "../../core/errors.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import type { GatewaySession, SessionRecord } from "./session.js";
import type { SessionStore } from "./session-store.js";

/** Sessions of one update. */
export interface SessionRollout extends Rollout {
  readonly records: readonly SessionRecord[];
}

/** Where the sessions of an update come from. */
export interface SessionSource {
  /** Number of ended sessions that were dropped untrained. */
  readonly droppedSessions: number;
  /** Collects one session per spec, in their order; those of a group have the same task. */
  collectEpisodes(specs: readonly EpisodeSpec[], options?: CollectOptions): Promise<SessionRollout>;
}

/** What an agent's function receives for one session. */
export interface AgentEpisode<Task = unknown> {
  /** OpenAI-compatible URL of the session, to be used in place of `https://api.openai.com/v1`. */
  readonly baseURL: string;
  readonly sessionId: string;
  readonly task: Task;
  /** Seed for the agent's environment, equal for the sessions of a group. */
  readonly seed: number;
  /** Adds a reward to the last completion, or to the turn of this index. */
  readonly reward: (reward: number, turn?: number) => void;
}

/** Runs an agent's function, several sessions at the same time. */
export class FunctionSource<Task> implements SessionSource {
  readonly droppedSessions = 0;

  constructor(
    private readonly store: SessionStore,
    private readonly options: {
      readonly agent: (episode: AgentEpisode<Task>) => MaybePromise<unknown>;
      readonly tasks: readonly Task[];
      readonly numSessions: number;
      readonly baseURL: (session: GatewaySession) => string;
    },
  ) {}

  /** @throws AGENT_FAILED if the function throws, or requests no completion. */
  async collectEpisodes(specs: readonly EpisodeSpec[], { onProgress }: CollectOptions = {}): Promise<SessionRollout> {
    const records: SessionRecord[] = [];
    const first = this.store.count;
    let next = 0;
    let turns = 0;
    const run = async (): Promise<void> => {
      while (next < specs.length) {
        const position = next++;
        try {
          const record = await this.runSession(specs[position].seed!, first + position);
          records[position] = record;
          turns += record.summary.turns;
          onProgress?.(turns, [record.summary]);
        } catch (error) {
          next = specs.length;
          throw error;
        }
      }
    };
    const runs = Array.from({ length: this.options.numSessions }, run);
    await Promise.allSettled(runs);
    await Promise.all(runs);
    return toRollout(specs, records);
  }

  private async runSession(seed: number, index: number): Promise<SessionRecord> {
    const { agent, tasks, baseURL } = this.options;
    const session = this.store.create(undefined, index);
    try {
      await agent({
        baseURL: baseURL(session),
        sessionId: session.id,
        task: tasks[seed % tasks.length],
        seed,
        reward: (reward, turn) => session.reward(reward, turn),
      });
    } catch (error) {
      if (!session.isEnded) await this.store.end(session.id, "truncated");
      if (error instanceof LlamaGymError) throw error;
      throw new LlamaGymError("AGENT_FAILED", `The agent threw: ${errorMessage(error)}`, { cause: error });
    }
    // A session that timed out has ended already.
    const record = await (session.isEnded ? session.finish() : this.store.end(session.id));
    if (record !== undefined) return record;
    throw new LlamaGymError(
      "AGENT_FAILED",
      "The agent ended without requesting a completion. Its client must use the `baseURL` that it receives.",
    );
  }
}

/**
 * Tokens of ended sessions that wait for training: about 200 MB. Each turn counts its prompt and
 * its completion.
 */
const MAX_WAITING_TOKENS = 16_000_000;
/** Ended sessions that wait for training. */
const MAX_WAITING_SESSIONS = 10_000;
/** Sessions without a complete group after which a warning says why. */
const MIN_SESSIONS_WITHOUT_GROUP = 20;

/** An ended session that was not trained yet. */
interface WaitingSession {
  readonly task: string;
  readonly record: SessionRecord;
  readonly tokens: number;
}

/** Collects sessions that other processes open and end. */
export class QueueSource implements SessionSource {
  droppedSessions = 0;
  private readonly ended = new Map<string, WaitingSession[]>();
  /** The sessions of all tasks, the oldest first. */
  private readonly sessions = new Set<WaitingSession>();
  private tokens = 0;
  private hasWarnedOfGroups = false;
  private waiting: (() => void) | undefined;
  private aborted: { readonly reason: unknown } | undefined;

  /** @param onWarning receives what keeps sessions from being trained */
  constructor(
    private readonly onWarning: (message: string) => void = () => {},
    private readonly limits = { sessions: MAX_WAITING_SESSIONS, tokens: MAX_WAITING_TOKENS },
  ) {}

  /** Adds an ended session. Beyond the limits, the oldest sessions are dropped with a warning. */
  add({ task = "" }: Pick<GatewaySession, "task">, record: SessionRecord): void {
    const session = { task, record, tokens: countTokens(record) };
    const queue = this.ended.get(task);
    if (queue === undefined) this.ended.set(task, [session]);
    else queue.push(session);
    this.sessions.add(session);
    this.tokens += session.tokens;
    this.waiting?.();
    this.dropOldest();
  }

  /** Makes `collectEpisodes` throw `reason` in place of waiting. */
  abort(reason: unknown): void {
    this.aborted = { reason };
    this.waiting?.();
  }

  async collectEpisodes(specs: readonly EpisodeSpec[], { onProgress }: CollectOptions = {}): Promise<SessionRollout> {
    const records: SessionRecord[] = [];
    for (let start = 0, end = 0; start < specs.length; start = end) {
      const { group } = specs[start];
      const next = group === undefined ? start + 1 : specs.findIndex((spec, i) => i > start && spec.group !== group);
      end = next < 0 ? specs.length : next;
      const taken = await this.take(end - start);
      records.push(...taken);
      const turns = records.reduce((sum, { summary }) => sum + summary.turns, 0);
      onProgress?.(
        turns,
        taken.map(({ summary }) => summary),
      );
    }
    return toRollout(specs, records);
  }

  /** Waits for `count` sessions of one task. */
  private async take(count: number): Promise<readonly SessionRecord[]> {
    for (;;) {
      for (const [task, sessions] of this.ended) {
        if (sessions.length < count) continue;
        const taken = sessions.slice(0, count);
        for (const session of taken) this.remove(task, session);
        this.hasWarnedOfGroups = false;
        return taken.map(({ record }) => record);
      }
      if (this.aborted !== undefined) throw this.aborted.reason;
      this.warnOfGroups(count);
      await new Promise<void>((resolve) => (this.waiting = resolve));
      this.waiting = undefined;
    }
  }

  /** Removes the oldest session of a task. */
  private remove(task: string, session: WaitingSession): void {
    const sessions = this.ended.get(task)!;
    sessions.shift();
    if (sessions.length === 0) this.ended.delete(task);
    this.sessions.delete(session);
    this.tokens -= session.tokens;
  }

  private dropOldest(): void {
    const { limits } = this;
    for (const session of this.sessions) {
      if (this.sessions.size <= limits.sessions && this.tokens <= limits.tokens) return;
      this.remove(session.task, session);
      this.droppedSessions++;
      // Powers of ten: a line per session would drown the log.
      if (Number.isInteger(Math.log10(this.droppedSessions)))
        this.onWarning(
          `${this.droppedSessions} ended sessions were dropped untrained, the oldest first: at most ${limits.sessions} sessions ` +
            `with ${limits.tokens} tokens wait for training. Open fewer sessions at a time, or give them fewer distinct tasks.`,
        );
    }
  }

  /** Says once why no group forms. */
  private warnOfGroups(size: number): void {
    const { sessions, ended } = this;
    if (size === 1 || this.hasWarnedOfGroups || sessions.size < Math.max(MIN_SESSIONS_WITHOUT_GROUP, size)) return;
    this.hasWarnedOfGroups = true;
    this.onWarning(
      `${sessions.size} sessions of ${ended.size} tasks have ended, but no task has the ${size} sessions of a group ` +
        `(numGenerations), so nothing is trained yet. Open ${size} sessions with the same \`task\`, leave \`task\` out where ` +
        "all sessions have the same one, or train by PPO, which needs no groups.",
    );
  }
}

/** Counts the tokens that a session keeps in memory. */
function countTokens({ trajectory }: SessionRecord): number {
  return trajectory.turns.reduce((sum, { prompt, tokens }) => sum + prompt.length + tokens.length, 0);
}

function toRollout(specs: readonly EpisodeSpec[], records: readonly SessionRecord[]): SessionRollout {
  return {
    records,
    trajectories: records.map(({ trajectory }, i) => ({ ...trajectory, group: specs[i].group })),
    finishedEpisodes: records.map(({ summary }) => summary),
  };
}
