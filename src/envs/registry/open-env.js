import { make, registry } from "./make.js";
const openers = [];
/** Specs of environments loaded from modules, by the reference that named them. */
const loadedSpecs = new Map();
const findOpener = (id) => (registry.has(id) ? undefined : openers.find(({ pattern }) => pattern.test(id)));
/** Adds an opener to those of `openEnv`; earlier ones take precedence. */
export function registerOpener(opener) {
    openers.push(opener);
}
/** Whether an id names an environment in another process or on another machine. */
export function isRemoteEnvId(id) {
    return findOpener(id)?.isRemote ?? false;
}
/**
 * `make` for environments from anywhere: a registered id; a file (`./my-env.js`, `./my-env.js#MyEnv`) or `module:Id`;
 * "python:CarRacing-v3" or "python:module:Id-v0" in a Python process; "openenv:http://host:8000" on an OpenEnv server;
 * "mcp:COMMAND" or "mcp:http://host:port/mcp" for the tools of an MCP server; "http://host:port" on a custom server. Options other than those of `make` go to the environment or to PythonEnvOptions,
 * OpenEnvOptions, McpEnvOptions or HttpEnvOptions. Close the environment when done.
 */
export async function openEnv(id, options = {}) {
    const opener = findOpener(id);
    if (opener === undefined)
        return make(id, options);
    return (await opener.open(id, options));
}
/** Records the spec of an environment loaded from a module, for `findSpec`. */
export function recordLoadedSpec(reference, spec) {
    loadedSpecs.set(reference, spec);
}
/** Returns the spec of a registered id or of a reference loaded before; undefined for other ids. */
export function findSpec(id) {
    return loadedSpecs.get(id) ?? (registry.has(id) ? registry.spec(id) : undefined);
}
