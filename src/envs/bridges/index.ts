export { PythonEnv, type PythonEnvOptions } from "./python-env.js";
export { RemoteEnv } from "./remote-env.js";
export type { GenericTextOptions } from "./generic-text.js";
