import { LlamaGymError } from "../../../core/errors.js";
const PACKAGE = "@modelcontextprotocol/sdk";
/**
 * Loads a module of the MCP SDK, an optional peer dependency.
 * @throws INVALID_STATE with the command that installs it.
 */
export async function loadMcpSdk(path) {
    try {
        // Bundlers fail on a literal name if the package is not installed.
        return (await import([PACKAGE, path].join("/")));
    }
    catch (error) {
        if (error.code !== "ERR_MODULE_NOT_FOUND")
            throw error;
        throw new LlamaGymError("INVALID_STATE", `The Model Context Protocol needs its SDK. Install it: npm install ${PACKAGE}`, { cause: error });
    }
}
