import { fileURLToPath } from "node:url";

/** Name under which the embedded model is opened. */
export const EMBEDDED_MODEL = "embedded";

/** Returns the folder of the embedded model. */
export function getEmbeddedModelPath(): string {
  return fileURLToPath(new URL("../../models/llamagym-1m", import.meta.url));
}
