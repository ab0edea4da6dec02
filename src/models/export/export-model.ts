import { checkOptions, oneOf, type OptionNames } from "../../core/settings.js";
import { fs } from "#platform";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import type { CausalLM } from "../causal-lm.js";
import { mergeAdapter } from "../adapters/merge-adapter.js";
import { addAllChecksums } from "../../core/files/checksums.js";
import { FolderLock } from "../../core/files/folder-lock.js";
import { replaceFolder, writeFileAtomic } from "../../core/files/write-file-atomic.js";
import { saveModel, type SaveOptions } from "../save-model.js";
import type { Tokenizer } from "../text/tokenizer.js";
import type { OnWeightsProgress } from "../weight-reader.js";
import { exportGguf } from "./gguf/export-gguf.js";
import { exportOnnx, type OnnxType } from "./onnx/export-onnx.js";

/** Formats with their types of weights, the default first. */
const EXPORT_DTYPES = {
  peft: ["F32"],
  merged: ["F32", "F16", "BF16"],
  onnx: ["F32", "F16", "Q8", "Q4"],
  gguf: ["F16", "F32", "Q8", "Q4"],
} as const;

/** A format of an exported model. */
export type ExportFormat = keyof typeof EXPORT_DTYPES;

/** Type of exported weights. */
export type ExportDtype = (typeof EXPORT_DTYPES)[ExportFormat][number];

/** Options of `LanguageModel.export`. */
export interface ExportOptions {
  /**
   * "peft": the adapter alone; "merged": a folder that Transformers opens; "onnx": a folder that
   * transformers.js opens; "gguf": a file that llama.cpp opens, with Ollama's Modelfile. All but
   * "peft" contain the merged adapter.
   */
  readonly format: ExportFormat;
  /**
   * Type of the weights; default F16 for GGUF, F32 for others. Q8 and Q4 have a scale per 32
   * weights (GGUF's Q8_0 and Q4_0).
   */
  readonly dtype?: ExportDtype;
  /** Whether to replace a folder that is not empty. Default false. */
  readonly overwrite?: boolean;
  /** Text of README.md. */
  readonly readme?: string;
  /** Receives the share of the weights that were written, from 0 to 1; not for "peft". */
  readonly onProgress?: OnWeightsProgress;
  /** Receives what the format does not represent exactly. */
  readonly onWarning?: (message: string) => void;
}

const exportOptionNames: OptionNames<ExportOptions> = {
  format: oneOf(...Object.keys(EXPORT_DTYPES)),
  dtype: true,
  overwrite: Boolean,
  readme: String,
  onProgress: Function,
  onWarning: Function,
};

/** A model to export. */
interface ExportSource {
  readonly causalLM: CausalLM;
  readonly hasTokenizer: boolean;
  /** Required for ONNX and GGUF. @throws INVALID_STATE if there is none. */
  readonly tokenizer: Tokenizer;
  /** The base model's name, for an adapter's configuration and a GGUF file's metadata. */
  readonly name: string;
}

/**
 * Exports a model to a folder, which appears once everything in it is written. @throws
 * INVALID_ARGUMENT, INVALID_STATE for a folder that is not empty, FOLDER_IN_USE, MODEL_UNSUPPORTED,
 * TOKENIZER_UNSUPPORTED, FILE_WRITE_FAILED.
 */
export async function exportModel(source: ExportSource, folder: string, options: ExportOptions): Promise<void> {
  checkOptions("export", options, exportOptionNames);
  const { overwrite = false } = options;
  const dtype = resolveExportDtype(options);
  await checkExportFolder(folder, overwrite);
  const path = fs.resolve(folder);
  // Next to the folder, which is replaced as a whole.
  const lock = await FolderLock.acquire(path, fs.join(fs.dirname(path), `.${fs.basename(path)}.lock`));
  try {
    await checkExportFolder(folder, overwrite);
    await writeExport(source, path, dtype, options);
  } finally {
    await lock.release();
  }
}

async function writeExport(
  source: ExportSource,
  folder: string,
  dtype: ExportDtype,
  options: ExportOptions,
): Promise<void> {
  const { readme } = options;
  await replaceFolder(folder, async (staging) => {
    if (readme !== undefined) await writeFileAtomic(fs.join(staging, "README.md"), readme);
    await writeFormat(source, staging, dtype, options);
    await addAllChecksums(staging);
  });
}

/** Returns the type of the weights. @throws INVALID_ARGUMENT for one that the format lacks. */
export function resolveExportDtype({ format, dtype }: Pick<ExportOptions, "format" | "dtype">): ExportDtype {
  const dtypes: readonly ExportDtype[] = EXPORT_DTYPES[format];
  const resolved = dtype ?? dtypes[0];
  if (!dtypes.includes(resolved))
    throw invalidArgument(`\`dtype\` of format ${format} must be one of ${dtypes.join(", ")}, got ${resolved}.`);
  return resolved;
}

/**
 * Checks that nothing is replaced unasked. @throws INVALID_STATE for a folder that is not empty.
 */
export async function checkExportFolder(folder: string, overwrite: boolean): Promise<void> {
  const info = await fs.stat(folder).catch(() => undefined);
  if (info === undefined) return;
  if (!info.isFolder) throw new LlamaGymError("INVALID_STATE", `${folder} is a file. Choose another output folder.`);
  if (overwrite || (await fs.list(folder)).length === 0) return;
  throw new LlamaGymError(
    "INVALID_STATE",
    `${folder} is not empty. Choose another output folder, or allow it to be replaced (--overwrite).`,
  );
}

async function writeFormat(
  source: ExportSource,
  folder: string,
  dtype: ExportDtype,
  { format, onProgress, onWarning }: ExportOptions,
): Promise<void> {
  const { causalLM, name } = source;
  if (format === "peft" && causalLM.adapter === undefined) {
    const problem = `${name} has no adapter, which is what format peft contains`;
    throw invalidArgument(`${problem}. Export the whole model with format merged, onnx or gguf.`);
  }
  const model = format === "peft" ? causalLM : await mergeAdapter(causalLM);
  switch (format) {
    case "peft":
    case "merged":
      await saveModel(model, folder, { dtype: dtype as SaveOptions["dtype"], baseModelName: name, onProgress });
      if (source.hasTokenizer) await source.tokenizer.save(folder);
      return;
    case "onnx":
      return exportOnnx(model, source.tokenizer, folder, { type: dtype as OnnxType, onProgress });
    case "gguf":
      return exportGguf(model, source.tokenizer, folder, {
        type: GGUF_TYPES[dtype as keyof typeof GGUF_TYPES],
        name,
        onProgress,
        onWarning,
      });
  }
}

const GGUF_TYPES = { F32: "F32", F16: "F16", Q8: "Q8_0", Q4: "Q4_0" } as const;
