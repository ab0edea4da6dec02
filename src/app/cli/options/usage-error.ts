import { LlamaGymError } from "../../../core/errors.js";

/** An error in the command line; the process exits with status 2. */
export class UsageError extends LlamaGymError {
  constructor(message: string) {
    super("INVALID_ARGUMENT", message);
  }
}
