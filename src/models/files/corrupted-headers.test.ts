import { ggufArchitectures } from "../architectures/index.js";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LlamaGymError } from "../../core/errors.js";
import { readJson } from "../../core/files/json-file.js";
import { openGguf, readGgufTokenizer } from "./gguf/index.js";
import { SafetensorsFile } from "./safetensors/index.js";

const fixtures = new URL("../../../test/fixtures/files/", import.meta.url).pathname;

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mutations-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

/** A change to the bytes of a file, as an unlucky disk or an attacker makes it. */
type Mutation = (bytes: Uint8Array) => Uint8Array;

/** Numbers that break careless arithmetic, as 8 little-endian bytes. */
const hugeNumbers = [2n ** 64n - 1n, 2n ** 63n, 2n ** 53n, 2n ** 40n, 2n ** 32n - 1n, 2n ** 31n, 1_000_000n, 0n];

/** Mutations of the first `headerBytes` bytes, in which both formats keep all that they say. */
function mutations(headerBytes: number): fc.Arbitrary<Mutation> {
  const position = fc.nat({ max: headerBytes - 1 });
  const truncate = position.map(
    (length): Mutation =>
      (bytes) =>
        bytes.slice(0, length),
  );
  const flip = fc
    .array(fc.tuple(position, fc.nat({ max: 255 })), { minLength: 1, maxLength: 8 })
    .map((changes): Mutation => (bytes) => {
      const changed = bytes.slice();
      for (const [at, value] of changes) changed[at] = value;
      return changed;
    });
  const enlarge = fc.tuple(position, fc.constantFrom(...hugeNumbers)).map(([at, value]): Mutation => (bytes) => {
    const changed = new Uint8Array(Math.max(bytes.length, at + 8));
    changed.set(bytes);
    new DataView(changed.buffer).setBigUint64(at, value, true);
    return changed;
  });
  const remove = fc.tuple(position, fc.integer({ min: 1, max: 64 })).map(([at, count]): Mutation => (bytes) => {
    return Uint8Array.from([...bytes.subarray(0, at), ...bytes.subarray(at + count)]);
  });
  const repeat = fc.tuple(position, fc.integer({ min: 1, max: 64 })).map(([at, count]): Mutation => (bytes) => {
    return Uint8Array.from([...bytes.subarray(0, at + count), ...bytes.subarray(at)]);
  });
  return fc.oneof(truncate, flip, enlarge, remove, repeat);
}

/**
 * Opens and reads everything and gives what went wrong other than as it should: an error that is
 * not ours or does not name the file, or memory beyond the bound.
 */
async function findFault(read: (path: string) => Promise<void>, bytes: Uint8Array): Promise<unknown> {
  const path = join(folder, "mutated");
  await writeFile(path, bytes);
  const before = process.memoryUsage();
  try {
    await read(path);
  } catch (error) {
    if (!(error instanceof LlamaGymError) || !error.message.includes("mutated")) return error;
  }
  const after = process.memoryUsage();
  const grown = after.arrayBuffers - before.arrayBuffers + Math.max(0, after.heapUsed - before.heapUsed);
  return grown < 256 * 2 ** 20 ? undefined : `memory grew by ${grown} bytes`;
}

async function readGguf(path: string): Promise<void> {
  const model = await openGguf(path, ggufArchitectures);
  try {
    for (const { name } of model.weights.entries.values()) {
      await model.weights.readFloat32(name);
      await model.weights.readBytes(name);
    }
    await readGgufTokenizer(path);
  } finally {
    await model.close();
  }
}

async function readSafetensors(path: string): Promise<void> {
  const file = await SafetensorsFile.open(path);
  try {
    for (const name of file.entries.keys()) await file.readFloat32(name);
  } finally {
    await file.close();
  }
}

describe("a pointer of Git LFS", () => {
  const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${"0".repeat(64)}\nsize 269060552\n`;

  it.each([
    ["model.safetensors", readSafetensors],
    ["model.gguf", readGguf],
    ["tokenizer.json", readJson],
  ])("is named, as %s", async (name, read) => {
    const path = join(folder, name);
    await writeFile(path, pointer);
    const message = `${path} is a pointer of Git LFS, not the file itself. Run "git lfs pull" in its folder, or download the file again.`;
    await expect(read(path)).rejects.toMatchObject({ code: "FILE_CORRUPT", message });
  });
});

describe("a mutated header", () => {
  it("of a safetensors file is one error or a valid file", async () => {
    const bytes = new Uint8Array(readFileSync(`${fixtures}dtypes.safetensors`));
    const header = 8 + Number(new DataView(bytes.buffer).getBigUint64(0, true));
    await fc.assert(
      fc.asyncProperty(mutations(header), async (mutate) => {
        expect(await findFault(readSafetensors, mutate(bytes))).toBeUndefined();
      }),
      { numRuns: 400 },
    );
  });

  it.each(["llama", "phi3", "gemma3", "spm-llama"])(
    "of a GGUF file gives one clear error or a valid file: %s",
    async (name) => {
      const bytes = new Uint8Array(readFileSync(`${fixtures}gguf/${name}.gguf`));
      // The fixtures' data are F16 numbers, so that everything up to the last tensor's description
      // is before them.
      const header = Math.min(bytes.length, 10_000);
      await fc.assert(
        fc.asyncProperty(mutations(header), async (mutate) => {
          expect(await findFault(readGguf, mutate(bytes))).toBeUndefined();
        }),
        { numRuns: 150 },
      );
    },
  );
});
