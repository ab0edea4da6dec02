import { fs } from "#platform";
import * as z from "zod";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { isAllFinite } from "../../core/numbers.js";
import type { OptimizerState } from "../../engine/optim/index.js";
import { type CausalLM, saveModel } from "../../models/index.js";
import { SafetensorsFile, writeSafetensors } from "../../models/files/index.js";
import { addAllChecksums, verifyAllChecksums } from "../../core/files/checksums.js";
import { FolderLock } from "../../core/files/folder-lock.js";
import { readJson, readJsonIfExists, writeJson } from "../../core/files/json-file.js";
import { removeFolder } from "../../core/files/remove-folder.js";
import { replaceFolder } from "../../core/files/write-file-atomic.js";
import { RequestError } from "../server/request-error.js";

/** What a checkpoint is for: to continue training, to sample, or to use elsewhere. */
export const CHECKPOINT_KINDS = {
  weights: "training",
  sampler_weights: "sampler",
  external_weights: "external",
} as const;
export type CheckpointKind = keyof typeof CHECKPOINT_KINDS;

const metadata = z.record(z.string(), z.unknown()).nullish();
const form = z.object({
  rank: z.int().min(1),
  train_attn: z.boolean(),
  train_mlp: z.boolean(),
  train_unembed: z.boolean(),
});
/** Rank and modules of an adapter. */
export type AdapterForm = z.infer<typeof form>;

const runRecord = z.object({
  runId: z.string(),
  baseModel: z.string(),
  form,
  userMetadata: metadata,
  created: z.string(),
});
/** What is known about a training run after the server was restarted. */
export type RunRecord = z.infer<typeof runRecord>;

const checkpointRecord = z.object({
  time: z.string(),
  baseModel: z.string(),
  form,
  /** Optimizer steps; null for a checkpoint without the optimizer. */
  optimizerSteps: z.int().min(0).nullable(),
  userMetadata: metadata,
  expires: z.string().nullish(),
});

/** Where a checkpoint is. */
export interface CheckpointPath {
  readonly runId: string;
  readonly kind: CheckpointKind;
  readonly name: string;
}

/** A checkpoint on disk. */
export interface StoredCheckpoint extends z.infer<typeof checkpointRecord>, CheckpointPath {
  readonly folder: string;
  readonly bytes: number;
}

/** What is saved. */
export interface CheckpointToSave {
  readonly model: CausalLM;
  readonly baseModel: string;
  readonly form: AdapterForm;
  /** State of the optimizer; undefined to leave it out. */
  readonly optimizer: OptimizerState | undefined;
  readonly userMetadata: Readonly<Record<string, unknown>> | null | undefined;
  readonly ttlSeconds: number | null | undefined;
}

/** A name becomes a folder, so that it has no separators and begins with no dot. */
const NAME = /^[A-Za-z0-9][\w.-]{0,127}$/;
const RUN_ID = /^[A-Za-z0-9][A-Za-z0-9-]{0,63}:train:\d{1,9}$/;
const RECORD_FILE = "checkpoint.json";
const RUN_FILE = "run.json";
const OPTIMIZER_FILE = "optimizer.safetensors";

/** Checkpoints of training runs in a folder, which one server writes to. */
export class CheckpointStore {
  private constructor(
    private readonly folder: string,
    private readonly lock: FolderLock,
  ) {}

  /**
   * Opens or creates the folder. @throws FOLDER_IN_USE while another server holds it,
   * FILE_WRITE_FAILED.
   */
  static async open(folder: string): Promise<CheckpointStore> {
    return new CheckpointStore(folder, await FolderLock.acquire(folder));
  }

  async close(): Promise<void> {
    await this.lock.release();
  }

  /** Records a new training run. */
  async addRun(run: RunRecord): Promise<void> {
    await this.lock.verify();
    await writeJson(fs.join(this.runFolder(run.runId), RUN_FILE), run);
  }

