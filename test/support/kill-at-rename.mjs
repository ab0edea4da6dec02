// Loaded before a command: the process kills itself when it is about to rename a file for the
// KILL_AT-th time.
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

const last = Number(process.env.KILL_AT);
const { rename } = fs.promises;
let renames = 0;
fs.promises.rename = async (from, to) => {
  renames++;
  if (renames === last) process.kill(process.pid, "SIGKILL");
  return rename(from, to);
};
syncBuiltinESMExports();
