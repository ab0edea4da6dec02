/**
 * Imported before ONNX Runtime, whose builds for Linux and Windows report their use to its makers, and leave a file in the temporary
 * folder for each process, unless this is set when they are loaded. Whoever wants that sets ORT_DISABLE_TELEMETRY=0.
 */
process.env.ORT_DISABLE_TELEMETRY ??= "1";
