import { fileURLToPath } from "node:url";
import { invalidArgument, LlamaGymError } from "../../../core/errors.js";
import { checkTimeoutMs } from "../channel.js";
import { createTextInterface } from "../create-text-interface.js";
import { readDescription } from "../remote-description.js";
import { toJsonObject, RemoteEnv } from "../remote-env.js";
import { ProcessChannel } from "./process-channel.js";
/** Protocol version of both ends. */
const PROTOCOL_VERSION = 1;
const BRIDGE_SCRIPT = fileURLToPath(new URL("../../../../python/gymnasium_bridge.py", import.meta.url));
/** A Python Gymnasium environment in a child process. */
export class PythonEnv extends RemoteEnv {
    /**
     * Starts Python and creates the environment of a Gymnasium id ("CarRacing-v3", or "module:Id-v0", which imports the
     * module first). Needs a Python with gymnasium.
     * @throws ENV_FAILED when Python or gymnasium is missing, the id is unknown or creating the environment fails
     */
    static async open(id, options = {}) {
        const timeout = checkTimeoutMs("timeout", options.timeout);
        const startTimeout = checkTimeoutMs("startTimeout", options.startTimeout);
        const python = options.python ?? (process.platform === "win32" ? "python" : "python3");
        if (typeof id !== "string" || id === "")
            throw invalidArgument(`PythonEnv.open takes a Gymnasium id such as CarRacing-v3, got ${id}.`);
        const channel = new ProcessChannel({
            name: `The Python environment ${id}`,
            command: python,
            args: [BRIDGE_SCRIPT],
            environment: { PYTHONUNBUFFERED: "1", ...options.environment },
            timeout,
        });
        try {
            return await openPythonEnv(channel, id, options, startTimeout);
        }
        catch (error) {
            await channel.close();
            throw addAdvice(error, python);
        }
    }
}
async function openPythonEnv(channel, id, options, timeout) {
    const { modules = [], renderMode } = options;
    const params = {
        env: id,
        modules: [...modules],
        options: toJsonObject("options", options.options ?? {}),
        ...(renderMode === undefined ? {} : { renderMode }),
    };
    const response = await channel.call("open", params, timeout);
    // The process runs code of the user's choice, so its spaces may have any size.
    const limits = { protocol: PROTOCOL_VERSION, maxElements: Infinity };
    const { observationSpace, actionSpace, renderFps } = readDescription(channel.name, response, limits);
    const renderModes = renderMode === undefined ? [] : [renderMode];
    return new PythonEnv(channel, {
        observationSpace,
        actionSpace,
        metadata: { renderModes, ...(renderFps === undefined ? {} : { renderFps }) },
        text: options.text ?? createTextInterface(observationSpace, actionSpace, options),
    });
}
/** Adds advice to known errors. */
function addAdvice(error, python) {
    if (!(error instanceof LlamaGymError))
        return error;
    const advice = error.message.includes("could not be started")
        ? "Install Python, or set the option `python`."
        : `Install it (${python} -m pip install gymnasium), or set the option \`python\` to a Python that has it.`;
    const isKnown = /could not be started|No module named 'gymnasium'/.test(error.message);
    return isKnown ? new LlamaGymError(error.code, `${error.message} ${advice}`, { cause: error.cause }) : error;
}
