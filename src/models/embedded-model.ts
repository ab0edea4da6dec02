import { fileURLToPath } from "node:url";

/** The name by which the model that comes with the package is opened. */
export const EMBEDDED_MODEL = "embedded";

/** Where the files of the embedded model lie. */
export function getEmbeddedModelPath(): string {
  return fileURLToPath(new URL("../../models/llamagym-1m", import.meta.url));
}
