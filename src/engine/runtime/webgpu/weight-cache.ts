import { fs } from "#platform";
import type { WeightLocation } from "../../graph/compile.js";
import type { GpuExecutor } from "./gpu-executor.js";
import type { DeviceBuffer } from "./gpu-pipelines.js";

/** Bytes read from a file at a time. */
const CHUNK_BYTES = 2 ** 24;

/** In-memory weight files by name. */
export type WeightBuffers = readonly { readonly name: string; readonly data: Uint8Array }[];

interface CachedWeight {
  readonly buffer: DeviceBuffer;
  users: number;
}

/** Frozen weights on the device; sessions share those from files. */
export class WeightCache {
  private readonly files = new Map<string, CachedWeight>();
  private readonly releases = new Map<number, (() => void)[]>();

  constructor(private readonly executor: GpuExecutor) {}

  /** Returns the buffers of a session's weights, by name. */
  async load(
    session: number,
    weights: readonly (readonly [string, WeightLocation])[],
    folder: string | undefined,
    buffers: WeightBuffers,
  ): Promise<Map<string, DeviceBuffer>> {
    const releases: (() => void)[] = [];
    this.releases.set(session, releases);
    const loaded = new Map<string, DeviceBuffer>();
    for (const [name, location] of weights) {
      const inMemory = buffers.find((each) => each.name === location.file);
      if (inMemory === undefined) {
        loaded.set(name, await this.loadFromFile(folder!, location, releases));
        continue;
      }
      const { offset, byteLength } = location;
      const buffer = this.createBuffer(byteLength);
      this.upload(buffer, 0, inMemory.data.subarray(offset, offset + byteLength));
      releases.push(() => this.executor.destroyBuffer(buffer));
      loaded.set(name, buffer);
    }
    return loaded;
  }

  release(session: number): void {
    for (const release of this.releases.get(session) ?? []) release();
    this.releases.delete(session);
  }

  private async loadFromFile(
    folder: string,
    { file, offset, byteLength }: WeightLocation,
    releases: (() => void)[],
  ): Promise<DeviceBuffer> {
    const key = JSON.stringify([folder, file, offset, byteLength]);
    const cached = this.files.get(key) ?? {
      buffer: await this.readFile(fs.join(folder, file), offset, byteLength),
      users: 0,
    };
    this.files.set(key, cached);
    cached.users++;
    releases.push(() => {
      if (--cached.users > 0) return;
      this.files.delete(key);
      this.executor.destroyBuffer(cached.buffer);
    });
    return cached.buffer;
  }

  private async readFile(path: string, offset: number, byteLength: number): Promise<DeviceBuffer> {
    const buffer = this.createBuffer(byteLength);
    const file = await fs.open(path, "read");
    try {
      const chunk = new Uint8Array(Math.min(CHUNK_BYTES, byteLength));
      for (let done = 0; done < byteLength;) {
        const part = chunk.subarray(0, Math.min(chunk.length, byteLength - done));
        const count = await file.read(part, offset + done);
        if (count < part.length) throw new Error(`${path} ends before byte ${offset + byteLength}`);
        this.upload(buffer, done, part);
        done += count;
      }
    } finally {
      await file.close();
    }
    return buffer;
  }

  private createBuffer(byteLength: number): DeviceBuffer {
    return this.executor.createWeight(Math.ceil(byteLength / 4));
  }

  private upload(buffer: DeviceBuffer, byteOffset: number, bytes: Uint8Array): void {
    const padded = new Uint8Array(Math.ceil(bytes.length / 4) * 4);
    padded.set(bytes);
    this.executor.uploadWeight(buffer, byteOffset / 4, new Uint32Array(padded.buffer));
  }
}
