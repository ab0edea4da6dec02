// Takes the place of register-openers.ts in browsers, which have no processes, files of the user or
// raw sockets.
import { LlamaGymError } from "../../core/errors.js";
import { registerOpener } from "../registry/open-env.js";

registerOpener({
  pattern: /:|\.[cm]?[jt]s(?:#.+)?$/,
  isRemote: true,
  open: (id) =>
    Promise.reject(
      new LlamaGymError(
        "ENV_UNKNOWN",
        `The environment ${id} needs Node.js. In a browser, use a built-in environment, or pass an Env of your own.`,
      ),
    ),
});
