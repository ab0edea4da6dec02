import { ggufArchitectures } from "../../architectures/index.js";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gguf } from "@huggingface/gguf";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FileSource } from "../file-source.js";
import { readGgufHeader, type GgufHeader } from "./gguf-header.js";
import { openGguf } from "./open-gguf.js";

const fixtures = new URL("../../../../test/fixtures/files/gguf/", import.meta.url).pathname;
let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gguf-"));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

async function readHeader(path: string): Promise<GgufHeader> {
  const source = await FileSource.open(path);
  try {
    return await readGgufHeader(source);
  } finally {
    await source.close();
  }
}

/** Little-endian bytes of a GGUF header, piece by piece. */
class Bytes {
  private readonly parts: Buffer[] = [];
  u32(value: number): this {
    const part = Buffer.alloc(4);
    part.writeUInt32LE(value);
    this.parts.push(part);
    return this;
  }
  u64(value: number | bigint): this {
    const part = Buffer.alloc(8);
    part.writeBigUInt64LE(BigInt(value));
    this.parts.push(part);
    return this;
  }
  text(value: string): this {
    this.u64(Buffer.byteLength(value));
    this.parts.push(Buffer.from(value));
    return this;
  }
  tensor(name: string, sizes: readonly number[], type: number, offset: number): this {
    this.text(name).u32(sizes.length);
    for (const size of sizes) this.u64(size);
    return this.u32(type).u64(offset);
  }
  /** The bytes, padded to 32 and with room for the tensors. */
  done(room = 0): Buffer {
    const header = Buffer.concat(this.parts);
    return Buffer.concat([header, Buffer.alloc(((32 - (header.length % 32)) % 32) + room)]);
  }
}

const start = (tensors: number | bigint, fields: number | bigint, version = 3): Bytes =>
  new Bytes().u32(0x46554747).u32(version).u64(tensors).u64(fields);

