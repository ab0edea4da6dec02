import { system } from "#platform";

/**
 * Disables ONNX Runtime's telemetry unless ORT_DISABLE_TELEMETRY=0 is set: its Linux and Windows
 * builds otherwise report usage and leave a file per process in the temporary folder. Must be
 * imported in the main thread: native code does not see the variables that a worker sets.
 */
system.env.ORT_DISABLE_TELEMETRY ??= "1";
