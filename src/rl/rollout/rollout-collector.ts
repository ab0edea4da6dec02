import type { EnvSlotState, EpisodeSpec, RolloutSlot } from "./rollout-slot.js";
import type { EpisodeSummary, Trajectory } from "./trajectory.js";

/** The result of collecting turns or episodes. */
export interface Rollout {
  readonly trajectories: readonly Trajectory[];
  /** Episodes that ended, in that order. */
  readonly finishedEpisodes: readonly EpisodeSummary[];
}

export interface CollectOptions {
  readonly signal?: AbortSignal;
  /**
   * Called after each round with the number of turns so far and the episodes that ended in the
   * round.
   */
  readonly onProgress?: (numTurns: number, ended: readonly EpisodeSummary[]) => void;
}

/** Options of `RolloutCollector.collectTurns`. */
interface CollectTurnsOptions extends Omit<CollectOptions, "signal"> {
  /**
   * Whether episodes in environments that cannot be saved are completed. Default false: they
   * continue in the next call.
   */
  readonly completesUnsaved?: boolean;
}

/** Collects the rollouts of a run. */
export interface RolloutSource {
  /**
   * Collects at least `minTurns` turns. Unfinished episodes yield partial trajectories and continue
   * in the next call.
   */
  collectTurns(minTurns: number, options?: Omit<CollectOptions, "signal">): Promise<Rollout>;
  /** Collects one whole episode per spec, in their order. */
  collectEpisodes(specs: readonly EpisodeSpec[], options?: CollectOptions): Promise<Rollout>;
  /** With `dropEpisodes`, each environment starts a new episode when the state is restored. */
  getState(options?: { readonly dropEpisodes?: boolean }): readonly EnvSlotState[];
  setState(states: readonly EnvSlotState[]): void;
}

/**
 * Collects trajectories from many environments at once. In each round every active slot takes one
 * turn, and all completions are sampled in one batch. Results depend on the slots and their order,
 * not on timing.
 */
export class RolloutCollector implements RolloutSource {
  constructor(private readonly envSlots: readonly RolloutSlot[]) {}

  async collectTurns(
    minTurns: number,
    { onProgress, completesUnsaved = false }: CollectTurnsOptions = {},
  ): Promise<Rollout> {
    const trajectories: Trajectory[] = [];
    const finishedEpisodes: EpisodeSummary[] = [];
    for (let numTurns = 0; numTurns < minTurns; numTurns += this.envSlots.length) {
      await settleAll(this.envSlots.map(async (envSlot) => (envSlot.isRunning ? undefined : envSlot.start())));
      const ended = await this.stepAll(this.envSlots, trajectories);
      finishedEpisodes.push(...ended);
      onProgress?.(numTurns + this.envSlots.length, ended);
    }
    if (completesUnsaved) finishedEpisodes.push(...(await this.completeUnsaved(trajectories)));
    this.envSlots.forEach((envSlot, index) => {
      if ((envSlot.pendingTurns ?? 0) > 0) trajectories.push({ ...envSlot.takeTrajectory!(), envSlot: index });
    });
    return { trajectories, finishedEpisodes };
  }

  /** A signal returns the episodes finished so far. */
  async collectEpisodes(specs: readonly EpisodeSpec[], { signal, onProgress }: CollectOptions = {}): Promise<Rollout> {
    const trajectories: (readonly Trajectory[])[] = specs.map(() => []);
    const summaries: (EpisodeSummary | undefined)[] = specs.map(() => undefined);
    const specIndexBySlot = new Map<RolloutSlot, number>();
    let nextSpec = 0;
    let numTurns = 0;
    const isAborted = () => signal?.aborted === true;
    while (!isAborted()) {
      const idleSlots = this.envSlots
        .filter((envSlot) => !specIndexBySlot.has(envSlot))
        .slice(0, specs.length - nextSpec);
      for (const envSlot of idleSlots) specIndexBySlot.set(envSlot, nextSpec++);
      await settleAll(
        idleSlots.map((envSlot) => {
          const spec = specs[specIndexBySlot.get(envSlot)!];
          return envSlot.start({ ...spec, record: spec.record ?? false });
        }),
      );
      if (specIndexBySlot.size === 0) break;
      const activeSlots = [...specIndexBySlot.keys()];
      const results = await settleAll(activeSlots.map((envSlot) => envSlot.step(signal))).catch((error: unknown) => {
        if (isAborted()) return [];
        throw error;
      });
      numTurns += activeSlots.length;
      const ended: EpisodeSummary[] = [];
      results.forEach((result, i) => {
        if (result === undefined) return;
        const specIndex = specIndexBySlot.get(activeSlots[i])!;
        const { group } = specs[specIndex];
        trajectories[specIndex] = result.trajectories.map((trajectory) => ({ ...trajectory, group }));
        summaries[specIndex] = result.summary;
        ended.push(result.summary);
        specIndexBySlot.delete(activeSlots[i]);
      });
      onProgress?.(numTurns, ended);
    }
    return {
      trajectories: trajectories.flat(),
      finishedEpisodes: summaries.filter((summary) => summary !== undefined),
    };
  }

  getState({ dropEpisodes = false } = {}): readonly EnvSlotState[] {
    return this.envSlots.map((envSlot) => envSlot.getState({ dropEpisode: dropEpisodes }));
  }

  setState(states: readonly EnvSlotState[]): void {
    this.envSlots.forEach((envSlot, i) => envSlot.setState(states[i]));
  }

  private async completeUnsaved(trajectories: Trajectory[]): Promise<EpisodeSummary[]> {
    const finished: EpisodeSummary[] = [];
    const isUnsaved = (envSlot: RolloutSlot) => envSlot.isRunning && envSlot.getState().env === null;
    for (let running = this.envSlots.filter(isUnsaved); running.length > 0; running = running.filter(isUnsaved))
      finished.push(...(await this.stepAll(running, trajectories)));
    return finished;
  }

  private async stepAll(envSlots: readonly RolloutSlot[], trajectories: Trajectory[]): Promise<EpisodeSummary[]> {
    const results = await settleAll(envSlots.map((envSlot) => envSlot.step()));
    return results.flatMap((result, i) => {
      if (result === undefined) return [];
      const envSlot = this.envSlots.indexOf(envSlots[i]);
      trajectories.push(...result.trajectories.map((trajectory) => ({ ...trajectory, envSlot })));
      return [result.summary];
    });
  }
}

/** Waits for all promises to settle, then returns their values or throws the first error. */
export async function settleAll<Result>(promises: readonly Promise<Result>[]): Promise<Result[]> {
  await Promise.allSettled(promises);
  return Promise.all(promises);
}
