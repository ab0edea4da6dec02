import { randomUUID } from "node:crypto";
import { copyFile, mkdir, readdir, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { writeFileAtomic } from "../write-file-atomic.js";
import { getSystemErrorCode, toWriteError } from "../file-errors.js";
import { isCommitHash } from "./repository.js";

/**
 * The part of the Hugging Face cache that belongs to one model, laid out as Python's huggingface_hub does:
 * blobs/HASH holds the content, snapshots/COMMIT/PATH links to it, refs/REVISION names the commit of a branch or tag.
 */
export class ModelCache {
  readonly folder: string;
  private readonly locksFolder: string;

  constructor(cacheDir: string, id: string) {
    const name = ["models", ...id.split("/")].join("--");
    this.folder = join(cacheDir, name);
    this.locksFolder = join(cacheDir, ".locks", name);
  }

  blobPath(hash: string): string {
    return join(this.folder, "blobs", hash);
  }

  lockPath(hash: string): string {
    // Python locks HASH.lock with flock, which Node does not have; the content is safe under either's lock.
    return join(this.locksFolder, `${hash}.llamagym`);
  }

  snapshotPath(commit: string, path = ""): string {
    return join(this.folder, "snapshots", commit, ...path.split("/"));
  }

  /** The commit that a revision stood for when it was last asked, or undefined. */
  async readCommit(revision: string): Promise<string | undefined> {
    if (isCommitHash(revision)) return revision;
    const text = await readFile(this.refPath(revision), "utf8").catch(() => "");
    return isCommitHash(text.trim()) ? text.trim() : undefined;
  }

  /** Remembers the commit of a branch or tag. Throws FILE_WRITE_FAILED. */
  async storeCommit(revision: string, commit: string): Promise<void> {
    if (revision === commit || (await this.readCommit(revision)) === commit) return;
    await writeFileAtomic(this.refPath(revision), commit);
  }

  private refPath(revision: string): string {
    return join(this.folder, "refs", ...revision.split("/").filter((part) => part !== "" && part !== ".."));
  }

  /** Whether a file of a snapshot is there, whole. */
  async hasFile(commit: string, path: string): Promise<boolean> {
    return stat(this.snapshotPath(commit, path)).then(
      (status) => status.isFile(),
      () => false,
    );
  }

  /** The paths of the files of a snapshot; none when it is not there. */
  async listPaths(commit: string): Promise<string[]> {
    const root = this.snapshotPath(commit);
    const entries = await readdir(root, { recursive: true }).catch(() => []);
    const names = entries.map((name) => name.split("\\").join("/"));
    const present = await Promise.all(names.map((name) => this.hasFile(commit, name)));
    return names.filter((_, i) => present[i]);
  }

  /** Makes a snapshot's file a link to a blob, or a copy where links are not possible. Throws FILE_WRITE_FAILED. */
  async link(commit: string, path: string, hash: string): Promise<void> {
    const pointer = this.snapshotPath(commit, path);
    const blob = this.blobPath(hash);
    const temporary = `${pointer}.${randomUUID().slice(0, 8)}.tmp`;
    try {
      await mkdir(dirname(pointer), { recursive: true });
      try {
        await symlink(relative(dirname(pointer), blob), temporary);
      } catch (error) {
        if (!["EPERM", "EACCES", "ENOSYS", "UNKNOWN"].includes(getSystemErrorCode(error) ?? "")) throw error;
        await copyFile(blob, temporary);
      }
      await rename(temporary, pointer);
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => undefined);
      throw toWriteError(pointer, error);
    }
  }
}
