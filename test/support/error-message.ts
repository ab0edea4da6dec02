import { LlamaGymError } from "../../src/core/errors.js";

/** What a call throws, with the code of an error of the package. */
export function getErrorMessage(call: () => unknown): string {
  try {
    call();
    return "no error";
  } catch (error) {
    return error instanceof LlamaGymError ? `${error.code}: ${error.message}` : String(error);
  }
}