  /** Lists training runs, the newest first. Folders without a readable record are left out. */
  async listRuns(): Promise<RunRecord[]> {
    const names = await fs.list(this.folder).catch(() => []);
    const runs: RunRecord[] = [];
    for (const name of names) {
      const json = await readJsonIfExists(fs.join(this.folder, name, RUN_FILE)).catch(() => undefined);
      const run = runRecord.safeParse(json);
      if (run.success && fs.basename(this.runFolder(run.data.runId)) === name) runs.push(run.data);
    }
    return runs.sort((a, b) => (a.created < b.created ? 1 : -1));
  }

  /** Removes the record of a run that has saved nothing. */
  async removeEmptyRun(runId: string): Promise<void> {
    if ((await this.list(runId)).length === 0) await removeFolder(this.runFolder(runId));
  }

  async findRun(runId: string): Promise<RunRecord | undefined> {
    const json = await readJsonIfExists(fs.join(this.runFolder(runId), RUN_FILE)).catch(() => undefined);
    return runRecord.safeParse(json).data;
  }

  /**
   * Writes a checkpoint, whose folder appears once it is complete. @throws RequestError 400 for a
   * name that exists unless `overwrite`, TRAINING_DIVERGED, FILE_WRITE_FAILED.
   */
  async save(path: CheckpointPath, saved: CheckpointToSave, { overwrite = false } = {}): Promise<string> {
    const { model, baseModel, form: adapterForm, optimizer, userMetadata, ttlSeconds } = saved;
    const folder = this.checkpointFolder(path);
    const isTaken = !overwrite && (await fs.exists(folder)) && !(await this.isExpired(folder));
    if (isTaken)
      throw new RequestError(400, `${formatPath(path)} exists already. Choose another name, or set overwrite.`);
    if (optimizer !== undefined && !optimizer.moments.every(isAllFinite))
      throw new LlamaGymError("TRAINING_DIVERGED", "Nothing was saved: the optimizer's moments are not finite.");
    await this.lock.verify();
    const now = Date.now();
    await replaceFolder(folder, async (partial) => {
      await saveModel(model, partial, { baseModelName: baseModel });
      if (optimizer !== undefined)
        await writeSafetensors(
          fs.join(partial, OPTIMIZER_FILE),
          optimizer.moments.map((data, i) => ({ name: `moment.${i}`, shape: [data.length], data })),
        );
      await writeJson(fs.join(partial, RECORD_FILE), {
        time: new Date(now).toISOString(),
        baseModel,
        form: adapterForm,
        optimizerSteps: optimizer?.step ?? null,
        userMetadata: userMetadata ?? null,
        expires: ttlSeconds == null ? null : new Date(now + ttlSeconds * 1000).toISOString(),
      });
      await addAllChecksums(partial);
    });
    return formatPath(path);
  }

  /** Lists the checkpoints of a run, or of all runs, the oldest first; expired ones are deleted. */
  async list(runId?: string): Promise<StoredCheckpoint[]> {
    const runs = runId === undefined ? (await this.listRuns()).map((run) => run.runId) : [runId];
    const found: StoredCheckpoint[] = [];
    for (const run of runs)
      for (const kind of Object.keys(CHECKPOINT_KINDS) as CheckpointKind[])
        for (const name of await fs.list(fs.join(this.runFolder(run), kind)).catch(() => []))
          if (NAME.test(name)) found.push(...((await this.read({ runId: run, kind, name })) ?? []));
    return found.sort((a, b) => (a.time > b.time ? 1 : -1));
  }

  /** Finds a checkpoint. @throws RequestError 404 if there is none. */
  async get(path: CheckpointPath): Promise<StoredCheckpoint> {
    const [found] = (await this.read(path)) ?? [];
    if (found === undefined) throw new RequestError(404, `There is no checkpoint ${formatPath(path)}.`);
    return found;
  }

  /** Checks that the files of a checkpoint are as they were written. @throws FILE_CORRUPT */
  async verify({ folder }: StoredCheckpoint): Promise<void> {
    await verifyAllChecksums(folder);
  }

