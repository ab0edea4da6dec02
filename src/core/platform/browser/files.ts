import { decodeUtf8, encodeUtf8 } from "../../bytes.js";
import type { FileInfo, FileSystem, OpenAppendFile, OpenFile } from "../ports.js";
import { basename, dirname, join, relative, resolve } from "./paths.js";

type ErrorCode = "ENOENT" | "EEXIST" | "EINVAL" | "ENOTEMPTY" | "EISDIR" | "ENOTDIR";

const MEANINGS: Readonly<Record<ErrorCode, string>> = {
  ENOENT: "no such file or folder",
  EEXIST: "it exists already",
  EINVAL: "a folder cannot move into itself",
  ENOTEMPTY: "the folder is not empty",
  EISDIR: "it is a folder",
  ENOTDIR: "it is not a folder",
};

const fileError = (code: ErrorCode, path: string): Error =>
  Object.assign(new Error(`${code}: ${MEANINGS[code]}, ${path}`), { code });

/** A file's bytes, in memory with room to grow. */
class Contents {
  private memory = new Uint8Array();
  size = 0;
  modifiedMs = Date.now();

  constructor(bytes?: Uint8Array) {
    if (bytes !== undefined) this.write(bytes, 0);
  }

  bytes(): Uint8Array<ArrayBuffer> {
    return this.memory.subarray(0, this.size);
  }

  write(bytes: Uint8Array, position: number): void {
    if (bytes.length === 0) return;
    this.truncate(Math.max(this.size, position + bytes.length));
    this.memory.set(bytes, position);
  }

  truncate(size: number): void {
    if (size > this.memory.length) {
      const grown = new Uint8Array(Math.max(size, 2 * this.memory.length));
      grown.set(this.bytes());
      this.memory = grown;
    }
    if (size < this.size) this.memory.fill(0, size, this.size);
    this.size = size;
    this.modifiedMs = Date.now();
  }
}

/** A file of the package, which is fetched when it is first read. */
interface Remote {
  readonly url: URL;
}

type Entry = "folder" | Contents | Remote;

const isRemote = (entry: Entry): entry is Remote => typeof entry === "object" && "url" in entry;

/**
 * Files in the memory of the page: they end with it. Files of the package are fetched on demand.
 */
export class MemoryFileSystem implements FileSystem {
  private readonly entries = new Map<string, Entry>([["/", "folder"]]);
  private tempFolders = 0;
  readonly join = join;
  readonly dirname = dirname;
  readonly basename = basename;
  readonly relative = relative;
  readonly resolve = resolve;

  /** @param remotes URLs of files by their paths. */
  constructor(remotes: Readonly<Record<string, URL>> = {}) {
    for (const [path, url] of Object.entries(remotes)) {
      this.addFolder(dirname(path));
      this.entries.set(path, { url });
    }
  }

  async realpath(path: string): Promise<string> {
    this.get(path);
    return resolve(path);
  }

  async stat(path: string): Promise<FileInfo> {
    const entry = this.get(path);
    if (entry === "folder") return { isFile: false, isFolder: true, size: 0, modifiedMs: 0, changedMs: 0 };
    const { size, modifiedMs } = await this.load(path);
    return { isFile: true, isFolder: false, size, modifiedMs, changedMs: modifiedMs };
  }

  async exists(path: string): Promise<boolean> {
    return this.existsSync(path);
  }

  existsSync(path: string): boolean {
    return this.entries.has(resolve(path));
  }

  async list(folder: string, { recursive = false }: { readonly recursive?: boolean } = {}): Promise<string[]> {
    if (this.get(folder) !== "folder") throw fileError("ENOTDIR", folder);
    const names = this.below(folder).map((path) => relative(folder, path));
    return recursive ? names : names.filter((name) => !name.includes("/"));
  }

  async freeBytes(): Promise<number> {
    const { navigator } = globalThis as { navigator?: { storage?: { estimate(): Promise<{ quota?: number }> } } };
    return (await navigator?.storage?.estimate())?.quota ?? Infinity;
  }

  async readBytes(path: string): Promise<Uint8Array<ArrayBuffer>> {
    return (await this.load(path)).bytes().slice();
  }

  readBytesSync(path: string): Uint8Array<ArrayBuffer> {
    const entry = this.get(path);
    if (entry === "folder") throw fileError("EISDIR", path);
    if (isRemote(entry)) throw fileError("ENOENT", `${path}, which must be read before`);
    return entry.bytes().slice();
  }

  async readText(path: string): Promise<string> {
    return decodeUtf8((await this.load(path)).bytes());
  }

  async *readLines(path: string): AsyncGenerator<string> {
    const lines = (await this.readText(path)).split(/\r\n|\n|\r/);
    if (lines.at(-1) === "") lines.pop();
    yield* lines;
  }

  async open(path: string, mode: "read" | "create" | "update"): Promise<OpenFile> {
    if (mode === "create" && this.existsSync(path)) throw fileError("EEXIST", path);
    if (mode !== "read" && !this.existsSync(path)) return new MemoryFile(this.create(path));
    return new MemoryFile(await this.load(path));
  }

