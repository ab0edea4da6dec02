import { assets } from "#platform";

/** Name under which the embedded model is opened. */
export const EMBEDDED_MODEL = "embedded";

/** Returns the folder of the embedded model. */
export function getEmbeddedModelPath(): string {
  return assets.path("models/llamagym-1m");
}
