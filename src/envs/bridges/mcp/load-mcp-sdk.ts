import { LlamaGymError } from "../../../core/errors.js";

/**
 * Loads modules of the MCP SDK, an optional peer dependency.
 * @throws INVALID_STATE with the command that installs it.
 */
export async function loadMcpSdk<Modules>(load: () => Promise<Modules>): Promise<Modules> {
  try {
    return await load();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new LlamaGymError(
      "INVALID_STATE",
      "The Model Context Protocol needs its SDK. Install it: npm install @modelcontextprotocol/sdk",
      { cause: error },
    );
  }
}
