import { LlamaGymError, type ErrorCode } from "../../core/errors.js";
import { findNearestName } from "../../core/suggest.js";
import { EMBEDDED_MODEL } from "../../models/index.js";
import { registeredModels } from "../../models/registry/index.js";

const NOT_FOUND_CODES: readonly ErrorCode[] = ["FILE_NOT_FOUND", "HUB_NOT_FOUND", "HUB_UNREACHABLE", "HUB_OFFLINE"];

/** Opens a model; the error for a name that is not found suggests the nearest known one. */
export async function withModelAdvice<Opened>(name: string, open: () => Promise<Opened>): Promise<Opened> {
  try {
    return await open();
  } catch (error) {
    const isMissing = error instanceof LlamaGymError && NOT_FOUND_CODES.includes(error.code);
    const nearest = isMissing ? findNearestModel(name) : undefined;
    if (nearest === undefined || nearest === name) throw error;
    const { code, message } = error as LlamaGymError;
    throw new LlamaGymError(code, `${message} Did you mean ${nearest}?`, { cause: error });
  }
}

/** Returns the known model with the most similar name, with or without its owner. */
function findNearestModel(name: string): string | undefined {
  const ids = [EMBEDDED_MODEL, ...registeredModels().map(({ id }) => id)];
  const withoutOwner = (id: string) => id.slice(id.indexOf("/") + 1);
  const nearest = findNearestName(name, name.includes("/") ? ids : ids.map(withoutOwner));
  return ids.find((id) => id === nearest || withoutOwner(id) === nearest);
}
