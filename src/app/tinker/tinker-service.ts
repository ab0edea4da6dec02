import { fs } from "#platform";
import type { LanguageModel } from "../../generation/index.js";
import { BaseModel } from "./base-model.js";
import type { CheckpointStore } from "./checkpoint-store.js";
import { Futures } from "./futures.js";
import { SamplingService } from "./sampling-service.js";
import { Sessions } from "./sessions.js";
import { SnapshotCache } from "./snapshots.js";
import { TrainingService } from "./training-service.js";

/** Options of a `TinkerService`. */
export interface TinkerServiceOptions {
  /** Name of the model in requests. */
  readonly modelName: string;
  /** Further names of the model, such as the path of its folder. */
  readonly aliases?: readonly string[];
  /** Folder of checkpoints. */
  readonly store: CheckpointStore;
  /** Folder of snapshots that make room in memory. */
  readonly snapshotFolder: string;
  /** Milliseconds without a sign of life after which a session ends. Default 5 minutes. */
  readonly sessionTimeoutMs?: number;
  /** Logs an error that the client did not cause. */
  readonly onError?: (error: unknown) => void;
  /** Counts a request of a model that is run. */
  readonly onWork?: (kind: string) => void;
}

/** What the routes of the Tinker API work on: training and sampling of adapters of one model. */
export class TinkerService {
  readonly base: BaseModel;
  readonly store: CheckpointStore;
  readonly futures: Futures;
  readonly sessions: Sessions;
  readonly snapshots: SnapshotCache;
  readonly training: TrainingService;
  readonly sampling: SamplingService;

  constructor(model: LanguageModel, options: TinkerServiceOptions) {
    const { modelName, aliases, store, snapshotFolder, sessionTimeoutMs, onError, onWork } = options;
    this.base = new BaseModel(model, modelName, aliases);
    this.store = store;
    this.futures = new Futures({ onError });
    this.sessions = new Sessions(sessionTimeoutMs, async (session) => {
      this.futures.endSession(session.id);
      await this.training.endSession(session);
      await this.sampling.endSession(session);
    });
    this.snapshots = new SnapshotCache(snapshotFolder);
    this.sampling = new SamplingService(this.base, store, this.sessions, this.futures, this.snapshots);
    this.training = new TrainingService(this.base, store, this.sessions, this.futures, this.sampling, onWork);
  }

  /** Ends all sessions and frees what they hold. */
  async close(): Promise<void> {
    await this.sessions.close();
    await this.snapshots.clear();
  }
}

/** Returns the folder of snapshots in that of checkpoints. */
export const getSnapshotFolder = (folder: string): string => fs.join(folder, ".snapshots");
