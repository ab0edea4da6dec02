import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import type { HubConfig } from "../../src/models/files/hub/hub-config.js";
import type { ModelLocation } from "../../src/models/files/hub/model-location.js";
import { resolveFromHub, type ResolveOptions } from "../../src/models/files/hub/resolve-model.js";
import { blobName, FakeHub, type Fault } from "./fake-hub.js";

export const commit = "0123456789abcdef0123456789abcdef01234567";
export const large = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 31 + (i >> 8)) % 251));

export const tiny = {
  commit,
  revisions: ["v1", "refs/pr/1"],
  files: {
    ".gitattributes": "x",
    "README.md": "# Tiny",
    "config.json": '{"model_type":"llama"}',
    "generation_config.json": "{}",
    "tokenizer.json": "{}",
    "tokenizer_config.json": "{}",
    "model.safetensors": large,
    "pytorch_model.bin": Buffer.alloc(5000, 1),
    "onnx/model.onnx": Buffer.alloc(5000, 2),
    "original/consolidated.safetensors": Buffer.alloc(5000, 3),
  },
};

const shard = (n: number): Buffer => Buffer.alloc(2000, n);
const repositories = {
  "someone/tiny": tiny,
  "someone/sharded": {
    commit,
    files: {
      "config.json": "{}",
      "model.safetensors.index.json": JSON.stringify({
        weight_map: { a: "model-00001-of-00002.safetensors", b: "model-00002-of-00002.safetensors" },
      }),
      "model-00001-of-00002.safetensors": shard(1),
      "model-00002-of-00002.safetensors": shard(2),
      "model.fp32-00001-of-00009.safetensors": shard(3),
    },
  },
  "someone/quants": {
    commit,
    files: {
      "tiny-Q4_K_M.gguf": shard(4),
      "tiny-Q8_0.gguf": shard(5),
      "mmproj-tiny.gguf": shard(6),
      "big/tiny-F16-00001-of-00002.gguf": shard(7),
      "big/tiny-F16-00002-of-00002.gguf": shard(8),
    },
  },
  "someone/one-gguf": { commit, files: { "only.gguf": shard(9), "README.md": "" } },
  "someone/adapter": {
    commit,
    files: { "adapter_config.json": "{}", "adapter_model.safetensors": shard(10), "adapter_model.bin": shard(11) },
  },
  "someone/pickle": { commit, files: { "config.json": "{}", "pytorch_model.bin": shard(12) } },
  "someone/private": { ...tiny, token: "secret" },
  "someone/gated": { ...tiny, gated: true },
  gpt2: tiny,
};

interface Case extends ResolveOptions {
  readonly config?: Partial<HubConfig>;
}

/** A hub with `repositories` and an empty cache for each test of a file. */
export class HubModels {
  hub!: FakeHub;
  cacheDir = "";

  constructor() {
    beforeEach(async () => {
      this.hub = await FakeHub.start(repositories);
      this.cacheDir = await mkdtemp(join(tmpdir(), "hub-"));
    });
    afterEach(async () => {
      await this.hub.stop();
      await rm(this.cacheDir, { recursive: true });
    });
  }

  /** Time limits are those that no test waits for, unless `config` has others. */
  readonly resolve = (id: string, { config, ...options }: Case = {}): Promise<ModelLocation> =>
    resolveFromHub(id, options, {
      endpoint: this.hub.endpoint,
      cacheDir: this.cacheDir,
      token: undefined,
      offline: false,
      responseTimeoutMs: 60_000,
      stallTimeoutMs: 60_000,
      retryDelayMs: 1,
      ...config,
    });

  readonly fail = (fault: Omit<Fault, "times"> & { times?: number }): void => {
    this.hub.faults.push({ times: 1, ...fault });
  };

  readonly repo = (id = "someone/tiny"): string => join(this.cacheDir, `models--${id.replace("/", "--")}`);
  readonly blob = (content: Uint8Array | string): string => join(this.repo(), "blobs", blobName(content));
}
