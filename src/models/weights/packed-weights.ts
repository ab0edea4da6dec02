import { fs, system } from "#platform";
import type { OpenFile } from "../../core/platform/ports.js";
import { compile, dim, input, quantizedMatmul, type WeightLocation } from "../../engine/graph/index.js";
import { formatPackedForm, type Runtime } from "../../engine/runtime/index.js";
import { getQuantizedParts, type StoredParameter } from "./stored-parameter.js";
import { BLOCK_SIZE } from "./quantize.js";

/** Alignment of tensors that sessions map. */
const ALIGNMENT = 4096;

const CHUNK_BYTES = 2 ** 22;

/** Returns the next offset at which a tensor may begin. */
export const alignOffset = (offset: number): number => Math.ceil(offset / ALIGNMENT) * ALIGNMENT;

/**
 * Whether packed forms of weights are stored: only ONNX Runtime's kernels for processors pack them.
 */
export const packsWeights = ({ device }: Runtime): boolean => device === "cpu" && system.opensFilesNatively;

interface PackingTarget {
  readonly runtime: Runtime;
  /** The file of the converted weights, which is open as `target` and ends at `end`. */
  readonly path: string;
  readonly target: OpenFile;
  readonly end: number;
  /** Locations in the file, which get the packed forms. */
  readonly locations: Map<string, WeightLocation>;
  readonly parameters: ReadonlyMap<string, StoredParameter>;
}

/**
 * Appends the packed forms of 4-bit matrices, so that all sessions of all processes map the same
 * ones instead of packing their own.
 */
export async function appendPackedForms({
  runtime,
  path,
  target,
  end,
  locations,
  parameters,
}: PackingTarget): Promise<void> {
  const folder = fs.dirname(path);
  const staging = fs.join(folder, "packing");
  for (const [name, parameter] of parameters) {
    if (parameter.kind !== "quantized") continue;
    await fs.makeFolder(staging);
    const parts = getQuantizedParts(name, parameter);
    const x = input("x", "float32", [dim("rows"), parameter.shape[1]]);
    const product = quantizedMatmul(x, parts, { bits: parameter.bits, blockSize: BLOCK_SIZE });
    const locate = (weight: { readonly name: string }) => locations.get(weight.name)!;
    const forms = await runtime.packWeights(compile({ product }), { locate, folder }, staging);
    for (const [part, packed] of forms) {
      const entries: string[] = [];
      for (const form of packed) {
        const offsets: number[] = [];
        for (const { offset, byteLength } of form.parts) {
          await copyBytes(form.file, offset, byteLength, target, end);
          offsets.push(end);
          end = alignOffset(end + byteLength);
        }
        entries.push(formatPackedForm(form, offsets));
      }
      if (entries.length > 0) locations.set(part, { ...locations.get(part)!, packed: entries });
    }
    await fs.remove(staging);
  }
}

async function copyBytes(path: string, offset: number, length: number, target: OpenFile, end: number): Promise<void> {
  const source = await fs.open(path, "read");
  try {
    const chunk = new Uint8Array(Math.min(CHUNK_BYTES, length));
    for (let done = 0; done < length; done += chunk.length) {
      const piece = chunk.subarray(0, Math.min(chunk.length, length - done));
      await source.read(piece, offset + done);
      await target.write(piece, end + done);
    }
  } finally {
    await source.close();
  }
}
