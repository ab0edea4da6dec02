import type * as client from "@modelcontextprotocol/sdk/client/index.js";
import type * as stdio from "@modelcontextprotocol/sdk/client/stdio.js";
import type * as streamableHttp from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type * as types from "@modelcontextprotocol/sdk/types.js";
import { LlamaGymError } from "../../../core/errors.js";

const PACKAGE = "@modelcontextprotocol/sdk";

/** The modules of the SDK in use, by their path in the package. */
interface SdkModules {
  readonly "client/index.js": typeof client;
  readonly "client/stdio.js": typeof stdio;
  readonly "client/streamableHttp.js": typeof streamableHttp;
  readonly "types.js": typeof types;
}

/**
 * Loads a module of the MCP SDK, an optional peer dependency.
 * @throws INVALID_STATE with the command that installs it.
 */
export async function loadMcpSdk<Path extends keyof SdkModules>(path: Path): Promise<SdkModules[Path]> {
  try {
    // Bundlers fail on a literal name if the package is not installed.
    return (await import([PACKAGE, path].join("/"))) as SdkModules[Path];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new LlamaGymError(
      "INVALID_STATE",
      `The Model Context Protocol needs its SDK. Install it: npm install ${PACKAGE}`,
      { cause: error },
    );
  }
}
