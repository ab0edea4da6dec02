import { fs } from "#platform";
import { LlamaGymError } from "../../../core/errors.js";
import { corruptFileError } from "../../../core/files/file-errors.js";
import type { JsonObject } from "../../../core/json.js";
import { FileSource } from "../file-source.js";
import type { WeightFile } from "../weight-file.js";
import { buildGgufConfig, readGgufSizes, type GgufArchitecture } from "./gguf-config.js";
import { GgufFields } from "./gguf-fields.js";
import { buildGenerationConfig } from "./generation-config.js";
import { readGgufHeader, type GgufHeader, type GgufMetadata, type GgufTensor } from "./gguf-header.js";
import { mapTensorNames } from "./map-tensor-names.js";
import type { RopeSource } from "./rope-parameters.js";
import { buildGgufTokenizer, type GgufTokenizerFiles } from "./tokenizer/gguf-tokenizer.js";
import { GgufWeights } from "./gguf-weights.js";

/** A GGUF model presented as the Hugging Face folder it was converted from. */
export interface GgufModel {
  readonly path: string;
  /** Equivalent of `config.json`. */
  readonly config: JsonObject;
  /** Equivalent of `generation_config.json`: end tokens and, if stored, sampling settings. */
  readonly generationConfig: JsonObject;
  /** Metadata under GGUF's keys. */
  readonly metadata: GgufMetadata;
  /** Tensors under their Hugging Face names. */
  readonly weights: WeightFile;
  close(): Promise<void>;
}

/** An opened file, or the parts of a split file. */
interface GgufParts {
  readonly metadata: GgufMetadata;
  readonly tensors: ReadonlyMap<string, GgufTensor>;
  readonly sources: readonly FileSource[];
  readonly getSource: (tensorName: string) => FileSource;
}

/**
 * Opens a GGUF file (or the first part of a split one, `...-00001-of-00003.gguf`) as a Hugging Face
 * model of one of `architectures`, by general.architecture.
 * @throws FILE_NOT_FOUND, FILE_READ_FAILED, FILE_CORRUPT, FORMAT_UNSUPPORTED, MODEL_UNSUPPORTED.
 */
export async function openGguf(path: string, architectures: ReadonlyMap<string, GgufArchitecture>): Promise<GgufModel> {
  const parts = await openParts(path);
  try {
    return await createModel(path, architectures, parts);
  } catch (error) {
    await Promise.all(parts.sources.map((source) => source.close()));
    throw error;
  }
}

/**
 * Reads the tokenizer and generation config of a GGUF file of any architecture.
 * @throws as `openGguf`, and TOKENIZER_UNSUPPORTED.
 */
export async function readGgufTokenizer(path: string): Promise<GgufTokenizerFiles & { generationConfig: JsonObject }> {
  const { metadata, sources } = await openParts(path);
  await Promise.all(sources.map((source) => source.close()));
  const generationConfig = buildGenerationConfig(new GgufFields(path, metadata));
  return { ...buildGgufTokenizer(path, metadata), generationConfig };
}

async function createModel(
  path: string,
  architectures: ReadonlyMap<string, GgufArchitecture>,
  { metadata, tensors, sources, getSource }: GgufParts,
): Promise<GgufModel> {
  const fields = new GgufFields(path, metadata);
  const architecture = architectures.get(fields.architecture);
  if (architecture === undefined)
    throw new LlamaGymError(
      "MODEL_UNSUPPORTED",
      `The architecture "${fields.architecture}" of ${path} is not supported. ` +
        `Supported in GGUF files: ${[...architectures.keys()].join(", ")}.`,
    );
  const readRopeFactors = async (name: string): Promise<Float32Array | undefined> => {
    const tensor = tensors.get(`${name}.weight`);
    if (tensor === undefined) return undefined;
    const view = { name, tensor, shape: tensor.shape };
    return new GgufWeights(path, [view], getSource, []).readFloat32(name);
  };
  const rope: RopeFactors = {
    frequencyFactors: await readRopeFactors("rope_freqs"),
    longFactors: await readRopeFactors("rope_factors_long"),
    shortFactors: await readRopeFactors("rope_factors_short"),
  };
  const views = mapTensorNames(architecture, readGgufSizes(fields, tensors), tensors);
  const weights = new GgufWeights(path, views, getSource, sources);
  return {
    path,
    metadata,
    weights,
    config: buildGgufConfig({ fields, architecture, tensors, rope }),
    generationConfig: buildGenerationConfig(fields),
    close: () => weights.close(),
  };
}

type RopeFactors = Pick<RopeSource, "frequencyFactors" | "longFactors" | "shortFactors">;

async function openPart(path: string): Promise<{ source: FileSource; header: GgufHeader }> {
  const source = await FileSource.open(path);
  try {
    return { source, header: await readGgufHeader(source) };
  } catch (error) {
    await source.close();
    throw error;
  }
}

async function openParts(path: string): Promise<GgufParts> {
  const first = await openPart(path);
  const sources = [first.source];
  try {
    const count = first.header.metadata.get("split.count");
    const paths = typeof count === "number" && count > 1 ? listPartPaths(path, count) : undefined;
    const tensors = new Map(first.header.tensors);
    const sourceByTensor = new Map([...tensors.keys()].map((name) => [name, first.source]));
    for (const partPath of paths?.slice(1) ?? []) {
      const { source, header } = await openPart(partPath);
      sources.push(source);
      for (const [name, tensor] of header.tensors) {
        if (tensors.has(name)) throw corruptFileError(partPath, `its tensor "${name}" is also in another part`);
        tensors.set(name, tensor);
        sourceByTensor.set(name, source);
      }
    }
    const getSource = (name: string): FileSource => sourceByTensor.get(name) ?? first.source;
    return { metadata: first.header.metadata, tensors, sources, getSource };
  } catch (error) {
    await Promise.all(sources.map((source) => source.close()));
    throw error;
  }
}

/** The paths of all parts of a split file, of which the first must be given. */
function listPartPaths(path: string, count: number): string[] {
  const parts = /^(.*)-00001-of-(\d{5})\.gguf$/u.exec(fs.basename(path));
  if (parts === null || Number(parts[2]) !== count)
    throw new LlamaGymError(
      "FORMAT_UNSUPPORTED",
      `${path} is one of ${count} parts of a split GGUF file. Give the first part, whose name ends in ` +
        `-00001-of-${String(count).padStart(5, "0")}.gguf.`,
    );
  return Array.from({ length: count }, (_, part) =>
    fs.join(fs.dirname(path), `${parts[1]}-${String(part + 1).padStart(5, "0")}-of-${parts[2]}.gguf`),
  );
}
