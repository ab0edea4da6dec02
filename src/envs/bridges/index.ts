import "./register-openers.js";

export type { TextInterfaceOptions } from "./create-text-interface.js";
export { HttpEnv, type HttpEnvOptions } from "./http/http-env.js";
export { JsonSpace } from "./json-space.js";
export { loadEnvModule, loadEnvSpec, resolveReference } from "./load-env-spec.js";
export { OpenEnvClient, type OpenEnvOptions } from "./open-env/open-env-client.js";
export { type EnvServer, serveEnv, type ServeOptions } from "./open-env/open-env-server.js";
export { PythonEnv, type PythonEnvOptions } from "./python/python-env.js";
export { RemoteEnv } from "./remote-env.js";
