import { open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { LlamaGymError } from "../../errors.js";
import { readFailure } from "../failure.js";
import type { ModelLocation } from "./location.js";
import { selectFiles } from "./selection.js";

/**
 * Finds a model on this machine: a folder, a GGUF file, or a GGUF file in a folder (`file`, or `folder:file`). Gives
 * undefined when there is nothing at the path. Throws FILE_NOT_FOUND for a file that the folder lacks, INVALID_ARGUMENT.
 */
export async function localModel(path: string, file: string | undefined): Promise<ModelLocation | undefined> {
  const status = await stat(path).catch(() => undefined);
  if (status?.isDirectory() === true) return inFolder(path, file);
  if (status !== undefined) return single(path, file);
  const named = /^(.*[^:#])[:#]([^:#]+)$/u.exec(path);
  if (named === null || file !== undefined) return undefined;
  const folder = await stat(named[1]).catch(() => undefined);
  return folder?.isDirectory() === true ? inFolder(named[1], named[2]) : undefined;
}

async function single(path: string, file: string | undefined): Promise<ModelLocation> {
  if (file !== undefined) {
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      `${path} is a file already; the option file ("${file}") is for folders.`,
    );
  }
  if (path.endsWith(".gguf") || (await beginsWithGguf(path))) return { kind: "gguf", path };
  throw new LlamaGymError(
    "INVALID_ARGUMENT",
    `${path} is not a model: give a folder with config.json and safetensors, or a GGUF file.`,
  );
}

async function beginsWithGguf(path: string): Promise<boolean> {
  try {
    const handle = await open(path, "r");
    try {
      const { buffer } = await handle.read(Buffer.alloc(4), 0, 4, 0);
      return buffer.toString("latin1") === "GGUF";
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw readFailure(path, error);
  }
}

async function inFolder(folder: string, file: string | undefined): Promise<ModelLocation> {
  const names = await readdir(folder).catch((error: unknown) => {
    throw readFailure(folder, error);
  });
  const hasSettings = names.includes("config.json") || names.includes("adapter_config.json");
  if (file === undefined && (hasSettings || !names.some((name) => name.endsWith(".gguf")))) {
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
