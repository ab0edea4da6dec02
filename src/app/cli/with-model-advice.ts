import { LlamaGymError, type ErrorCode } from "../../core/errors.js";
import { findNearestName } from "../../core/suggest.js";
import { EMBEDDED_MODEL } from "../../models/embedded-model.js";
import { registeredModels } from "../../models/registry/index.js";

const NOT_FOUND_CODES: readonly ErrorCode[] = ["FILE_NOT_FOUND", "HUB_NOT_FOUND", "HUB_UNREACHABLE", "HUB_OFFLINE"];

/** Opens a model; where none of that name is found, the error tells the nearest name that is known. */
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

/** The known model whose name is most like this one, with or without its owner. */
function findNearestModel(name: string): string | undefined {
  const ids = [EMBEDDED_MODEL, ...registeredModels().map(({ id }) => id)];
  const withoutOwner = (id: string) => id.slice(id.indexOf("/") + 1);
  const nearest = findNearestName(name, name.includes("/") ? ids : ids.map(withoutOwner));
  return ids.find((id) => id === nearest || withoutOwner(id) === nearest);
}