describe("readGgufHeader", () => {
  it.each(["llama", "gemma3", "gpt2", "spm-gemma"])("reads what @huggingface/gguf reads: %s", async (name) => {
    const path = `${fixtures}${name}.gguf`;
    const ours = await readHeader(path);
    const theirs = await gguf(path, { allowLocalFile: true });
    const tensors = theirs.tensorInfos.map((tensor) => ({
      name: tensor.name,
      shape: tensor.shape.map(Number).reverse(),
      offset: Number(theirs.tensorDataOffset + tensor.offset),
    }));
    expect([...ours.tensors.values()].map(({ name, shape, offset }) => ({ name, shape, offset }))).toEqual(tensors);
    const { version: _version, tensor_count: _tensors, kv_count: _fields, ...fields } = theirs.metadata;
    expect([...ours.metadata.keys()]).toEqual(Object.keys(fields));
    for (const [key, value] of Object.entries(fields)) {
      const mine = ours.metadata.get(key);
      expect({ key, value: typeof mine === "object" ? Array.from(mine) : mine }).toEqual({ key, value });
    }
  });

  it("reads values of every type, and the first version's short counts", async () => {
    const path = join(folder, "v1.gguf");
    const short = (text: string): Buffer => new Bytes().u32(text.length).done().subarray(0, 4);
    const key = (name: string, type: number): Buffer =>
      Buffer.concat([short(name), Buffer.from(name), new Bytes().u32(type).done().subarray(0, 4)]);
    await writeFile(
      path,
      Buffer.concat([
        new Bytes().u32(0x46554747).u32(1).u32(0).u32(3).done().subarray(0, 16),
        key("i8", 1),
        Buffer.from([0xfe]),
        key("u64", 10),
        Buffer.from(new BigUint64Array([2n ** 40n]).buffer),
        key("list", 9),
        new Bytes().u32(3).u32(2).done().subarray(0, 8),
        Buffer.from(new Int16Array([-3, 4]).buffer),
      ]),
    );
    const { metadata } = await readHeader(path);
    expect(Object.fromEntries(metadata)).toEqual({ i8: -2, u64: 2 ** 40, list: [-3, 4] });
  });

  it.each([
    ["another format", Buffer.from("PK\u0003\u0004 and more than that"), "FILE_CORRUPT", /does not begin with GGUF/u],
    ["nothing", Buffer.alloc(0), "FILE_CORRUPT", /beyond its 0 bytes/u],
    ["version 9", start(0, 0, 9).done(), "FORMAT_UNSUPPORTED", /version 9/u],
    ["big-endian numbers", start(0, 0, 0x03000000).done(), "FORMAT_UNSUPPORTED", /big-endian/u],
    ["ten million tensors in a few bytes", start(9_999_999, 0).done(), "FILE_CORRUPT", /claims 9999999 tensors/u],
    ["2^63 fields", start(0, 2n ** 63n).done(), "FILE_CORRUPT", /number of metadata fields/u],
    [
      "a field twice",
      start(0, 2).text("a").u32(4).u32(1).text("a").u32(4).u32(1).done(),
      "FILE_CORRUPT",
      /"a".*duplicated/u,
    ],
    ["an unknown kind of value", start(0, 1).text("a").u32(77).u32(1).done(), "FILE_CORRUPT", /unknown type 77/u],
    [
      "a huge list",
      start(0, 1)
        .text("a")
        .u32(9)
        .u32(6)
        .u64(2n ** 40n)
        .done(64),
      "FILE_CORRUPT",
      /elements of "a"/u,
    ],
    [
      "lists in lists",
      start(0, 1).text("a").u32(9).u32(9).u64(1).u32(9).u64(1).u32(9).u64(1).u32(9).u64(1).done(99),
      "FILE_CORRUPT",
      /nests arrays too deeply/u,
    ],
    ["nine dimensions", start(1, 0).text("t").u32(9).done(90), "FILE_CORRUPT", /9 dimensions/u],
    ["an unknown tensor type", start(1, 0).tensor("t", [32], 200, 0).done(128), "FORMAT_UNSUPPORTED", /GGML type 200/u],
    ["half a block", start(1, 0).tensor("t", [33], 2, 0).done(128), "FILE_CORRUPT", /not made of Q4_0 blocks/u],
    ["a tensor that is not there", start(1, 0).tensor("t", [32], 0, 0).done(64), "FILE_CORRUPT", /needs 128 bytes/u],
    ["an unaligned tensor", start(1, 0).tensor("t", [1], 0, 4).done(64), "FILE_CORRUPT", /not aligned/u],
    [
      "overlapping tensors",
      start(2, 0).tensor("s", [16], 0, 0).tensor("t", [16], 0, 32).done(128),
      "FILE_CORRUPT",
      /"s" and "t" overlap/u,
    ],
    [
      "a tensor twice",
      start(2, 0).tensor("t", [8], 0, 0).tensor("t", [8], 0, 32).done(128),
      "FILE_CORRUPT",
      /"t".*duplicated/u,
    ],
  ])("refuses %s", async (_, bytes, code, message) => {
    const path = join(folder, "made.gguf");
    await writeFile(path, bytes);
    const error: unknown = await readHeader(path).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) as string });
    expect(String(error)).toContain(path);
  });
});

describe("openGguf", () => {
  const architecture = (name: string): Bytes => start(0, 1).text("general.architecture").u32(8).text(name);

  it.each([
    [
      "an architecture that is not known",
      architecture("mamba").done(),
      "MODEL_UNSUPPORTED",
      /"mamba".*llama, smollm3/u,
    ],
    ["no architecture", start(0, 0).done(), "FILE_CORRUPT", /general\.architecture/u],
    ["no sizes", architecture("llama").done(), "FILE_CORRUPT", /lacks "llama\.embedding_length"/u],
  ])("refuses %s", async (_, bytes, code, message) => {
    const path = join(folder, "made.gguf");
    await writeFile(path, bytes);
    const error: unknown = await openGguf(path, ggufArchitectures).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) as string });
  });

  it("reports a missing file", async () => {
    await expect(openGguf(join(folder, "none.gguf"), ggufArchitectures)).rejects.toMatchObject({
      code: "FILE_NOT_FOUND",
    });
  });
});
