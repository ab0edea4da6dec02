// Preloaded into all processes of the tests: two test files run at once, so one of them gets one thread for inference.
import os from "node:os";
import { syncBuiltinESMExports } from "node:module";

os.availableParallelism = () => 1;
syncBuiltinESMExports();
