import { basename, dirname, join } from "node:path";
import { LlamaGymError } from "../../errors.js";
import { corrupt } from "../failure.js";
import type { JsonObject } from "../json.js";
import { FileSource } from "../source.js";
import type { WeightFile } from "../weights.js";
import { ggufArchitecture, ggufArchitectureNames } from "./architectures.js";
import { ggufConfig, ggufSizes } from "./config.js";
import { GgufFields } from "./fields.js";
import { generationConfig } from "./generation-config.js";
import { readGgufHeader, type GgufHeader, type GgufMetadata, type GgufTensor } from "./header.js";
import { huggingFaceViews } from "./names.js";
import type { RopeSource } from "./rope.js";
import { ggufTokenizer, type TokenizerFiles } from "./tokenizer.js";
import { GgufWeights } from "./weights.js";

/** A GGUF model, seen as the Hugging Face folder that it was made from. */
export interface GgufModel {
  readonly path: string;
  /** What `config.json` would hold. */
  readonly config: JsonObject;
  /** What `generation_config.json` would hold: the tokens that end a reply, and sampling settings where the file has them. */
  readonly generationConfig: JsonObject;
  /** Everything that the file says about itself, under GGUF's own keys. */
  readonly metadata: GgufMetadata;
  /** The tensors under their Hugging Face names. */
  readonly weights: WeightFile;
  /** What `tokenizer.json` and `tokenizer_config.json` would hold. Throws TOKENIZER_UNSUPPORTED, FILE_CORRUPT. */
  tokenizer(): TokenizerFiles;
  close(): Promise<void>;
}

/** A file, or the parts of one that was split, opened. */
interface OpenedParts {
  readonly metadata: GgufMetadata;
  readonly tensors: ReadonlyMap<string, GgufTensor>;
  readonly sources: readonly FileSource[];
  readonly sourceOf: (tensorName: string) => FileSource;
}

/**
 * Opens a GGUF file (or the first part of a split one, `...-00001-of-00003.gguf`) as a Hugging Face model.
 * Throws FILE_NOT_FOUND, FILE_READ_FAILED, FILE_CORRUPT, FORMAT_UNSUPPORTED, MODEL_UNSUPPORTED.
 */
export async function openGguf(path: string): Promise<GgufModel> {
  const parts = await openParts(path);
  try {
    return await modelOf(path, parts);
  } catch (error) {
    await Promise.all(parts.sources.map((source) => source.close()));
    throw error;
  }
}

async function modelOf(path: string, { metadata, tensors, sources, sourceOf }: OpenedParts): Promise<GgufModel> {
  const fields = new GgufFields(path, metadata);
  const architecture = ggufArchitecture(fields.architecture);
  if (architecture === undefined) {
    throw new LlamaGymError(
      "MODEL_UNSUPPORTED",
      `The architecture "${fields.architecture}" of ${path} is not supported. ` +
        `Supported in GGUF files: ${ggufArchitectureNames.join(", ")}.`,
    );
  }
  const ropeFactors = async (name: string): Promise<Float32Array | undefined> => {
    const tensor = tensors.get(`${name}.weight`);
    if (tensor === undefined) return undefined;
    const view = { name, tensor, shape: tensor.shape };
    return new GgufWeights(path, [view], sourceOf, []).readFloat32(name);
  };
  const rope: ConfigRope = {
    frequencyFactors: await ropeFactors("rope_freqs"),
    longFactors: await ropeFactors("rope_factors_long"),
    shortFactors: await ropeFactors("rope_factors_short"),
  };
  const views = huggingFaceViews(architecture, ggufSizes(fields, tensors), tensors);
  const weights = new GgufWeights(path, views, sourceOf, sources);
  let tokenizer: TokenizerFiles | undefined;
  return {
    path,
    metadata,
    weights,
    config: ggufConfig({ fields, architecture, tensors, rope }),
    generationConfig: generationConfig(fields),
    tokenizer: () => (tokenizer ??= ggufTokenizer(path, metadata)),
    close: () => weights.close(),
  };
}

type ConfigRope = Pick<RopeSource, "frequencyFactors" | "longFactors" | "shortFactors">;

async function openOne(path: string): Promise<{ source: FileSource; header: GgufHeader }> {
  const source = await FileSource.open(path);
  try {
    return { source, header: await readGgufHeader(source) };
  } catch (error) {
    await source.close();
    throw error;
  }
}

async function openParts(path: string): Promise<OpenedParts> {
  const first = await openOne(path);
  const sources = [first.source];
  try {
    const count = first.header.metadata.get("split.count");
    const paths = typeof count === "number" && count > 1 ? partPaths(path, count) : undefined;
    const tensors = new Map(first.header.tensors);
    const places = new Map([...tensors.keys()].map((name) => [name, first.source]));
    for (const other of paths?.slice(1) ?? []) {
      const { source, header } = await openOne(other);
      sources.push(source);
      for (const [name, tensor] of header.tensors) {
        if (tensors.has(name)) throw corrupt(other, `its tensor "${name}" stands in another part too`);
        tensors.set(name, tensor);
        places.set(name, source);
      }
    }
    const sourceOf = (name: string): FileSource => places.get(name) ?? first.source;
    return { metadata: first.header.metadata, tensors, sources, sourceOf };
  } catch (error) {
    await Promise.all(sources.map((source) => source.close()));
    throw error;
  }
}

/** The paths of all parts of a split file, of which the first must be given. */
function partPaths(path: string, count: number): string[] {
  const parts = /^(.*)-00001-of-(\d{5})\.gguf$/u.exec(basename(path));
  if (parts === null || Number(parts[2]) !== count) {
    throw new LlamaGymError(
      "FORMAT_UNSUPPORTED",
      `${path} is one of ${count} parts of a split GGUF file. Give the first part, whose name ends in ` +
        `-00001-of-${String(count).padStart(5, "0")}.gguf.`,
    );
  }
  return Array.from({ length: count }, (_, part) =>
    join(dirname(path), `${parts[1]}-${String(part + 1).padStart(5, "0")}-of-${parts[2]}.gguf`),
  );
}
