import { errorMessage, LlamaGymError } from "../../core/errors.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import type { EpisodeSpec, CollectOptions, Rollout } from "../../rl/rollout/rollout-collector.js";
import type { Session, SessionRecord } from "./session.js";
import type { SessionStore } from "./session-store.js";

/** Sessions of one update. */
export interface SessionRollout extends Rollout {
  readonly records: readonly SessionRecord[];
}

/** Where the sessions of an update come from. */
export interface SessionSource {
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
  constructor(
    private readonly store: SessionStore,
    private readonly options: {
      readonly agent: (episode: AgentEpisode<Task>) => MaybePromise<unknown>;
      readonly tasks: readonly Task[];
      readonly numSessions: number;
      readonly baseURL: (session: Session) => string;
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

/** Collects sessions that other processes open and end. */
export class QueueSource implements SessionSource {
  private readonly ended = new Map<string, SessionRecord[]>();
  private waiting: (() => void) | undefined;
  private aborted: { readonly reason: unknown } | undefined;

  /** Adds an ended session. */
  add({ task = "" }: Pick<Session, "task">, record: SessionRecord): void {
    const queue = this.ended.get(task) ?? [];
    this.ended.set(task, [...queue, record]);
    this.waiting?.();
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
      for (const [task, records] of this.ended) {
        if (records.length < count) continue;
        const taken = records.splice(0, count);
        if (records.length === 0) this.ended.delete(task);
        return taken;
      }
      if (this.aborted !== undefined) throw this.aborted.reason;
      await new Promise<void>((resolve) => (this.waiting = resolve));
      this.waiting = undefined;
    }
  }
}

function toRollout(specs: readonly EpisodeSpec[], records: readonly SessionRecord[]): SessionRollout {
  return {
    records,
    trajectories: records.map(({ trajectory }, i) => ({ ...trajectory, group: specs[i].group })),
    finishedEpisodes: records.map(({ summary }) => summary),
  };
}
