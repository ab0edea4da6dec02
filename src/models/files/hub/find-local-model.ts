import { fs } from "#platform";
import { LlamaGymError } from "../../../core/errors.js";
import { decodeLatin1 } from "../../../core/bytes.js";
import { toReadError } from "../../../core/files/file-errors.js";
import type { ModelLocation } from "./model-location.js";
import { selectFiles } from "./select-files.js";

/**
 * Finds a local model: a folder, a GGUF file, or a GGUF file in a folder (`file`, or
 * `folder:file`). Returns undefined when the path does not exist. @throws FILE_NOT_FOUND for a file
 * missing in the folder, INVALID_ARGUMENT.
 */
export async function findLocalModel(path: string, file: string | undefined): Promise<ModelLocation | undefined> {
  const status = await fs.stat(path).catch(() => undefined);
  if (status?.isFolder === true) return locateInFolder(path, file);
  if (status !== undefined) return locateFile(path, file);
  const match = /^(.*[^:#])[:#]([^:#]+)$/u.exec(path);
  if (match === null || file !== undefined) return undefined;
  const folder = await fs.stat(match[1]).catch(() => undefined);
  return folder?.isFolder === true ? locateInFolder(match[1], match[2]) : undefined;
}

async function locateFile(path: string, file: string | undefined): Promise<ModelLocation> {
  if (file !== undefined)
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      `${path} is a file; the option \`file\` ("${file}") applies to folders only.`,
    );
  if (path.endsWith(".gguf") || (await hasGgufMagic(path))) return { kind: "gguf", path };
  throw new LlamaGymError(
    "INVALID_ARGUMENT",
    `${path} is not a model. Expected a folder with config.json and safetensors, or a GGUF file.`,
  );
}

async function hasGgufMagic(path: string): Promise<boolean> {
  try {
    const file = await fs.open(path, "read");
    try {
      const magic = new Uint8Array(4);
      await file.read(magic, 0);
      return decodeLatin1(magic) === "GGUF";
    } finally {
      await file.close();
    }
  } catch (error) {
    throw toReadError(path, error);
  }
}

async function locateInFolder(folder: string, file: string | undefined): Promise<ModelLocation> {
  const names = await fs.list(folder).catch((error: unknown) => {
    throw toReadError(folder, error);
  });
  const hasConfig = names.includes("config.json") || names.includes("adapter_config.json");
  if (file === undefined && (hasConfig || !names.some((name) => name.endsWith(".gguf"))))
    return { kind: "folder", path: folder };
  try {
    const [first] = selectFiles(folder, names, file).files;
    return { kind: "gguf", path: fs.join(folder, first) };
  } catch (error) {
    if (!(error instanceof LlamaGymError) || error.code !== "HUB_NOT_FOUND") throw error;
    throw new LlamaGymError("FILE_NOT_FOUND", error.message, { cause: error });
  }
}
