import { fs } from "#platform";
import { writeFileAtomic } from "../../../core/files/write-file-atomic.js";
import { getSystemErrorCode, toWriteError } from "../../../core/files/file-errors.js";
import { getTemporaryPath, removeAbandonedFiles } from "../../../core/files/temporary-path.js";
import { isCommitHash } from "./repository.js";

/**
 * A model's part of the Hugging Face cache, in huggingface_hub's layout: blobs/HASH are contents,
 * snapshots/COMMIT/PATH link to them, refs/REVISION name a branch's or tag's commit.
 */
export class ModelCache {
  readonly folder: string;
  private readonly locksFolder: string;

  constructor(cacheDir: string, id: string) {
    const name = ["models", ...id.split("/")].join("--");
    this.folder = fs.join(cacheDir, name);
    this.locksFolder = fs.join(cacheDir, ".locks", name);
  }

  blobPath(hash: string): string {
    return fs.join(this.folder, "blobs", hash);
  }

  lockPath(hash: string): string {
    // Python locks HASH.lock with flock, which Node.js lacks; blobs are safe under either lock.
    return fs.join(this.locksFolder, `${hash}.llamagym`);
  }

  snapshotPath(commit: string, path = ""): string {
    return fs.join(this.folder, "snapshots", commit, ...path.split("/"));
  }

  /** Returns the last known commit of a revision, or undefined. */
  async readCommit(revision: string): Promise<string | undefined> {
    if (isCommitHash(revision)) return revision;
    const text = await fs.readText(this.refPath(revision)).catch(() => "");
    return isCommitHash(text.trim()) ? text.trim() : undefined;
  }

  /** Stores the commit of a branch or tag. @throws FILE_WRITE_FAILED. */
  async storeCommit(revision: string, commit: string): Promise<void> {
    if (revision === commit || (await this.readCommit(revision)) === commit) return;
    await writeFileAtomic(this.refPath(revision), commit);
  }

  private refPath(revision: string): string {
    return fs.join(this.folder, "refs", ...revision.split("/").filter((part) => part !== "" && part !== ".."));
  }

  /** Whether a snapshot's file is present. */
  async hasFile(commit: string, path: string): Promise<boolean> {
    return (await fs.stat(this.snapshotPath(commit, path)).catch(() => undefined))?.isFile === true;
  }

  /** Lists a snapshot's files; empty when it does not exist. */
  async listPaths(commit: string): Promise<string[]> {
    const root = this.snapshotPath(commit);
    const entries = await fs.list(root, { recursive: true }).catch(() => []);
    const names = entries.map((name) => name.split("\\").join("/"));
    const present = await Promise.all(names.map((name) => this.hasFile(commit, name)));
    return names.filter((_, i) => present[i]);
  }

  /**
   * Links a snapshot's file to a blob, or copies it where links are not possible. @throws
   * FILE_WRITE_FAILED.
   */
  async link(commit: string, path: string, hash: string): Promise<void> {
    const pointer = this.snapshotPath(commit, path);
    const blob = this.blobPath(hash);
    const temporary = getTemporaryPath(pointer);
    try {
      await fs.makeFolder(fs.dirname(pointer));
      await removeAbandonedFiles(fs.dirname(pointer), pointer);
      try {
        await fs.symlink(fs.relative(fs.dirname(pointer), blob), temporary);
      } catch (error) {
        if (!["EPERM", "EACCES", "ENOSYS", "UNKNOWN"].includes(getSystemErrorCode(error) ?? "")) throw error;
        await fs.copy(blob, temporary);
      }
      await fs.rename(temporary, pointer);
    } catch (error) {
      await fs.remove(temporary).catch(() => undefined);
      throw toWriteError(pointer, error);
    }
  }
}
