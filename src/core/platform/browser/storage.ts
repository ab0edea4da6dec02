import { basename, dirname, resolve } from "./paths.js";
import { listFiles, readFile, writeFile } from "./page-files.js";
import { fs } from "./index.js";

/** A folder of the origin private file system. */
interface StorageFolder {
  getDirectoryHandle(name: string, options?: { readonly create: boolean }): Promise<StorageFolder>;
  getFileHandle(name: string, options?: { readonly create: boolean }): Promise<StorageFile>;
  removeEntry(name: string, options?: { readonly recursive: boolean }): Promise<void>;
  entries(): AsyncIterable<readonly [string, StorageFolder | StorageFile]>;
}

interface StorageFile {
  readonly kind: "file";
  getFile(): Promise<Blob>;
  createWritable(): Promise<{ write(bytes: Uint8Array): Promise<void>; close(): Promise<void> }>;
}

const { navigator } = globalThis as unknown as {
  navigator: { storage: { getDirectory(): Promise<StorageFolder> } };
};

/**
 * Copies a folder of the page's memory, such as a run or an adapter, to the browser's storage of
 * this origin, where it survives the page. Replaces what was stored under that path.
 */
export async function copyToStorage(folder: string): Promise<void> {
  const path = resolve(folder);
  const parent = await openFolder(dirname(path), true);
  await parent.removeEntry(basename(path), { recursive: true }).catch(ignoreMissing);
  await openFolder(path, true);
  for (const file of await listFiles(path)) {
    const handle = await (await openFolder(dirname(file), true)).getFileHandle(basename(file), { create: true });
    const target = await handle.createWritable();
    await target.write(await readFile(file));
    await target.close();
  }
}

/**
 * Copies a folder of the browser's storage into the page's memory; returns whether there was one.
 */
export async function copyFromStorage(folder: string): Promise<boolean> {
  const path = resolve(folder);
  const source = await openFolder(path, false).catch(ignoreMissing);
  if (source === undefined) return false;
  await fs.makeFolder(path);
  await copyFrom(source, path);
  return true;
}

async function copyFrom(source: StorageFolder, path: string): Promise<void> {
  for await (const [name, entry] of source.entries()) {
    const target = fs.join(path, name);
    if (isFile(entry)) await writeFile(target, new Uint8Array(await (await entry.getFile()).arrayBuffer()));
    else await fs.makeFolder(target).then(() => copyFrom(entry, target));
  }
}

const isFile = (entry: StorageFolder | StorageFile): entry is StorageFile => "kind" in entry && entry.kind === "file";

async function openFolder(path: string, create: boolean): Promise<StorageFolder> {
  let folder = await navigator.storage.getDirectory();
  for (const name of path.split("/").filter(Boolean)) folder = await folder.getDirectoryHandle(name, { create });
  return folder;
}

function ignoreMissing(error: unknown): undefined {
  if ((error as Error).name !== "NotFoundError") throw error;
}
