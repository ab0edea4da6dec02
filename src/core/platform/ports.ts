/**
 * What llamagym needs of its host in addition to the ECMAScript and web globals (fetch, timers,
 * streams, crypto.randomUUID, MessageChannel). `#platform` is an implementation of all of them.
 */

/** Type and size of a file or folder. */
export interface FileInfo {
  readonly isFile: boolean;
  readonly isFolder: boolean;
  readonly size: number;
  /** Time of the last change of the contents, in milliseconds since 1970. */
  readonly modifiedMs: number;
  /**
   * Time of the last change of the contents or of anything else about the file, which programs
   * cannot set.
   */
  readonly changedMs: number;
}

/** A file opened for random access. Released at garbage collection if it is never closed. */
export interface OpenFile {
  size(): Promise<number>;
  /**
   * Fills `target`, which may be shared memory, from `position` on; returns fewer bytes at the end
   * of the file.
   */
  read(target: Uint8Array, position: number): Promise<number>;
  /** Writes all bytes at `position`; by default after the preceding write. */
  write(bytes: Uint8Array, position?: number): Promise<void>;
  truncate(size: number): Promise<void>;
  /** Flushes the file to the disk. */
  sync(): Promise<void>;
  /** Closes the file; the second call does nothing. */
  close(): Promise<void>;
}

/**
 * A file that is only appended to; each call returns after the operating system has accepted the
 * data.
 */
export interface OpenAppendFile {
  append(data: string | Uint8Array): void;
  /** Whether the file still has a name, and its path is taken: data of a deleted file is lost. */
  isLinked(): boolean;
  truncate(size: number): void;
  close(): void;
}

/**
 * Paths and files. Methods that fail throw errors with Node's codes ("ENOENT", "EEXIST", "ENOSPC").
 */
export interface FileSystem {
  join(...parts: string[]): string;
  dirname(path: string): string;
  basename(path: string): string;
  relative(from: string, to: string): string;
  resolve(...parts: string[]): string;
  realpath(path: string): Promise<string>;

  stat(path: string): Promise<FileInfo>;
  exists(path: string): Promise<boolean>;
  existsSync(path: string): boolean;
  /** Lists the names in a folder; the relative paths of everything below it if `recursive`. */
  list(folder: string, options?: { readonly recursive?: boolean }): Promise<string[]>;
  freeBytes(folder: string): Promise<number>;

  readBytes(path: string): Promise<Uint8Array<ArrayBuffer>>;
  readBytesSync(path: string): Uint8Array<ArrayBuffer>;
  readText(path: string): Promise<string>;
  /** Reads the lines of a UTF-8 file without their line ends. */
  readLines(path: string): AsyncIterable<string>;
  /**
   * Opens a file: "read" and "create" require that it exists or does not exist, "update" creates it
   * if missing.
   */
  open(path: string, mode: "read" | "create" | "update"): Promise<OpenFile>;
  /** Opens a file at its end; "create" requires that it does not exist. Creates its folder. */
  openAppend(path: string, mode: "create" | "append"): OpenAppendFile;

  /** Creates a folder and its parents; does nothing if it exists. */
  makeFolder(path: string): Promise<void>;
  /** Creates a folder whose name begins with `prefix`, and returns its path. */
  makeTempFolder(prefix: string): Promise<string>;
  rename(from: string, to: string): Promise<void>;
  copy(from: string, to: string): Promise<void>;
  symlink(target: string, path: string): Promise<void>;
  /** Gives a file a second name; fails if the name exists. */
  link(from: string, to: string): Promise<void>;
  /** Sets the time of the last change of a file to now, by the clock that the file system uses. */
  touch(path: string): Promise<void>;
  /** Removes a file or a folder with its contents; does nothing if it does not exist. */
  remove(path: string): Promise<void>;
  removeSync(path: string): void;
  /** Removes a folder; fails if it is not empty. */
  removeEmptyFolder(path: string): Promise<void>;
}

