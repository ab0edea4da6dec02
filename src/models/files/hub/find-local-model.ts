import { open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { LlamaGymError } from "../../../core/errors.js";
import { toReadError } from "../file-errors.js";
import type { ModelLocation } from "./model-location.js";
import { selectFiles } from "./select-files.js";

/**
 * Finds a local model: a folder, a GGUF file, or a GGUF file in a folder (`file`, or
 * `folder:file`). Returns undefined when the path does not exist. @throws FILE_NOT_FOUND for a file
 * missing in the folder, INVALID_ARGUMENT.
 */
export async function findLocalModel(path: string, file: string | undefined): Promise<ModelLocation | undefined> {
  const status = await stat(path).catch(() => undefined);
  if (status?.isDirectory() === true) return locateInFolder(path, file);
  if (status !== undefined) return locateFile(path, file);
  const match = /^(.*[^:#])[:#]([^:#]+)$/u.exec(path);
  if (match === null || file !== undefined) return undefined;
  const folder = await stat(match[1]).catch(() => undefined);
  return folder?.isDirectory() === true ? locateInFolder(match[1], match[2]) : undefined;
}

async function locateFile(path: string, file: string | undefined): Promise<ModelLocation> {
  if (file !== undefined) {
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      `${path} is a file; the option \`file\` ("${file}") applies to folders only.`,
    );
  }
  if (path.endsWith(".gguf") || (await hasGgufMagic(path))) return { kind: "gguf", path };
  throw new LlamaGymError(
    "INVALID_ARGUMENT",
    `${path} is not a model. Expected a folder with config.json and safetensors, or a GGUF file.`,
  );
}

async function hasGgufMagic(path: string): Promise<boolean> {
  try {
    const handle = await open(path, "r");
    try {
      const { buffer } = await handle.read(Buffer.alloc(4), 0, 4, 0);
      return buffer.toString("latin1") === "GGUF";
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw toReadError(path, error);
  }
}

async function locateInFolder(folder: string, file: string | undefined): Promise<ModelLocation> {
  const names = await readdir(folder).catch((error: unknown) => {
    throw toReadError(folder, error);
  });
  const hasConfig = names.includes("config.json") || names.includes("adapter_config.json");
  if (file === undefined && (hasConfig || !names.some((name) => name.endsWith(".gguf")))) {
    return { kind: "folder", path: folder };
  }
  try {
    const [first] = selectFiles(folder, names, file).files;
    return { kind: "gguf", path: join(folder, first) };
  } catch (error) {
    if (!(error instanceof LlamaGymError) || error.code !== "HUB_NOT_FOUND") throw error;
    throw new LlamaGymError("FILE_NOT_FOUND", error.message, { cause: error });
  }
}