  openAppend(path: string, mode: "create" | "append"): OpenAppendFile {
    const old = this.entries.get(resolve(path));
    if (old !== undefined && mode === "create") throw fileError("EEXIST", path);
    if (old !== undefined && !(old instanceof Contents)) throw fileError("EISDIR", path);
    this.addFolder(dirname(resolve(path)));
    const contents = old ?? this.create(path);
    return {
      append: (data) => contents.write(typeof data === "string" ? encodeUtf8(data) : data, contents.size),
      isLinked: () => this.entries.get(resolve(path)) === contents,
      truncate: (size) => contents.truncate(size),
      close: () => {},
    };
  }

  async makeFolder(path: string): Promise<void> {
    this.addFolder(resolve(path));
  }

  async makeTempFolder(prefix: string): Promise<string> {
    const path = `${resolve(prefix)}${(this.tempFolders++).toString(36).padStart(6, "0")}`;
    this.addFolder(path);
    return path;
  }

  async rename(from: string, to: string): Promise<void> {
    const source = this.get(from);
    const [start, end] = [resolve(from), resolve(to)];
    if (start === end) return;
    if (source === "folder" && end.startsWith(`${start}/`)) throw fileError("EINVAL", to);
    this.requireReplaceable(end, source === "folder");
    const moved = [start, ...(source === "folder" ? this.below(start) : [])];
    const entries = moved.map((path) => [path, this.entries.get(path)!] as const);
    for (const path of moved) this.entries.delete(path);
    for (const [path, entry] of entries) this.entries.set(end + path.slice(start.length), entry);
  }

  async copy(from: string, to: string): Promise<void> {
    const contents = await this.load(from);
    this.requireReplaceable(resolve(to), false);
    this.entries.set(resolve(to), new Contents(contents.bytes()));
  }

  symlink(target: string, path: string): Promise<void> {
    return this.link(resolve(dirname(path), target), path);
  }

  async link(from: string, to: string): Promise<void> {
    if (this.existsSync(to)) throw fileError("EEXIST", to);
    this.requireParent(resolve(to));
    this.entries.set(resolve(to), this.get(from));
  }

  async touch(path: string): Promise<void> {
    (await this.load(path)).modifiedMs = Date.now();
  }

  async remove(path: string): Promise<void> {
    this.removeSync(path);
  }

  removeSync(path: string): void {
    for (const name of [resolve(path), ...this.below(path)]) if (name !== "/") this.entries.delete(name);
  }

  async removeEmptyFolder(path: string): Promise<void> {
    if (this.get(path) !== "folder") throw fileError("ENOTDIR", path);
    if (this.below(path).length > 0) throw fileError("ENOTEMPTY", path);
    this.removeSync(path);
  }

  private get(path: string): Entry {
    const entry = this.entries.get(resolve(path));
    if (entry === undefined) throw fileError("ENOENT", path);
    return entry;
  }

  /** Returns the contents of a file, which are fetched first if it belongs to the package. */
  private async load(path: string): Promise<Contents> {
    const entry = this.get(path);
    if (entry === "folder") throw fileError("EISDIR", path);
    if (!isRemote(entry)) return entry;
    const response = await fetch(entry.url);
    if (!response.ok) throw new Error(`${entry.url.href} answered ${response.status} ${response.statusText}`);
    const contents = new Contents(new Uint8Array(await response.arrayBuffer()));
    if (this.entries.get(resolve(path)) === entry) this.entries.set(resolve(path), contents);
    return contents;
  }

  private below(folder: string): string[] {
    const prefix = resolve(folder) === "/" ? "/" : `${resolve(folder)}/`;
    return [...this.entries.keys()].filter((path) => path.startsWith(prefix) && path !== "/");
  }

  private create(path: string): Contents {
    this.requireParent(resolve(path));
    const contents = new Contents();
    this.entries.set(resolve(path), contents);
    return contents;
  }

  private requireParent(path: string): void {
    if (this.entries.get(dirname(path)) !== "folder") throw fileError("ENOENT", dirname(path));
  }

  /** @throws for a path that neither a file nor, if `byFolder`, a folder may take. */
  private requireReplaceable(path: string, byFolder: boolean): void {
    this.requireParent(path);
    const old = this.entries.get(path);
    if (old === undefined || (old !== "folder" && !byFolder)) return;
    if (!byFolder) throw fileError("EISDIR", path);
    if (old !== "folder") throw fileError("ENOTDIR", path);
    if (this.below(path).length > 0) throw fileError("ENOTEMPTY", path);
  }

  private addFolder(path: string): void {
    const entry = this.entries.get(path);
    if (entry === "folder") return;
    if (entry !== undefined) throw fileError("EEXIST", path);
    this.addFolder(dirname(path));
    this.entries.set(path, "folder");
  }
}

class MemoryFile implements OpenFile {
  private position = 0;

  constructor(private readonly contents: Contents) {}

  async size(): Promise<number> {
    return this.contents.size;
  }

  async read(target: Uint8Array, position: number): Promise<number> {
    const bytes = this.contents.bytes().subarray(position, position + target.length);
    target.set(bytes);
    return bytes.length;
  }

  async write(bytes: Uint8Array, position = this.position): Promise<void> {
    this.contents.write(bytes, position);
    this.position = position + bytes.length;
  }

  async truncate(size: number): Promise<void> {
    this.contents.truncate(size);
  }

  async sync(): Promise<void> {}

  async close(): Promise<void> {}
}