/** The machine and the process. */
export interface System {
  readonly env: Record<string, string | undefined>;
  readonly pid: number;
  /** Node's names of the operating system and the processor: "linux", "x64". */
  readonly os: string;
  readonly arch: string;
  readonly homeFolder: string;
  readonly tempFolder: string;
  readonly hostname: string;
  /** Whether native code, such as ONNX Runtime, opens files by the paths of `fs`. */
  readonly opensFilesNatively: boolean;
  /**
   * Returns the number of cores that the process may use, or `OMP_NUM_THREADS`, as PyTorch does.
   */
  countCores(): number;
  /** Returns the memory of the machine, or of its container, in bytes. */
  memoryBytes(): number;
  /**
   * Identifies the processes that ids refer to: those of one boot and one container; "" where the
   * system does not say.
   */
  readonly pidNamespace: string;
  isProcessRunning(pid: number): boolean;
  /**
   * Returns the time at which a process started, in a form to compare; "" where it is unknown, also
   * of one that has ended.
   */
  getProcessStart(pid: number): string;
  /** Whether a debugger may have stopped the process. */
  isDebuggerAttached(): boolean;
  /** Runs a synchronous handler when the process exits; returns a function that removes it. */
  onExit(handler: () => void): () => void;
  /**
   * Names work that is open, until the returned function is called. A process in which only such
   * work is left, and nothing that could complete it, ends: it then writes the descriptions to
   * standard error and exits with status 13.
   */
  watchOpenWork(describe: () => string): () => void;
}

/** Files of the package, and modules that it finds at run time. */
export interface Assets {
  /** Returns the path of a file or folder of the package. */
  path(relativePath: string): string;
  /** Resolves a module or an entry of package.json's `imports` to a path. */
  resolve(specifier: string): string;
  /**
   * Imports a module that a user names, by its URL; a TypeScript file without checking its types.
   * Throws what the module throws.
   */
  importModule(url: string): Promise<Readonly<Record<string, unknown>>>;
}

/** A worker thread. It keeps the process running only after `ref()`. */
export interface ComputeWorker {
  post(message: unknown, transfer?: readonly ArrayBuffer[]): void;
  ref(): void;
  unref(): void;
  terminate(): Promise<void>;
}

/** A worker of a browser. */
export interface WebWorker {
  postMessage(message: unknown, transfer?: readonly ArrayBuffer[]): void;
  addEventListener(type: "message", listener: (event: { readonly data: unknown }) => void): void;
  addEventListener(type: "error", listener: (event: { readonly message?: string }) => void): void;
  terminate(): void;
}

/**
 * Where a worker's module is: an entry of package.json's `imports`, or, in a browser, a function
 * that starts it.
 */
export type WorkerSource = string | (() => WebWorker);

export interface WorkerOptions<Response> {
  /** Value that `connectToParent` returns in the worker. */
  readonly data: unknown;
  /**
   * Whether flags of the process (--import, --expose-gc) apply to the worker, which rejects some.
   * Default false.
   */
  readonly inheritFlags?: boolean;
  readonly onMessage: (message: Response) => void;
  readonly onError: (error: Error) => void;
  readonly onExit: (code: number) => void;
}

/** The other end of a `ComputeWorker`. */
export interface ParentConnection<Request, Data> {
  /** In a browser there is none before the first message. */
  readonly data: Data;
  /** Calls a handler at once in Node.js, whose processes may exit while a worker starts. */
  onStart(handler: (data: Data) => void): void;
  post(message: unknown, transfer?: readonly ArrayBuffer[]): void;
  onMessage(handler: (message: Request) => void): void;
}

/** A running hash of bytes. */
export interface RunningHash {
  update(data: string | Uint8Array): RunningHash;
  copy(): RunningHash;
  hex(): string;
}

export interface Platform {
  readonly fs: FileSystem;
  readonly system: System;
  readonly assets: Assets;
  startWorker<Response>(source: WorkerSource, options: WorkerOptions<Response>): ComputeWorker;
  /** Connects a worker's module to the thread that started it. */
  connectToParent<Request, Data>(): ParentConnection<Request, Data>;
  createHash(algorithm: "sha1" | "sha256"): RunningHash;
  /** Compresses a text's UTF-8 form. */
  gzip(text: string): Promise<Uint8Array<ArrayBuffer>>;
  /** Lets pending I/O and messages run. */
  yieldToEventLoop(): Promise<void>;
}
