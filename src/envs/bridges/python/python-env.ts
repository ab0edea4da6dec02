import { fileURLToPath } from "node:url";
import { invalidArgument, LlamaGymError } from "../../../core/errors.js";
import type { JsonObject, JsonValue } from "../../../core/json.js";
import type { RenderMode } from "../../env.js";
import type { TextInterface } from "../../text-interface.js";
import { checkTimeoutMs } from "../channel.js";
import { createTextInterface, type TextInterfaceOptions } from "../create-text-interface.js";
import { readDescription } from "../remote-description.js";
import { toJsonObject, RemoteEnv } from "../remote-env.js";
import { ProcessChannel } from "./process-channel.js";

/** Protocol version of both ends. */
export const PROTOCOL_VERSION = 1;
const BRIDGE_SCRIPT = fileURLToPath(new URL("../../../../python/gymnasium_bridge.py", import.meta.url));

export interface PythonEnvOptions extends TextInterfaceOptions {
  /** Arguments of the environment, as `gymnasium.make` takes them. */
  readonly options?: Readonly<Record<string, unknown>>;
  /** Python modules to import first, to register environments. */
  readonly modules?: readonly string[];
  /** Python executable with gymnasium. Default: "python3" ("python" on Windows). */
  readonly python?: string;
  /** Environment variables of the Python process, in addition to those of this process. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Render mode, which Gymnasium takes when it creates the environment. */
  readonly renderMode?: RenderMode;
  /** Call timeout in milliseconds. Default: one minute. */
  readonly timeout?: number;
  /**
   * Time limit to start Python and create the environment, in milliseconds. Default: one minute.
   */
  readonly startTimeout?: number;
  /** Text interface. Default: a generic one. */
  readonly text?: TextInterface<unknown, unknown>;
}

/** A Python Gymnasium environment in a child process. */
export class PythonEnv extends RemoteEnv {
  /**
   * Starts Python and creates the environment of a Gymnasium id ("CarRacing-v3", or "module:Id-v0",
   * which imports the module first). Needs a Python with gymnasium.
   * @throws ENV_FAILED when Python or gymnasium is missing, the id is unknown or creating the
   * environment fails
   */
  static async open(id: string, options: PythonEnvOptions = {}): Promise<PythonEnv> {
    return openPython(id, options, {}, (channel, response) => createPythonEnv(channel, response, options));
  }
}

/**
 * Starts Python, opens what an id names, and creates its end here; the process ends if that fails.
 * `params` are added to those of the call "open". Throws as `PythonEnv.open`.
 */
export async function openPython<Opened>(
  id: string,
  options: PythonEnvOptions,
  params: JsonObject,
  create: (channel: ProcessChannel, response: JsonValue) => Opened,
): Promise<Opened> {
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
    const { modules = [], renderMode } = options;
    const given = {
      env: id,
      modules: [...modules],
      options: toJsonObject("options", options.options ?? {}),
      ...(renderMode === undefined ? {} : { renderMode }),
      ...params,
    };
    return create(channel, await channel.call("open", given, startTimeout));
  } catch (error) {
    await channel.close();
    throw addAdvice(error, python);
  }
}

function createPythonEnv(channel: ProcessChannel, response: JsonValue, options: PythonEnvOptions): PythonEnv {
  const { renderMode } = options;
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
function addAdvice(error: unknown, python: string): unknown {
  if (!(error instanceof LlamaGymError)) return error;
  const missing = /No module named '(gymnasium|pettingzoo)/.exec(error.message)?.[1];
  const advice = error.message.includes("could not be started")
    ? "Install Python, or set the option `python`."
    : `Install it (${python} -m pip install ${missing}), or set the option \`python\` to a Python that has it.`;
  const isKnown = missing !== undefined || error.message.includes("could not be started");
  return isKnown ? new LlamaGymError(error.code, `${error.message} ${advice}`, { cause: error.cause }) : error;
}
