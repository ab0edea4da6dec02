import { assets } from "#platform";
import { access } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { errorMessage, LlamaGymError } from "../../core/errors.js";

/**
 * Imports a user's JavaScript or TypeScript module; `subject` names it in messages, such as "The
 * tracker".
 * @throws FILE_NOT_FOUND for a missing file, FILE_READ_FAILED for one that cannot be imported.
 */
export async function importModule(path: string, subject: string): Promise<Readonly<Record<string, unknown>>> {
  const absolute = resolve(path);
  await access(absolute).catch(() => {
    throw new LlamaGymError(
      "FILE_NOT_FOUND",
      `${subject} ${path} does not exist. Give the path of a JavaScript or TypeScript file.`,
    );
  });
  try {
    return await assets.importModule(pathToFileURL(absolute).href);
  } catch (error) {
    throw new LlamaGymError("FILE_READ_FAILED", `${subject} ${path} could not be loaded: ${errorMessage(error)}`, {
      cause: error,
    });
  }
}
