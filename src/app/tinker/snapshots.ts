import { fs } from "#platform";
import type { TokenSampler } from "../../generation/index.js";
import { type CausalLM, loadTrainedValues, saveModel } from "../../models/index.js";
import { removeFolder } from "../../core/files/remove-folder.js";
import type { ModelForm } from "./model-form.js";

/** Values that can be sampled from and scored with. */
export interface LoadedPolicy {
  readonly form: ModelForm;
  readonly model: CausalLM;
  readonly sampler: TokenSampler;
}

/** Values of an adapter at one time: training does not change them. */
export class PolicySnapshot {
  lastUsed = Date.now();
  users = 0;
  loaded: Promise<LoadedPolicy> | undefined;
  /** Whether the snapshot is dropped once nothing uses it. */
  isRemoved = false;
  /** Writing to `folder` that has begun. */
  saved: Promise<void> | undefined;

  constructor(
    readonly form: ModelForm,
    /** Where the values are, or go when memory is needed. */
    readonly folder: string,
    /** Values that are in memory already. */
    readonly values: CausalLM | undefined,
    /** Whether `folder` belongs to the snapshot, and is deleted with it. */
    readonly isTemporary: boolean,
  ) {
    if (values !== undefined) this.loaded = this.open(values);
  }

  /** Loads the values if necessary. */
  load(): Promise<LoadedPolicy> {
    this.loaded ??= (async () => {
      await this.saved;
      const model = this.form.prototype.withOwnValues();
      try {
        await loadTrainedValues(model, this.folder);
        return await this.open(model);
      } catch (error) {
        model.parameters.free();
        this.loaded = undefined;
        throw error;
      }
    })();
    return this.loaded;
  }

  /** Takes the values out of memory; those that are on no disk are written first. */
  async unload(): Promise<void> {
    const { loaded } = this;
    if (loaded === undefined) return;
    this.loaded = undefined;
    const { model, sampler } = await loaded;
    const isOnDisk = !this.isTemporary || this.saved !== undefined;
    if (!isOnDisk) this.saved = saveModel(model, this.folder);
    await this.saved;
    await sampler.release();
    model.parameters.free();
  }

  /** Drops the values. */
  async remove(): Promise<void> {
    const { loaded } = this;
    this.loaded = undefined;
    if (loaded !== undefined) {
      const { model, sampler } = await loaded;
      await sampler.release();
      model.parameters.free();
    }
    await this.saved?.catch(() => undefined);
    if (this.isTemporary) await removeFolder(this.folder);
  }

  private async open(model: CausalLM): Promise<LoadedPolicy> {
    return { form: this.form, model, sampler: await this.form.createSampler(model) };
  }
}

/**
 * Snapshots in memory: those used last, each with its own keys and values, so that several in turn
 * do not disturb one another.
 */
export class SnapshotCache {
  private readonly snapshots = new Set<PolicySnapshot>();

  constructor(
    /** Folder of values that make room in memory. */
    private readonly folder: string,
    private readonly maxLoaded = 4,
  ) {}

  /** Removes what an earlier start of the server left. */
  async clear(): Promise<void> {
    await removeFolder(this.folder);
  }

  /** Copies a model's values. */
  async take(form: ModelForm, model: CausalLM): Promise<PolicySnapshot> {
    const copy = model.withOwnValues();
    const { values: target } = copy.parameters;
    await model.runtime.kernel({ name: "addScaled", target, source: model.parameters.values, scale: 1 });
    return this.add(new PolicySnapshot(form, fs.join(this.folder, crypto.randomUUID()), copy, true));
  }

  /** Returns the values of a checkpoint, which are loaded when they are needed. */
  open(form: ModelForm, folder: string): PolicySnapshot {
    return this.add(new PolicySnapshot(form, folder, undefined, false));
  }

  /** Does some work with a snapshot in memory. */
  async use<Result>(snapshot: PolicySnapshot, work: (policy: LoadedPolicy) => Promise<Result>): Promise<Result> {
    snapshot.users++;
    snapshot.lastUsed = Date.now();
    try {
      return await work(await snapshot.load());
    } finally {
      snapshot.users--;
      if (snapshot.isRemoved) await this.remove(snapshot);
      this.makeRoom();
    }
  }

  /** Drops a snapshot; one that is used is dropped afterwards. */
  async remove(snapshot: PolicySnapshot): Promise<void> {
    snapshot.isRemoved = true;
    if (snapshot.users === 0 && this.snapshots.delete(snapshot)) await snapshot.remove();
  }

  private add(snapshot: PolicySnapshot): PolicySnapshot {
    this.snapshots.add(snapshot);
    this.makeRoom();
    return snapshot;
  }

  private makeRoom(): void {
    const loaded = [...this.snapshots].filter((each) => each.loaded !== undefined);
    const idle = loaded.filter(({ users }) => users === 0).sort((a, b) => a.lastUsed - b.lastUsed);
    // A failed write is reported when the snapshot is loaded again.
    for (const snapshot of idle.slice(0, Math.max(0, loaded.length - this.maxLoaded)))
      void snapshot.unload().catch(() => undefined);
  }
}
