import { system } from "#platform";

/**
 * Disables telemetry unless ORT_DISABLE_TELEMETRY=0 is set. Must be imported before ONNX Runtime,
 * whose Linux and Windows builds otherwise report usage and leave a file per process in the
 * temporary folder.
 */
system.env.ORT_DISABLE_TELEMETRY ??= "1";
