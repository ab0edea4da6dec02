/** Contract checks for plug-ins: each throws at the first violation. */
export { checkEnv, type CheckEnvOptions } from "./envs/check/check-env.js";