  /** Reads the optimizer's state; undefined for a checkpoint without it. @throws FILE_CORRUPT */
  async readOptimizer({ folder, optimizerSteps }: StoredCheckpoint): Promise<OptimizerState | undefined> {
    if (optimizerSteps === null) return undefined;
    const file = await SafetensorsFile.open(fs.join(folder, OPTIMIZER_FILE));
    try {
      const moments = [await file.readFloat32("moment.0"), await file.readFloat32("moment.1")];
      return { kind: "adamw", step: optimizerSteps, moments };
    } finally {
      await file.close();
    }
  }

  /** Deletes a checkpoint. @throws RequestError 404 if there is none. */
  async delete(path: CheckpointPath): Promise<void> {
    const { folder } = await this.get(path);
    await removeFolder(folder);
  }

  /** Sets or removes the time after which a checkpoint is deleted. @throws RequestError 404 */
  async setTtl(path: CheckpointPath, ttlSeconds: number | undefined): Promise<void> {
    const { folder, time, baseModel, form: adapterForm, optimizerSteps, userMetadata } = await this.get(path);
    const expires = ttlSeconds === undefined ? null : new Date(Date.now() + ttlSeconds * 1000).toISOString();
    const record = { time, baseModel, form: adapterForm, optimizerSteps, userMetadata: userMetadata ?? null, expires };
    await writeJson(fs.join(folder, RECORD_FILE), record);
    await addAllChecksums(folder);
  }

  private async read(path: CheckpointPath): Promise<[StoredCheckpoint] | undefined> {
    const folder = this.checkpointFolder(path);
    const json = await readJsonIfExists(fs.join(folder, RECORD_FILE)).catch(() => undefined);
    const record = checkpointRecord.safeParse(json);
    if (!record.success) return undefined;
    if (isPast(record.data.expires)) {
      await removeFolder(folder);
      return undefined;
    }
    let bytes = 0;
    for (const name of await fs.list(folder).catch(() => [])) bytes += (await fs.stat(fs.join(folder, name))).size;
    return [{ ...record.data, ...path, folder, bytes }];
  }

  private async isExpired(folder: string): Promise<boolean> {
    const record = checkpointRecord.safeParse(await readJson(fs.join(folder, RECORD_FILE)).catch(() => undefined));
    return isPast(record.data?.expires);
  }

  private runFolder(runId: string): string {
    if (!RUN_ID.test(runId)) throw new RequestError(404, `There is no training run ${runId.slice(0, 100)}.`);
    // A colon is no part of a file's name on all systems.
    return fs.join(this.folder, runId.replaceAll(":", "_"));
  }

  private checkpointFolder({ runId, kind, name }: CheckpointPath): string {
    return fs.join(this.runFolder(runId), kind, checkName(name));
  }
}

const isPast = (time: string | null | undefined): boolean => time != null && Date.parse(time) <= Date.now();

/** Checks the name of a checkpoint. @throws INVALID_ARGUMENT */
export function checkName(name: string): string {
  if (NAME.test(name)) return name;
  throw invalidArgument(
    `A checkpoint's name must have 1 to 128 letters, digits, ".", "_" or "-" and begin with a letter or digit, got ${JSON.stringify(name.slice(0, 150))}.`,
  );
}

export const formatPath = ({ runId, kind, name }: CheckpointPath): string => `tinker://${runId}/${kind}/${name}`;

/** Parses "tinker://RUN/weights/NAME". @throws RequestError 400 for another form. */
export function parsePath(path: string): CheckpointPath {
  const [, runId, kind, name] = /^tinker:\/\/([^/]+)\/([^/]+)\/([^/]+)$/.exec(path) ?? [];
  if (runId === undefined || !Object.hasOwn(CHECKPOINT_KINDS, kind))
    throw new RequestError(
      400,
      `A checkpoint's path must be tinker://RUN/${Object.keys(CHECKPOINT_KINDS).join("|")}/NAME, got ${JSON.stringify(path.slice(0, 200))}.`,
    );
  return { runId, kind: kind as CheckpointKind, name };
}
